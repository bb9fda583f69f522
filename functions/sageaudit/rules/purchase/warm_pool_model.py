"""The times between the runs of a family, and the keep-alive that costs least for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from msgspec import Struct

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.course import START_PHASES
from sageaudit.domain.job.job import Job, seconds_between
from sageaudit.rules import api

_MINUTE = Decimal(60)
_ZERO = Decimal(0)
MAX_KEEP_ALIVE_S = 3600
"""The largest KeepAlivePeriodInSeconds (API reference, ResourceConfig)."""


class RunTimes(Struct, frozen=True):
    """When a run was requested and ended, and how many seconds it waited for its start."""

    requested_at: datetime
    ended_at: datetime
    waited_s: Decimal


def run_times(job: Job) -> RunTimes | None:
    """Returns a job's times, or None if a time is not known or nothing was billed."""
    waited_s = api.sum_if_complete(map(job.phase_s, START_PHASES))
    if waited_s is None or not job.elapsed_s or job.created_at is None or job.ended_at is None:
        return None
    return RunTimes(job.created_at, job.ended_at, waited_s)


def run_times_from_summary(run: AuditSummary) -> RunTimes | None:
    """Returns an earlier run's times, computed back from its end.

    None if its duration or its start phases are not known.
    """
    worked_s, phase_s = run.elapsed_s, run.phase_s
    if not worked_s or not any(name in phase_s for name in START_PHASES):
        return None
    waited_s = sum((phase_s.get(name, _ZERO) for name in START_PHASES), _ZERO)
    requested_at = run.ended_at - timedelta(seconds=float(waited_s + worked_s))
    return RunTimes(requested_at, run.ended_at, waited_s)


def gaps_between(runs: Sequence[RunTimes]) -> list[Decimal | None]:
    """Returns the seconds from the end of each run to the request of the next run.

    Runs and gaps are in the same order, newest first. None stands for a run that was requested
    before the previous run had ended.
    """
    return [
        seconds_between(before.ended_at, after.requested_at) for after, before in pairwise(runs)
    ]


def best_keep_alive(gaps: Sequence[Decimal | None], start_s: Decimal) -> int:
    """Returns the keep-alive, in seconds of whole minutes, that costs least over these gaps. 0: no
    pool.

    A pool waits for each gap, but no longer than the keep-alive. A shorter gap saves `start_s`
    seconds. A gap of None means that no run used the pool.
    """

    def net_s(keep_s: Decimal) -> Decimal:
        waited = (keep_s if gap is None else min(gap, keep_s) for gap in gaps)
        saved = sum(gap is not None and gap < keep_s for gap in gaps)
        return sum(waited, _ZERO) - saved * start_s

    keep_alives = {
        (gap // _MINUTE + 1) * _MINUTE for gap in gaps if gap is not None and gap < MAX_KEEP_ALIVE_S
    }
    return int(min((_ZERO, *sorted(keep_alives)), key=net_s))
