"""The run was paid for and gave nothing.

What it checks: The job failed after it had started, or was stopped and left neither artifact nor
    checkpoints. A failure for lack of GPU memory or host memory is named, with how full it was.
    It is also said if GPU memory rose steadily until then: over at least 25 points the median of
    each fifth of the active minutes was above the one before, by 10 points in all, to 80% or more.
    At most three quarters of the rise came within two fifths, and no point fell by half of it.
Why it costs: Failed and stopped jobs are billed from TrainingStartTime to TrainingEndTime like any
    other.
Saving: The whole bill of the run, as lost. A resumed run may keep a part of the work if there is a
    CheckpointConfig, a sign of the script's own checkpoints or of outputs that it writes to S3
    itself, or Continuous uploads of a processing job. How much is not recorded, so up to the whole
    bill is lost, and 0 is counted. A run that failed before its training began, and a trial of a
    tuning job, are lost completely. If the run was idle for most of its
    time, or for its last hour, that is said first.
When it is wrong: A job that writes its results or its checkpoints itself (to S3, a database, a
    tracker) may have left something. Two kinds of runs are not lost: a trial that its tuning job
    stopped early, and a run that a time limit ended with an artifact or checkpoints. If a limit
    ended it with nothing, limit-hit counts it. Exit code 137 says that a process was killed,
    usually for lack of memory. Of several GPUs CloudWatch has the mean alone: one that fills up
    beside idle ones is not seen to grow, and a gap in the points hides a growth.
What to do: Read the end of its log before the next try, and start that from checkpoints if there
    are any. For lack of GPU memory: a smaller batch with gradient accumulation, or a GPU with more
    memory; if it rose steadily, find what keeps growing first. For lack of host memory: fewer
    data-loader workers, or a larger type, which makes every run of the family more expensive; one
    above four times today's rate is not named. A short run on one small instance, or local mode,
    finds most client and code errors for cents.
Sources: botocore, DescribeTrainingJob.TrainingEndTime: billed between start and end, failed jobs
    included; RetryStrategy: for InternalServerError only. SageMaker guide, checkpoints: SageMaker
    copies /opt/ml/checkpoints to S3 while the job runs. POSIX: 137 is 128 + SIGKILL. SageMaker
    Debugger, GPUMemoryIncrease: fires at an increase of 5%.
"""

from __future__ import annotations

from sageaudit.domain.job.course import failure_class, is_trial, possible_resume_source
from sageaudit.rules import api
from sageaudit.rules.limits.failures import (
    GROWTH_THRESHOLDS,
    MemoryFailure,
    memory_failure,
    retry_fix,
    why_not_lost,
)
from sageaudit.rules.utilisation.standing_still import IdleRun, idle_run

_READ_LOG_STEP = (
    "Read the end of its log before the next try, and start that from checkpoints if there are any"
)
_LARGER_TYPE_CAUTION = (
    "A larger type makes every run more expensive, also those that would not fail."
)
CHECKPOINTS_FROM = api.Threshold(
    "max_unsaved_s", 3600, "seconds", "the longest wait without them", "SageMaker spot guide"
)


@api.rule(
    id="SA602",
    scope=api.FamilyCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(CHECKPOINTS_FROM, *GROWTH_THRESHOLDS),
    not_applicable=(api.free,),
    can_tag_accept=False,
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Failed: lost, unless a limit ended it with results. Stopped: only when it left nothing."""
    job = case.job
    if job.status == "Completed" or job.has_never_started:
        return api.Clear()
    if (why_not := why_not_lost(job)) is not None:
        return why_not
    memory = memory_failure(case)
    kept = _resume_source(job)
    lost = api.possible_loss if kept else api.lost_spend
    retry, idle = retry_fix(job), idle_run(case)
    summary = _summary(job, memory, kept)
    return lost(
        f"{idle.sentence} {summary}" if idle else summary,
        {
            "status": job.status,
            "secondary_status": job.secondary_status,
            "reason_class": failure_class(job),
            "failure_reason": str(job.failure or "") or None,
            "elapsed_s": job.elapsed_s,
            "checkpointed": job.checkpointed or job.hints.own_checkpoints,
            **(memory.evidence if memory else {}),
            **(idle.evidence if idle else {}),
        },
        fix=(*retry, *_checkpoints(case)),
        first_step=_first_step(idle, memory, has_retry=bool(retry)),
        alternatives=(memory.larger_type_fix,) if memory and memory.larger_type_fix else (),
        change=api.DropRun(),
        caution=_caution(memory, kept),
    )


def _resume_source(job: api.Job) -> str | None:
    """What may hold a part of the work, or None."""
    return None if is_trial(job) else possible_resume_source(job)


def _summary(job: api.Job, memory: MemoryFailure | None, kept: str | None) -> str:
    ran_s = job.ran_s if job.has_restarted else job.elapsed_s
    took = api.duration_text(ran_s) if ran_s is not None else "some time"
    ended = "failed" if job.status == "Failed" else "was stopped and left no artifact"
    why = f"{failure_class(job)}: {memory.clause}" if memory else failure_class(job)
    part = f"; {kept} may hold a part of the work" if kept else ""
    where = job.instances or "an unknown type"
    return f"The run {ended} after {took} on {where} ({why}){part}."


def _first_step(
    idle_run: IdleRun | None, memory: MemoryFailure | None, *, has_retry: bool
) -> str | None:
    """A retry cures an internal error of AWS, and no wait."""
    if idle_run is not None:
        return f"{idle_run.first_step}. {memory.first_step}" if memory else idle_run.first_step
    return None if has_retry else memory.first_step if memory else _READ_LOG_STEP


def _checkpoints(case: api.FamilyCase) -> tuple[api.Parameter, ...]:
    """For a long run that has none: the next failure then loses less."""
    job = case.job
    has = job.checkpointed or job.hints.own_checkpoints or is_trial(job)
    if has or job.kind is not api.JobKind.TRAINING or job.status != "Failed":
        return ()
    return (api.CHECKPOINTS,) if (job.elapsed_s or 0) > case.threshold(CHECKPOINTS_FROM) else ()


def _caution(memory: MemoryFailure | None, kept: str | None) -> str:
    first = f"{_LARGER_TYPE_CAUTION} " if memory and memory.larger_type_fix else ""
    if kept:
        return (
            f"{first}Resumed from {kept}, the run keeps that work; "
            "if nobody resumes it, all of it is lost."
        )
    return f"{first}This money is spent: the figure is what the same failure costs again."
