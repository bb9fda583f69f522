"""What a warm pool would have done between the runs of a family: whom it served, what it waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.job.job import Job, seconds_between

_WAITING = ("Starting", "Pending", "LaunchingMLInstances", "PreparingTrainingStack")
_MINUTE = Decimal(60)
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Span:
    """One run: when it was asked for and ended, how long it waited and was billed."""

    asked_at: datetime
    ended_at: datetime
    waited_s: Decimal
    worked_s: Decimal


@dataclass(frozen=True, slots=True)
class Pool:
    """A keep-alive just above the longest gap that it serves, and what it does for each run."""

    keep_s: int
    retained_s: Decimal
    served_percent: Decimal


def span_of(job: Job) -> Span | None:
    """A job's own span; None where a time is not known, or nothing was billed."""
    waits = [job.phase_s(name) for name in _WAITING]
    known = [value for value in waits if value is not None]
    if len(known) < len(waits) or not job.elapsed_s:
        return None
    if job.created_at is None or job.ended_at is None:
        return None
    return Span(job.created_at, job.ended_at, sum(known, _ZERO), job.elapsed_s)


def span_of_earlier(run: EarlierRun) -> Span | None:
    """An earlier run's span, counted back from its end."""
    worked_s, phase_s = run.facts.elapsed_s, run.facts.phase_s
    if not worked_s or not any(name in phase_s for name in _WAITING):
        return None
    waited_s = sum((phase_s.get(name, _ZERO) for name in _WAITING), _ZERO)
    asked_at = run.ended_at - timedelta(seconds=float(waited_s + worked_s))
    return Span(asked_at, run.ended_at, waited_s, worked_s)


def model_warm_pool(spans: Sequence[Span], at_most_s: Decimal) -> Pool | None:
    """A pool between runs, newest first; None where no gap is within `at_most_s` seconds.

    A run that was asked for while the one before still ran cannot take over its instances: that
    pool waits to its end in vain, as it does before a run that comes too late.
    """
    gaps = [seconds_between(before.ended_at, after.asked_at) for after, before in pairwise(spans)]
    served = [gap for gap in gaps if gap is not None and gap <= at_most_s]
    if not served:
        return None
    keep_s = min((max(served) // _MINUTE + 1) * _MINUTE, at_most_s)
    in_vain_s = keep_s * (len(gaps) - len(served))
    return Pool(
        int(keep_s),
        (sum(served, _ZERO) + in_vain_s) / len(gaps),
        Decimal(100 * len(served)) / len(gaps),
    )
