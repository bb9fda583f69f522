"""The run was paid for and gave nothing.

What it checks: The job failed after it had started, or was stopped and left neither artifact nor
    checkpoints.
Why it costs: Failed and stopped jobs are billed from TrainingStartTime to TrainingEndTime like any
    other.
Saving: The whole bill of the run, as lost: it cannot be saved any more, only not be repeated.
When it is wrong: A job that writes its results itself (to S3, a database, a tracker) may have left
    something. A trial that its tuning job stopped early did its work, and a run that a time limit
    ended with an artifact or checkpoints may be planned so: neither is lost. If a limit ended it
    with nothing, limit-hit counts it.
What to do: Read the reason below. A short run on one small instance, or local mode, finds most
    client and code errors for cents.
Sources: botocore, DescribeTrainingJob.TrainingEndTime: billed between start and end, failed jobs
    included; RetryStrategy: for InternalServerError only.
"""

from __future__ import annotations

from sageaudit.domain.job.failure import reason_class
from sageaudit.rules import api
from sageaudit.rules.limits.not_lost import not_lost
from sageaudit.rules.limits.retry_fix import retry_fix


@api.rule(
    id="SA602",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING, api.JobKind.PROCESSING, api.JobKind.TRANSFORM},
    not_applicable=(api.free,),
)
def check(case: api.JobCase) -> api.Outcome:
    """Failed: lost, unless a limit ended it with results. Stopped: only when it left nothing."""
    job = case.job
    if job.status == "Completed" or job.never_started:
        return api.Clear()
    if (why_not := not_lost(job)) is not None:
        return why_not
    why = reason_class(job)
    took = api.duration(job.elapsed_s) if job.elapsed_s is not None else "some time"
    ended = "failed" if job.status == "Failed" else "was stopped and left no artifact"
    return api.lost(
        f"The run {ended} after {took} on {job.instances or 'an unknown type'} ({why}).",
        {
            "status": job.status,
            "secondary_status": job.secondary_status,
            "reason_class": why,
            "failure_reason": job.failure,
            "elapsed_s": job.elapsed_s,
        },
        fix=retry_fix(job),
        change=api.DropRun(),
        caution="This money is spent: the figure is what the same failure costs again.",
    )
