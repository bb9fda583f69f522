"""A time limit ended the run.

What it checks: MaxRuntimeInSeconds or MaxWaitTimeInSeconds ended the job. Its secondary status or
    its failure message says so. A processing job counts if it was stopped after its limit.
Why it costs: The run is billed up to the limit. All of it is lost if it left neither artifact nor
    checkpoints.
Saving: None if there is an artifact or a checkpoint: the limit worked as planned. Otherwise the
    whole bill counts as lost, and failed-spend does not count it again.
    - With signs of the script's own checkpoints or outputs in S3, the range goes from 0 to the
      whole bill.
    - If the run was idle for most of its time, or for its last hour, the finding says that first
      and does not recommend a longer limit.
When it is wrong: A job may have left results that it wrote itself, to S3, a database or a tracker.
    A trial of a tuning job is not judged: its metric is its result.
What to do: Raise the limit if the work needs it. Keep checkpoints, so that the next run continues
    where this one stopped. The limit covers all attempts of a RetryStrategy together. A script that
    catches SIGTERM has 120 s to save its model.
Sources: botocore: SecondaryStatus; StoppingCondition: at most 28 days (processing jobs 9), and
    SIGTERM comes 120 s before the end.
"""

from __future__ import annotations

from sageaudit.domain.job.course import (
    is_trial,
    kept_results,
    possible_resume_source,
    reached_limit,
    seconds_until_limit,
)
from sageaudit.domain.job.failure_words import MAX_RUNTIME, MAX_WAIT
from sageaudit.rules import api
from sageaudit.rules.limits.failures import why_not_lost
from sageaudit.rules.utilisation.standing_still import idle_run

_LONGEST_LIMIT_S = {api.JobKind.TRAINING: 2_419_200, api.JobKind.PROCESSING: 777_600}
"""The longest limit that AWS allows: 28 days for training, 9 days for processing."""
_NEW_LIMIT_FACTOR = 2
_NO_LONGER_LIMIT_CAUTION = "a longer limit would only make the wait longer"


def _trial_reason(case: api.JobCase) -> str | None:
    return "a trial: its metric is its result" if is_trial(case.job) else None


@api.rule(
    id="SA603",
    scope=api.JobCase,
    kinds=set(_LONGEST_LIMIT_S),
    not_applicable=(_trial_reason, api.free_reason),
    subsumes={"failed-spend"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Counts the run as lost if it left nothing. Otherwise only reports the limit."""
    job = case.job
    limit = reached_limit(job)
    if limit is None or job.has_never_started:
        return api.Clear()
    results = kept_results(job)
    if results is None and (outcome := why_not_lost(job)) is not None:
        return outcome
    limit_s = job.max_runtime_s if limit == MAX_RUNTIME else job.max_wait_s
    counted_s = seconds_until_limit(job, limit)
    after_text = "" if counted_s is None else f" after {api.duration_text(counted_s)}"
    if limit == MAX_WAIT and counted_s is not None:
        after_text += " of waiting and work"
    resume_source = None if results else possible_resume_source(job)
    outcome_text = f"it left {results or 'neither an artifact nor checkpoints'}"
    if resume_source:
        outcome_text = f"it left no artifact; {resume_source} may hold a part of the work"
    summary = (
        f"{limit} ended the run{after_text} on {job.instances or 'an unknown type'}; "
        f"{outcome_text}."
    )
    evidence: dict[str, api.Scalar] = {
        "limit": limit,
        "limit_s": limit_s,
        "counted_s": counted_s,
        "elapsed_s": job.elapsed_s,
        "status": job.status,
        "secondary_status": job.secondary_status,
        "failure_reason": str(job.failure or "") or None,
        "left": results or "nothing",
    }
    if results:
        caution = "The limit may be intended, and what the run left can be used."
        return api.measured_fact(summary, evidence, caution=caution)
    idle = idle_run(case)
    higher = () if idle else _higher_limit_fix(job, limit, limit_s)
    can_resume = job.kind is not api.JobKind.TRAINING or resume_source is not None
    caution = "This money is spent. The next run with this limit will end the same way."
    if idle:
        caution = "This money is spent. Another run that waits like this will cost as much."
    if resume_source:
        caution = (
            f"A run resumed from {resume_source} keeps that work. If nobody resumes it, all is "
            "lost."
        )
    build_finding = api.possible_loss if resume_source else api.lost_spend
    return build_finding(
        f"{idle.sentence} {summary}" if idle else summary,
        {**evidence, **(idle.evidence if idle else {})},
        fix=higher if can_resume else (api.CHECKPOINTS, *higher),
        first_step=f"{idle.first_step}; {_NO_LONGER_LIMIT_CAUTION}" if idle else None,
        change=api.DropRun(),
        caution=caution,
    )


def _higher_limit_fix(job: api.Job, limit: str, limit_s: int | None) -> tuple[api.Parameter, ...]:
    """Returns the parameters that raise the time limit named `limit`; empty if it cannot be raised.

    MaxWaitTimeInSeconds must not be below MaxRuntimeInSeconds, so it may rise too.
    """
    longest_s = _LONGEST_LIMIT_S[job.kind]
    if not limit_s or limit_s >= longest_s:
        return ()
    higher_s = min(_NEW_LIMIT_FACTOR * limit_s, longest_s)
    fix = api.Parameter(f"StoppingCondition.{limit}", limit_s, higher_s)
    if limit != MAX_RUNTIME or job.max_wait_s is None or job.max_wait_s >= higher_s:
        return (fix,)
    wait_s = job.max_wait_s + higher_s - limit_s
    return (fix, api.Parameter(f"StoppingCondition.{MAX_WAIT}", job.max_wait_s, wait_s))
