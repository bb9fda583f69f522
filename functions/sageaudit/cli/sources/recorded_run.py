"""A job's run with its measurements and market, and how to read one from a recording."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.prices import sources
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Missing, measure


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
    now = job.ended_at or datetime.now(UTC)
    market = sources.offline_markets().market(job, now)
    absent = Missing("metric_missing", "not in this recording")
    return Run(job, measure(job, recorded.series, market.types, absent=absent), market, now)
