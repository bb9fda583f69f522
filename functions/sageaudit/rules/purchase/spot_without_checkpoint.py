"""A long run on managed spot has no checkpoints.

What it checks: A training job on managed spot took more than an hour without CheckpointConfig. Its
    hyperparameters, environment and command show no sign of the script's own checkpoints.
Why it costs: After an interruption, a run without checkpoints starts again from the beginning. What
    was billed before is wasted.
Saving: Derived, if a run was interrupted and completed. Otherwise there is no figure.
    - The seconds billed above those of the last attempt are counted. The last attempt did all the
      work, so with checkpoints the Training of the earlier attempts would not have been needed.
    - The range goes up to the Training of all earlier attempts, because AWS does not state how an
      interrupted run is billed.
    - Downloads and the upload are left out, because a resumed run needs them too.
When it is wrong: The code may write checkpoints to S3 under a name that does not show it.
What to do: Set CheckpointConfig.S3Uri, write to its LocalPath (default /opt/ml/checkpoints), and
    load from there at the start. SageMaker copies both ways.
Sources: SageMaker guide, managed spot training: use checkpoints; without them MaxWaitTimeInSeconds
    is at most 3,600 s for built-in and marketplace algorithms.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.bill_facts import (
    CHECKPOINTS_FROM_S,
    Attempts,
    attempts,
    restarts_from_scratch,
)
from sageaudit.domain.job.addresses import builtin_algorithm
from sageaudit.rules import api

MIN_DURATION = api.Threshold(
    "min_duration_s",
    CHECKPOINTS_FROM_S,
    "seconds",
    "the longest MaxWait without checkpoints",
    "SageMaker spot guide",
)


@api.rule(
    id="SA402",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_DURATION,),
    not_applicable=(api.not_on_spot_reason, api.never_started_reason),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(
        "EnableManagedSpotTraining",
        "CheckpointConfig.S3Uri",
        "StoppingCondition.MaxWaitTimeInSeconds",
        "AlgorithmSpecification.TrainingImage",
        "HyperParameters",
        "Environment",
    ),
)
def check(case: api.JobCase) -> api.Outcome:
    """Clears a run with CheckpointConfig, or with signs of its own checkpoints."""
    job = case.job
    if not restarts_from_scratch(job):
        return api.Clear()
    if job.elapsed_s is None:
        return api.TIMES_MISSING
    if job.elapsed_s <= case.threshold(MIN_DURATION):
        return api.Clear()
    if case.duration_basis is not None:
        return _check_request(job)
    if job.status == "Completed" and (spot_attempts := attempts(job)) is not None:
        return _repeated_work_finding(job, spot_attempts)
    return api.recommendation(
        f"{api.duration_text(job.elapsed_s)} on managed spot without checkpoints: each "
        f"interruption starts the run again ({job.interruptions or 'none'} so far).",
        {"elapsed_s": job.elapsed_s, "interruptions": job.interruptions},
        fix=(api.CHECKPOINTS,),
        caution="How often the run will be interrupted is not known.",
    )


def _check_request(job: api.Job) -> api.Outcome:
    if builtin_algorithm(job.image) and (job.max_wait_s or 0) > CHECKPOINTS_FROM_S:
        return api.NotApplicable("AWS refuses its MaxWaitTimeInSeconds: see spot-wait")
    return api.recommendation(
        f"The run may take {api.duration_text(job.elapsed_s)} on managed spot without "
        "checkpoints: each interruption starts the run again.",
        {"elapsed_s": job.elapsed_s},
        fix=(api.CHECKPOINTS,),
        caution="How often the run will be interrupted is not known.",
    )


def _repeated_work_finding(job: api.Job, attempts: Attempts) -> api.Detection:
    """Returns a finding with the training that was repeated after interruptions.

    Only the share that was certainly billed is counted. The range goes up to all earlier attempts.
    """
    interrupted_text = (
        "Interrupted once" if job.interruptions == 1 else f"Interrupted {job.interruptions} times"
    )
    return api.derived_saving(
        f"{interrupted_text} on managed spot without checkpoints: "
        f"{api.duration_text(attempts.repeated_s)} of {api.duration_text(attempts.training_s)} of "
        "training were repeated.",
        {
            "elapsed_s": job.elapsed_s,
            "interruptions": job.interruptions,
            "training_s": attempts.training_s,
            "repeated_s": attempts.repeated_s,
            "billable_s": job.billable_s,
        },
        fix=(api.CHECKPOINTS,),
        change=_cut_share(job, attempts.min_repeated_share),
        best=_cut_share(job, attempts.max_repeated_share),
        caution="AWS does not say how much of the repeated training it bills: only what was billed "
        "beyond the last attempt's own time is counted.",
    )


def _cut_share(job: api.Job, share: Decimal) -> api.CutPhase:
    """Returns the change that cuts Training by this share (0..1) of all billed phases."""
    return api.CutPhase("Training", share * (job.billed_phases_s or Decimal(0)))
