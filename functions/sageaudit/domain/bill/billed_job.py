"""A job with its bill, and what each change of it saves: the difference between two bills."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.change import Change, SetType
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market, comparable

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class BilledJob:
    """Each change is billed once: as a finding's own, as an end of its range, and as the first that
    is applied.
    """

    job: Job
    billed: Bill
    market: Market
    _changed: dict[Change, BilledJob] = field(default_factory=dict)

    def after(self, change: Change) -> BilledJob:
        """The changed job with its bill."""
        if change not in self._changed:
            job = change.apply(self.job)
            self._changed[change] = BilledJob(job, bill(job, self.market), self.market)
        return self._changed[change]

    def saving(self, change: Change) -> Decimal | None:
        """What one change saves, at least 0.

        None when either bill is unknown or an upper bound, when the changed bill lacks a line that
        the first one has (fewer known lines are not a saving), and when the other type has no price
        of the same time and kind.
        """
        billed, after = self.billed, self.after(change).billed
        if billed.total_usd is None or after.total_usd is None:
            return None
        if set(after.gaps) - set(billed.gaps) or billed.basis == "upper_bound":
            return None
        if isinstance(change, SetType) and not _comparable(billed, after):
            return None
        return max(billed.total_usd - after.total_usd, _ZERO)


def _comparable(today: Bill, changed: Bill) -> bool:
    """Whether both bills use rates of the same time and kind; a run that never started has none."""
    rates = [
        [line.rate for line in billed.lines if line.item == "compute"]
        for billed in (today, changed)
    ]
    pairs = zip(*rates, strict=False)
    return all(a is None or b is None or comparable(a, b) for a, b in pairs)
