"""The run was paid for and left no result.

What it checks: The job failed after it had started, or was stopped and left neither artifact nor
    checkpoints. If the failure message says that GPU or host memory ran out, the finding says so,
    with the memory use. It also says if GPU memory rose steadily until then. To find that, the
    active minutes are cut into fifths. They need at least 25 points in all. Memory rose steadily if
    all of these are true:
    - The median of each fifth is above the one before. The total rise is at least 10 percentage
      points. Memory ends at 80% or more.
    - The rise is not a jump: two steps in a row bring at most three quarters of it.
    - No point is half of the rise below an earlier point.
Why it costs: Failed and stopped jobs are billed like any other, from TrainingStartTime to
    TrainingEndTime.
Saving: The whole bill of the run counts as lost.
    - If a resumed run may keep a part of the work, the range goes from 0 to the whole bill, and 0
      is counted. This is so with a CheckpointConfig, with a processing job's Continuous uploads, or
      with signs of the script's own checkpoints or outputs in S3.
    - A run that failed before its training began is lost completely, and so is a trial of a tuning
      job.
    - If the run was idle for most of its time, or for its last hour, the finding says that first.
When it is wrong: A job may have left results that it wrote itself, to S3, a database or a tracker.
    - A trial that its tuning job stopped early is not lost. limit-hit judges a run that a time
      limit ended.
    - Exit code 137 says that a process was killed, usually for lack of memory.
    - CloudWatch has only the mean of a host's GPUs, so growth on one of several GPUs may not show.
      A gap in the points hides growth too.
What to do: Read the end of the job's log. Start the next run from checkpoints if there are any.
    - If GPU memory ran out, use a smaller batch with gradient accumulation, or a GPU with more
      memory. If it rose steadily, first find what keeps growing.
    - If host memory ran out, use fewer data-loader workers, or a larger type, which makes every run
      more expensive. The finding names no type above four times the current rate.
    - A short run on one small instance, or in local mode, finds most client and code errors for
      cents.
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
    "Read the end of its log before the next run, and start that run from checkpoints if there are "
    "any"
)
_LARGER_TYPE_CAUTION = (
    "A larger type makes every run more expensive, including those that would not fail."
)
CHECKPOINTS_FROM = api.Threshold(
    "max_unsaved_s",
    3600,
    "seconds",
    "the longest MaxWait without checkpoints",
    "SageMaker spot guide",
)


@api.rule(
    id="SA602",
    scope=api.FamilyCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(CHECKPOINTS_FROM, *GROWTH_THRESHOLDS),
    not_applicable=(api.free_reason,),
    can_tag_accept=False,
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Counts the run as lost, unless it was stopped or ended by a limit and left results."""
    job = case.job
    if job.status == "Completed" or job.has_never_started:
        return api.Clear()
    if (outcome := why_not_lost(job)) is not None:
        return outcome
    memory = memory_failure(case)
    resume_source = _resume_source(job)
    lost = api.possible_loss if resume_source else api.lost_spend
    retry, idle = retry_fix(job), idle_run(case)
    summary = _summary(job, memory, resume_source)
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
        caution=_caution(memory, resume_source),
    )


def _resume_source(job: api.Job) -> str | None:
    """Returns what may hold work of the run, or None. A trial is never resumed."""
    return None if is_trial(job) else possible_resume_source(job)


def _summary(job: api.Job, memory: MemoryFailure | None, resume_source: str | None) -> str:
    ran_s = job.ran_s if job.has_restarted else job.elapsed_s
    duration_text = api.duration_text(ran_s) if ran_s is not None else "some time"
    ending_text = "failed" if job.status == "Failed" else "was stopped and left no artifact"
    reason = f"{failure_class(job)}: {memory.clause}" if memory else failure_class(job)
    part_text = f"; {resume_source} may hold a part of the work" if resume_source else ""
    instances_text = job.instances or "an unknown type"
    return f"The run {ending_text} after {duration_text} on {instances_text} ({reason}){part_text}."


def _first_step(
    idle_run: IdleRun | None, memory: MemoryFailure | None, *, has_retry: bool
) -> str | None:
    """Returns what to do first; None if a retry is the fix and the run was not idle."""
    if idle_run is not None:
        return f"{idle_run.first_step}. {memory.first_step}" if memory else idle_run.first_step
    return None if has_retry else memory.first_step if memory else _READ_LOG_STEP


def _checkpoints(case: api.FamilyCase) -> tuple[api.Parameter, ...]:
    job = case.job
    has_checkpoints = job.checkpointed or job.hints.own_checkpoints or is_trial(job)
    if has_checkpoints or job.kind is not api.JobKind.TRAINING or job.status != "Failed":
        return ()
    return (api.CHECKPOINTS,) if (job.elapsed_s or 0) > case.threshold(CHECKPOINTS_FROM) else ()


def _caution(memory: MemoryFailure | None, resume_source: str | None) -> str:
    type_text = f"{_LARGER_TYPE_CAUTION} " if memory and memory.larger_type_fix else ""
    if resume_source:
        return (
            f"{type_text}A run resumed from {resume_source} keeps that work. "
            "If nobody resumes it, all of it is lost."
        )
    return f"{type_text}This money is spent. The figure is what the same failure would cost again."
