"""The fix for a time limit that was too short."""

from __future__ import annotations

from sageaudit.domain.job.failure_words import MAX_RUNTIME, MAX_WAIT
from sageaudit.rules import api

LONGEST_LIMIT_S = {api.JobKind.TRAINING: 2_419_200, api.JobKind.PROCESSING: 777_600}
"""28 and 9 days: the kinds of jobs that have a limit, and what AWS allows."""
_TIMES_THE_LIMIT = 2


def higher_limit(job: api.Job, limit: str, limit_s: int | None) -> tuple[api.Parameter, ...]:
    """Twice the limit, up to the longest; MaxWait must not be shorter than MaxRuntime."""
    longest_s = LONGEST_LIMIT_S[job.kind]
    if not limit_s or limit_s >= longest_s:
        return ()
    higher_s = min(_TIMES_THE_LIMIT * limit_s, longest_s)
    fix = api.Parameter(f"StoppingCondition.{limit}", limit_s, higher_s)
    if limit != MAX_RUNTIME or job.max_wait_s is None or job.max_wait_s >= higher_s:
        return (fix,)
    wait_s = job.max_wait_s + higher_s - limit_s
    return (fix, api.Parameter(f"StoppingCondition.{MAX_WAIT}", job.max_wait_s, wait_s))
