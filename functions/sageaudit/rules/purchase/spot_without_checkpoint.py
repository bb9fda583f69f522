"""A long run on managed spot keeps no checkpoints.

What it checks: A training job on managed spot took more than an hour without CheckpointConfig, and
    nothing in its hyperparameters, environment or command is a sign of checkpoints of its own.
Why it costs: An interruption ends the containers. Without checkpoints the run starts again from the
    beginning, and what was billed before is wasted.
Saving: Derived, if a run was interrupted and completed: the last attempt did all the work, so with
    checkpoints the training of the earlier ones was not needed. The seconds that were billed above
    the last attempt are counted. The high end of the range is what the earlier attempts' Training
    cost, because AWS does not state how an interrupted run is billed. Downloads and the upload are
    no part of it: a run that resumes needs them too. Without an interruption there is no figure.
When it is wrong: Code that writes checkpoints to S3 itself, under a name that does not show it.
What to do: Checkpoints first: set CheckpointConfig.S3Uri, write to its LocalPath (default
    /opt/ml/checkpoints) and load from there at the start: SageMaker copies both ways. If a run with
    checkpoints is still billed for more than on demand, spot-interrupted-much advises to buy it on
    demand.
Sources: SageMaker guide, managed spot training: use checkpoints; without them MaxWait is limited to
    3,600 s for built-in and marketplace algorithms.
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
    "the longest wait without checkpoints",
    "SageMaker spot guide",
)


@api.rule(
    id="SA402",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_DURATION,),
    not_applicable=(api.not_on_spot, api.never_started),
    request_severity=api.Severity.MEDIUM,
    required_parameters=("EnableManagedSpotTraining", "CheckpointConfig", "CheckpointConfig.S3Uri"),
)
def check(case: api.JobCase) -> api.Outcome:
    """A sign of checkpoints clears it, as CheckpointConfig does."""
    job = case.job
    if not restarts_from_scratch(job):
        return api.Clear()
    if job.elapsed_s is None:
        return api.TIMES_MISSING
    if job.elapsed_s <= case.threshold(MIN_DURATION):
        return api.Clear()
    if case.duration_basis is not None:
        return _check_request(job)
    if job.status == "Completed" and (done := attempts(job)) is not None:
        return _repeated_work_finding(job, done)
    return api.recommendation(
        f"{api.duration_text(job.elapsed_s)} on managed spot without checkpoints: each"
        " interruption "
        f"starts the run again ({job.interruptions or 'none'} so far).",
        {"elapsed_s": job.elapsed_s, "interruptions": job.interruptions},
        fix=(api.CHECKPOINTS,),
        caution="How often it will be interrupted is not known.",
    )


def _check_request(job: api.Job) -> api.Outcome:
    if builtin_algorithm(job.image) and (job.max_wait_s or 0) > CHECKPOINTS_FROM_S:
        return api.NotApplicable("AWS refuses its MaxWaitTimeInSeconds: see spot-wait")
    return api.recommendation(
        f"May run {api.duration_text(job.elapsed_s)} on managed spot without checkpoints: each "
        "interruption starts the run again.",
        {"elapsed_s": job.elapsed_s},
        fix=(api.CHECKPOINTS,),
        caution="How often it will be interrupted is not known.",
    )


def _repeated_work_finding(job: api.Job, attempts: Attempts) -> api.Detection:
    """What the interruptions cost, between what is certain and all of the earlier attempts."""
    times = (
        "Interrupted once" if job.interruptions == 1 else f"Interrupted {job.interruptions} times"
    )
    return api.derived_saving(
        f"{times} on managed spot without checkpoints: {api.duration_text(attempts.repeated_s)} of "
        f"{api.duration_text(attempts.training_s)} of training were done again.",
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
    """The run without a share of its billed seconds."""
    return api.CutPhase("Training", share * (job.billed_phases_s or Decimal(0)))
