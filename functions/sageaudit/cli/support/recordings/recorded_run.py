"""A job's run with its measurements and market, and how to read one from a recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from sageaudit.adapters.files import recording
from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.prices import sources
from sageaudit.domain.audit.earlier import EarlierRun, facts_of
from sageaudit.domain.job.describe import latest_time, parse
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.phases import so_far
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Missing, RawSeries
from sageaudit.domain.usage.pooled_runs import PooledRuns, short_use
from sageaudit.errors import SageauditError
from sageaudit.workflows.audit.family_runs import POOL_RUNS, may_pool, pool_of

ABSENT = Missing(
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
    """The run in a recording. Raises Malformed.

    As of the moment and at the prices with which a live job was read; of a recording without them
    as of the job's end, at packaged prices.
    """
    job = parse(recorded.describe, recorded.tags, account=recorded.account, region=recorded.region)
    now = as_of(job, recorded)
    job = so_far(job, now)
    market = market_of(recorded, job, now)
    return Run(job, measured(recorded, job, market.types), market, now)


def market_of(recorded: Recording, job: Job, now: datetime) -> Market:
    """Types, and the recorded price list before the packaged prices."""
    read = recorded.as_read
    return sources.offline_markets().market(job, now, read.prices if read else None)


def measured(recorded: Recording, job: Job, types: Mapping[str, InstanceType]) -> Measurements:
    """The measurements of the recorded series."""
    read = recorded.as_read
    absent, notes = (read.absent, read.metric_notes) if read else (ABSENT, ())
    return measure(job, recorded.series, types, absent=absent, notes=notes)


class RecordedRuns:
    """The runs in several recordings, read when the first short one is judged with the others.

    A recording of a live job is judged with those of other files only, since a live audit without a
    history judges each job alone: without any there is no pool.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._families: dict[str | None, _Families] = {}

    def pool(self, run: Run, family_tag: str | None) -> PooledRuns | None:
        """The minutes of a short run with those of its family before it; None for a long one."""
        ended_at = run.job.ended_at
        if ended_at is None or short_use(run.usage) is None:
            return None
        before = {
            (earlier.name, earlier.ended_at): (earlier, other)
            for earlier, other in self._family(run.job, family_tag)
            if earlier.ended_at < ended_at and may_pool(run.job, earlier)
        }
        newest = sorted(before.values(), key=lambda pair: pair[0].ended_at, reverse=True)
        uses = [(earlier.name, other.usage) for earlier, other in newest[:POOL_RUNS]]
        return pool_of(run.job, run.usage, uses)

    def _family(self, job: Job, family_tag: str | None) -> list[tuple[EarlierRun, Run]]:
        """The runs of a job's family in its account and region; one in two files is there twice."""
        if family_tag not in self._families:
            found: _Families = {}
            for other in self._runs:
                if (earlier := _earlier(other, family_tag)) is not None:
                    found.setdefault(_place(other.job, earlier.family), []).append((earlier, other))
            self._families[family_tag] = found
        return self._families[family_tag].get(_place(job, family(job, family_tag)), [])

    @cached_property
    def _runs(self) -> list[Run]:
        """Without files that cannot be read: whoever audits such a file says so."""
        runs = []
        for path in self._paths:
            with suppress(SageauditError):
                read = recording.read(path)
                of_file = (read,) if isinstance(read, Recording) else read.children
                runs += [of_recording(one) for one in of_file]
        return runs


_Place = tuple[str | None, str | None, str]
_Families = dict[_Place, list[tuple[EarlierRun, Run]]]


def _place(job: Job, named: str) -> _Place:
    """A family is one of an account and region, as in the history."""
    return job.account, job.region, named


def _earlier(run: Run, family_tag: str | None) -> EarlierRun | None:
    job = run.job
    if job.ended_at is None:
        return None
    return EarlierRun(
        name=job.name,
        kind=job.kind.value,
        status=job.status,
        family=family(job, family_tag),
        owner=None,
        ended_at=job.ended_at,
        total_usd=None,
        avoidable_usd=None,
        lost_usd=None,
        facts=facts_of(job, reason_class=None, found=(), usage=run.usage),
    )


def as_of(job: Job, recorded: Recording) -> datetime:
    """When a live job was read; of any other recording the job's end, and of a job that has not
    ended the latest time that the recording shows.
    """
    if recorded.as_read is not None:
        return recorded.as_read.as_of
    if job.finished and job.ended_at:
        return job.ended_at
    latest = filter(None, (latest_time(recorded.describe), *map(_last_point, recorded.series)))
    return job.ended_at or max(latest, default=datetime.now(UTC))


def _last_point(series: RawSeries) -> datetime | None:
    known = [number for number, value in enumerate(series.values) if value is not None]
    return series.start + timedelta(seconds=known[-1] * series.period_s) if known else None
