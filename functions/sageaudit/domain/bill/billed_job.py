"""A job with its bill, and what each change of it saves: the difference between two bills."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property

from msgspec import Struct

from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.billed_job import MovedBill
from sageaudit.domain.bill.change import Change, SetType
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market, Rate, comparable

_ZERO = Decimal(0)


class BilledJob(Struct, frozen=True, dict=True):
    """Each change is billed once: as a finding's own, as an end of its range, and as the first that
    is applied. A move to another type needs no lines: `MovedBill` has its sums.

    Without slots: what is worked out of the job is kept.
    """

    job: Job
    billed: Bill
    market: Market

    @cached_property
    def _changed(self) -> dict[Change, BilledJob]:
        return {}

    @cached_property
    def _moved(self) -> MovedBill | None:
        return MovedBill.of(self.job, self.market)

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
        billed = self.billed
        if isinstance(change, SetType) and (moved := self._moved_to(change)):
            return self._saving_of_move(*moved)
        after = self.after(change).billed
        if billed.total_usd is None or after.total_usd is None:
            return None
        if set(after.gaps) - set(billed.gaps) or billed.basis == "upper_bound":
            return None
        if isinstance(change, SetType) and not _comparable(billed, after):
            return None
        return max(billed.total_usd - after.total_usd, _ZERO)

    def compute_usd(self, change: Change) -> Decimal | None:
        """The compute lines of the changed job's bill; None where they are not known."""
        if isinstance(change, SetType) and (moved := self._moved_to(change)) and self._moved:
            return self._moved.compute_usd(moved[0], change.slower)
        return self.after(change).billed.compute_usd

    def _moved_to(self, change: SetType) -> tuple[Rate, Decimal] | None:
        """The new rate and the total; None where only the bill with its lines says what it is."""
        other = self.market.types.get(change.instance_type)
        rate = self.market.hourly(self.job.region, self.job.kind, change.instance_type)
        if self._moved is None or other is None or rate is None:
            return None
        usd = self._moved.total_usd(other, rate, change.slower)
        return None if usd is None else (rate, usd)

    def _saving_of_move(self, rate: Rate, usd: Decimal) -> Decimal | None:
        billed = self.billed
        if billed.total_usd is None or billed.basis == "upper_bound":
            return None
        rates = [line.rate for line in billed.lines if line.item == "compute"]
        if not all(own is None or comparable(own, rate) for own in rates):
            return None
        return max(billed.total_usd - usd, _ZERO)


def _comparable(today: Bill, changed: Bill) -> bool:
    """Whether both bills use rates of the same time and kind; a run that never started has none."""
    rates = [
        [line.rate for line in billed.lines if line.item == "compute"]
        for billed in (today, changed)
    ]
    pairs = zip(*rates, strict=False)
    return all(a is None or b is None or comparable(a, b) for a, b in pairs)
