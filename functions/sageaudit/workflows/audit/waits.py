"""What an audit may wait for, how often, and how long each time.

Each reason has a counter of its own, which travels with the message: a Describe answer that is
behind never uses up the time that late metrics have.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.measurements import (
    METRICS_COME_WITHIN,
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
)

LATE_METRICS_WITHIN = timedelta(minutes=20)
"""Metrics are expected this soon after the end of a job: an event of a later time does not wait."""
_LONGEST_S = 900
"""The longest delay that SQS gives a message."""


class Wait(enum.StrEnum):
    """Why an audit waits."""

    NOT_FOUND = "not_found"
    """Describe does not find the run yet, or its answer cannot be read."""
    DESCRIBE_BEHIND = "describe_behind"
    """Describe says that the job still runs."""
    LATE_METRICS = "late_metrics"
    CHILDREN = "children"
    """Training jobs of a tuning job are not audited yet."""
    TAGS = "tags"
    """ListTags was throttled or did not answer."""


Deliveries = Mapping[Wait, int]
"""How often this event has waited, by reason; absent reasons: never."""

DELAYS_S: Mapping[Wait, tuple[int, ...]] = {
    # Eventual consistency takes seconds; after six minutes the job is gone.
    Wait.NOT_FOUND: (60, 300),
    Wait.DESCRIBE_BEHIND: (60, 120, 240, 480, *[_LONGEST_S] * 8),
    Wait.LATE_METRICS: (_LONGEST_S,),
    Wait.CHILDREN: (_LONGEST_S,) * 3,
    # Tags decide family and owner: an hour of throttling is waited out.
    Wait.TAGS: (60, 120, 240, 480, *[_LONGEST_S] * 5),
}
"""The delay of each wait of a reason in seconds; after the last one the audit does without."""


@dataclass(frozen=True, slots=True)
class Later:
    """The audit must wait: deliver the same event again after `delay_s` seconds."""

    delay_s: int
    wait: Wait
    reason: str


def later(wait: Wait, deliveries: Deliveries | None, reason: str) -> Later | None:
    """The next wait for this reason; None when all are used up, or none is possible (None)."""
    waited = len(DELAYS_S[wait]) if deliveries is None else deliveries.get(wait, 0)
    left = DELAYS_S[wait][waited:]
    return Later(left[0], wait, reason) if left else None


def metrics_are_late(job: Job, usage: Measurements, *, now: datetime, waited: bool = False) -> bool:
    """True when metrics are incomplete and may still come, or the audit waited for them.

    However late the first audit of a run is, it is not the last one while metrics may come.
    """
    may_come = job.ended_at is not None and now - job.ended_at < METRICS_COME_WITHIN
    return (may_come or waited) and _metrics_incomplete(job, usage)


def wait_for_metrics(job: Job, deliveries: Deliveries | None, *, now: datetime) -> Later | None:
    """The wait for metrics that are late, where the job ended so lately that it is worth one."""
    if job.ended_at is None or now - job.ended_at >= LATE_METRICS_WITHIN:
        return None
    return later(Wait.LATE_METRICS, deliveries, "its metrics are not complete yet")


def _metrics_incomplete(job: Job, usage: Measurements) -> bool:
    """True when a run that is long enough to be judged has too few metric points."""
    if not job.elapsed_s or job.elapsed_s < MIN_ACTIVE_MINUTES * 60:
        return False
    missing = usage.missing.get(Metric.CPU)
    if missing is not None:
        return missing.code == "metric_missing"
    wanted = [Metric.CPU, *([Metric.GPU] if usage.gpus else [])]
    return any((usage.share(metric) or 0.0) < MIN_COVERAGE for metric in wanted)
