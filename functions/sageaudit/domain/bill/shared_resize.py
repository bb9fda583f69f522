"""One resize for all rules of an audit that ask the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from sageaudit.domain.bill.resize import Resize, resize
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType, Market, comparable
from sageaudit.domain.usage.measurements import Measurements

_Question = tuple[Job, Measurements, Market, Decimal, tuple[Measurements, ...]]


@dataclass(frozen=True, slots=True)
class Resizes:
    """The answers of `resize` in one audit: rules that ask the same share one answer.

    Types that cost as much by the hour, or more, are left out: no rule names them.
    """

    _known: list[tuple[_Question, Resize]] = field(default_factory=list)

    def resize(
        self,
        job: Job,
        whole: Measurements,
        market: Market,
        headroom_percent: Decimal,
        also: tuple[Measurements, ...] = (),
    ) -> Resize:
        """As the function `resize`, for equal arguments once."""
        asked = (job, whole, market, headroom_percent, also)
        for question, answer in self._known:
            if question == asked:
                return answer
        answer = resize(
            job,
            whole,
            market,
            headroom_percent=headroom_percent,
            also=also,
            only=_may_cost_less(job, market),
        )
        self._known.append((asked, answer))
        return answer


def _may_cost_less(job: Job, market: Market) -> Callable[[InstanceType], bool]:
    """False for types that are known to cost no less by the hour than the job's own."""
    today = market.hourly(job.region, job.kind, job.groups[0].instance_type)

    def may(other: InstanceType) -> bool:
        rate = market.hourly(job.region, job.kind, other.name)
        if today is None or rate is None or rate.usd < today.usd:
            return True
        return not comparable(today, rate)

    return may
