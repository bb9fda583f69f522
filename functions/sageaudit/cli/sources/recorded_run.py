"""A job's run with its measurements and market, and how to read one from a recording."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.prices import sources
from sageaudit.domain.job.describe import latest_time, parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.phases import so_far
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Missing, RawSeries

_ABSENT = Missing(
    "metric_missing",
    "the recording lacks these metrics of this job",
    "Add its CloudWatch metrics to the recording, or audit the job by its name.",
)


@dataclass(frozen=True, slots=True)
class Run:
    """A job, its measurements, and the market to bill it with, all as of `now`."""

    job: Job
    usage: Measurements
    market: Market
    now: datetime


def of_recording(recorded: Recording) -> Run:
    """The run in a recording, as of the job's end, at packaged prices. Raises Malformed."""
    job = parse(recorded.describe, recorded.tags, account=recorded.account, region=recorded.region)
    now = _as_of(job, recorded)
    job = so_far(job, now)
    market = sources.offline_markets().market(job, now)
    return Run(job, measure(job, recorded.series, market.types, absent=_ABSENT), market, now)


def _as_of(job: Job, recorded: Recording) -> datetime:
    """The job's end; of a job that has not ended, the latest time that the recording shows."""
    if job.finished and job.ended_at:
        return job.ended_at
    latest = filter(None, (latest_time(recorded.describe), *map(_last_point, recorded.series)))
    return job.ended_at or max(latest, default=datetime.now(UTC))


def _last_point(series: RawSeries) -> datetime | None:
    known = [number for number, value in enumerate(series.values) if value is not None]
    return series.start + timedelta(seconds=known[-1] * series.period_s) if known else None
