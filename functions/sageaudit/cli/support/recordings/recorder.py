"""Keeps what an audit reads of one job after the other, so that it can be written down.

The audit itself runs as always: each source is asked as before, and its answer is kept on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.files.as_read import AsRead
from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.prices.listed_prices import ListedPrices
from sageaudit.domain.job import buckets
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.measurements import Missing, ReadSeries
from sageaudit.ports import Buckets, Jobs, Markets
from sageaudit.workflows.audit.attempt import AuditDependencies, Audited

_NOTHING_ASKED = ReadSeries((), Missing("metric_missing", "the metrics were not asked for"))


@dataclass(slots=True)
class ReadAnswers:
    """What was read of the job that is being audited."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    regions: Mapping[str, str] | None = None
    metrics: ReadSeries = _NOTHING_ASKED
    prices: ListedPrices | None = None


class Recorder:
    """Records the answers of an audit's sources. `read` begins anew with each Describe."""

    def __init__(self) -> None:
        self.read = ReadAnswers()

    def around(
        self,
        deps: AuditDependencies,
        cloudwatch_of: Callable[[str, str], Any],
        types: Mapping[str, InstanceType],
    ) -> AuditDependencies:
        """The same dependencies, with a recorder around each source that a recording needs.

        `cloudwatch_of` returns the CloudWatch client for an account and region.
        """
        return replace(
            deps,
            jobs=_RecordedJobs(deps.jobs, self),
            metrics=_RecordedMetrics(cloudwatch_of, types, self),
            buckets=_RecordedBuckets(deps.buckets, self),
            markets=_RecordedMarkets(deps.markets, self),
        )

    def recording(self, ref: JobRef, done: Audited, now: datetime) -> Recording:
        """The recording of the job that was audited last."""
        read = self.read
        located = {} if read.regions is None else {buckets.KEY: dict(read.regions)}
        return Recording(
            describe={**read.answer, **located},
            tags=read.tags,
            series=read.metrics.series,
            account=ref.account,
            region=ref.region,
            as_read=AsRead(now, read.metrics.absent, read.metrics.notes, done.notes, read.prices),
        )


class _RecordedJobs:
    def __init__(self, inner: Jobs, recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    def describe(self, ref: JobRef) -> dict[str, Any]:
        answer = self._inner.describe(ref)
        self._recorder.read = ReadAnswers(answer=answer)
        return answer

    def tags(self, ref: JobRef) -> dict[str, str]:
        tags = self._inner.tags(ref)
        self._recorder.read.tags = tags
        return tags

    def children(self, ref: JobRef) -> Iterator[JobRef]:
        return self._inner.children(ref)


class _RecordedMetrics(CloudWatchMetrics):
    def __init__(
        self,
        client_of: Callable[[str, str], Any],
        types: Mapping[str, InstanceType],
        recorder: Recorder,
    ) -> None:
        super().__init__(client_of, types)
        self._recorder = recorder

    def series(self, job: Job, now: datetime) -> ReadSeries:
        """What CloudWatch answered, kept."""
        self._recorder.read.metrics = super().series(job, now)
        return self._recorder.read.metrics


class _RecordedBuckets:
    def __init__(self, inner: Buckets, recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    def regions(self, account: str, region: str, names: Sequence[str]) -> Mapping[str, str]:
        regions = self._inner.regions(account, region, names)
        self._recorder.read.regions = regions
        return regions


class _RecordedMarkets:
    def __init__(self, inner: Markets, recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    def market(self, job: Job, now: datetime) -> Market:
        market = self._inner.market(job, now)
        known = getattr(market.prices, "sources", ())
        self._recorder.read.prices = next((s for s in known if isinstance(s, ListedPrices)), None)
        return market
