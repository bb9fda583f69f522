"""What a run's bill comes to on another type: the total of its changed job's bill, without lines.

A run is tried on dozens of types, of which one or two are named. Its seconds, its volumes and its
month are the same on all of them, so they are looked up once; then a type costs a product.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Self

from msgspec import Struct

from sageaudit.domain.bill.bill import billed_seconds
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import VOLUME_PATHS
from sageaudit.domain.prices.market import InstanceType, Market, Rate

_HOUR_S = Decimal(3600)
_ZERO = Decimal(0)


class MovedBill(Struct, frozen=True):
    """A job whose types all change: its billed seconds, and those until its month ends.

    `gb_month_usd` and `month_left_s` are None where the volumes cost several lines, or unknown
    ones; both are 0 for a job without volumes.
    """

    seconds: Decimal
    elapsed_s: Decimal
    counts: tuple[int, ...]
    volume_gb: int
    month_hours: int
    month_left_s: Decimal | None
    gb_month_usd: Decimal | None

    @classmethod
    def of(cls, job: Job, market: Market) -> Self | None:
        """None for a job whose bill has more than compute and volumes of known seconds."""
        seconds, basis = billed_seconds(job)
        if job.free or job.groups_unknown or job.warm_pool or seconds is None or basis == "prepaid":
            return None
        counts = tuple(group.count for group in job.groups)
        span = job.elapsed_s or seconds
        if job.kind not in VOLUME_PATHS or job.volume_gb == 0:
            return cls(seconds, span, counts, 0, 1, None, _ZERO)
        rate = market.prices.storage(job.region, job.kind.row.component) if job.region else None
        begun = job.started_at
        if job.volume_gb is None or begun is None or rate is None:
            return cls(seconds, span, counts, 0, 1, None, None)
        days = monthrange(begun.year, begun.month)[1]
        begins = datetime(begun.year, begun.month, 1, tzinfo=UTC)
        left = begins + timedelta(days=days) - begun
        left_s = Decimal(int(left.total_seconds()))
        return cls(seconds, span, counts, job.volume_gb, 24 * days, left_s, rate.usd)

    def compute_usd(self, rate: Rate, times: Decimal) -> Decimal:
        """Of all instances at this rate, `times` as long."""
        seconds, total = self.seconds * times, _ZERO
        for count in self.counts:
            total += seconds * count * rate.usd / _HOUR_S
        return total

    def total_usd(self, other: InstanceType, rate: Rate, times: Decimal) -> Decimal | None:
        """On a type with this rate, `times` as long; None where only the bill itself knows."""
        seconds, total = self.seconds * times, self.compute_usd(rate, times)
        if other.ebs_billed is False or self.gb_month_usd == 0:
            return total
        if other.ebs_billed is None or self.gb_month_usd is None or self.month_left_s is None:
            return None
        if self.elapsed_s * times > self.month_left_s:
            return None
        hours = seconds / _HOUR_S
        quantity = self.volume_gb * sum(self.counts) * hours / self.month_hours
        return total + quantity * self.gb_month_usd
