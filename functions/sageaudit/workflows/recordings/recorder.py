"""Keeps what an audit reads of one job after the other, so that it can be written down.

The audit itself runs as always: each source is asked as before, and its answer is kept on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.files.recording import AsRead, Recording
from sageaudit.adapters.prices.listed_prices import ListedPrices
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.measurements import Missing, ReadSeries
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies, Audited

_NOTHING_ASKED = ReadSeries((), Missing("metric_missing", "the metrics were not asked for"))


class AnswerRecorder(CloudWatchMetrics):
    """Stands before an audit's jobs, metrics and markets, and keeps what they answer.

    It begins anew with each Describe.
    """

    def __init__(
        self,
        asked: AuditDependencies,
        cloudwatch_of: Callable[[str, str], Any],
        types: Mapping[str, InstanceType],
    ) -> None:
        """`cloudwatch_of` returns the CloudWatch client for an account and region."""
        super().__init__(cloudwatch_of, types)
        self._asked = asked
        self._begin({})

    def _begin(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer
        self._tags: Mapping[str, str] | None = None
        self._metrics = _NOTHING_ASKED
        self._prices: ListedPrices | None = None

    @property
    def dependencies(self) -> AuditDependencies:
        """The same dependencies, with the recorder before those that a recording needs."""
        return replace(self._asked, jobs=self, metrics=self, markets=self)

    def recording(self, ref: JobRef, done: Audited, now: datetime) -> Recording:
        """The recording of the job that was audited last."""
        metrics = self._metrics
        return Recording(
            describe=self._answer,
            tags=self._tags or {},
            all_tags=self._tags is not None,
            series=metrics.series,
            account=ref.account,
            region=ref.region,
            as_read=AsRead(now, metrics.absent, metrics.notes, done.notes, self._prices),
        )

    def describe(self, ref: JobRef) -> dict[str, Any]:
        """What SageMaker answers, kept."""
        answer = self._asked.jobs.describe(ref)
        self._begin(answer)
        return answer

    def tags(self, ref: JobRef) -> dict[str, str]:
        """The tags, kept."""
        tags = self._asked.jobs.tags(ref)
        self._tags = tags
        return tags

    def children(self, ref: JobRef) -> Iterable[JobRef] | None:
        """The jobs that a roll-up launched."""
        return self._asked.jobs.children(ref)

    def series(self, job: Job, now: datetime) -> ReadSeries:
        """What CloudWatch answers, kept."""
        self._metrics = super().series(job, now)
        return self._metrics

    def market(self, job: Job, now: datetime) -> Market:
        """The market, whose price list is kept."""
        market = self._asked.markets.market(job, now)
        known = getattr(market.prices, "sources", ())
        self._prices = next((one for one in known if isinstance(one, ListedPrices)), None)
        return market
