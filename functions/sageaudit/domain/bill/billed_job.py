"""A job with its bill, and what each change of the job saves: the difference between two bills.

Some fixes are not possible for a job, or not together:

| fix | not with | because |
|---|---|---|
| managed spot | warm pool, instance groups, training plan, serverless | SageMaker refuses it |
| managed spot | several p4, p5 or p6 instances | all must be available at once, and stay so |
| managed spot | a Savings Plan | spot takes usage from a commitment that is paid anyway |
| early stopping of a tuning job | Hyperband | it stops early itself, and refuses `Auto` |
| another type | a higher hourly rate | no later recommendation would reverse the move |

Sources: SageMaker guide on warm pools and managed spot; automatic model tuning, early stopping; EC2
user guide, Capacity Blocks for ML, which reserve "highly sought-after GPU instances" (p4d, p5 and
later).
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Self

from msgspec import Struct

from sageaudit.domain.bill.bill import Bill, bill, billed_seconds
from sageaudit.domain.bill.change import Change, SetPurchase, SetType
from sageaudit.domain.bill.finding import Bucket, Confidence, Detection
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import VOLUME_PATHS
from sageaudit.domain.prices.market import InstanceType, Market, Rate, is_comparable
from sageaudit.structs import replace

_SCARCE_TYPES = re.compile(r"ml\.p[4-9]")
HYPERBAND = "Hyperband"
_MAY_NOT_BE_OFFERED = "a possible saving, as SageMaker may not sell the type here"
_ESTIMATED_DOLLARS = "Its dollars rest on an estimated rate."

_HOUR_S = Decimal(3600)
_ZERO = Decimal(0)


class BilledJob(Struct, frozen=True, dict=True):
    """A job with its bill, and the bills of its changes.

    A change's bill is cached, because several fixes may use it. The class has no slots for this
    reason.
    """

    job: Job
    bill: Bill
    market: Market

    @cached_property
    def _changed_jobs(self) -> dict[Change, BilledJob]:
        return {}

    @cached_property
    def _other_type_bill(self) -> BillOnType | None:
        return BillOnType.from_job(self.job, self.market)

    def with_change(self, change: Change) -> BilledJob:
        """Returns the changed job with its bill."""
        if change not in self._changed_jobs:
            job = change.apply(self.job)
            self._changed_jobs[change] = BilledJob(job, bill(job, self.market), self.market)
        return self._changed_jobs[change]

    def saving_usd(self, change: Change) -> Decimal | None:
        """Returns what one change saves, in USD, at least 0; None if unknown.

        It is unknown if a bill is unknown or an upper bound. It is also unknown if the changed bill
        lacks a line, or the new type has no price of the same time and kind.
        """
        billed = self.bill
        if isinstance(change, SetType) and (quote := self._rate_and_total(change)):
            return self._type_saving_usd(*quote)
        changed_bill = self.with_change(change).bill
        if billed.total_usd is None or changed_bill.total_usd is None:
            return None
        if set(changed_bill.gaps) - set(billed.gaps) or billed.basis == "upper_bound":
            return None
        if isinstance(change, SetType) and not _is_comparable(billed, changed_bill):
            return None
        return max(billed.total_usd - changed_bill.total_usd, _ZERO)

    def compute_usd(self, change: Change) -> Decimal | None:
        """Returns the compute dollars of the changed job's bill; None if unknown."""
        if (
            isinstance(change, SetType)
            and (quote := self._rate_and_total(change))
            and self._other_type_bill
        ):
            return self._other_type_bill.compute_usd(quote[0], change.time_factor)
        return self.with_change(change).bill.compute_usd

    def _rate_and_total(self, change: SetType) -> tuple[Rate, Decimal] | None:
        """Returns the other type's rate and total; None if `BillOnType` cannot compute them."""
        other_type = self.market.types.get(change.instance_type)
        rate = self.market.hourly(self.job.region, self.job.kind, change.instance_type)
        if self._other_type_bill is None or other_type is None or rate is None:
            return None
        usd = self._other_type_bill.total_usd(other_type, rate, change.time_factor)
        return None if usd is None else (rate, usd)

    def _type_saving_usd(self, rate: Rate, usd: Decimal) -> Decimal | None:
        billed = self.bill
        if billed.total_usd is None or billed.basis == "upper_bound":
            return None
        rates = [line.rate for line in billed.lines if line.item == "compute"]
        if not all(
            current_rate is None or is_comparable(current_rate, rate) for current_rate in rates
        ):
            return None
        return max(billed.total_usd - usd, _ZERO)


def _is_comparable(current_bill: Bill, changed_bill: Bill) -> bool:
    rates = [
        [line.rate for line in billed.lines if line.item == "compute"]
        for billed in (current_bill, changed_bill)
    ]
    pairs = zip(*rates, strict=False)
    return all(
        current_rate is None or changed_rate is None or is_comparable(current_rate, changed_rate)
        for current_rate, changed_rate in pairs
    )


class BillOnType(Struct, frozen=True):
    """The figures of a job from which its total on one other type is computed quickly.

    `seconds`: the billed seconds of each instance. `counts`: the instances of each group.
    `month_hours`: the hours of the start's calendar month. `month_left_s`: the seconds from the
    start to the end of that month; None without volumes, or if unknown. `gb_month_usd`: the price
    of the volumes; 0 without volumes, None if unknown.
    """

    seconds: Decimal
    elapsed_s: Decimal
    counts: tuple[int, ...]
    volume_gb: int
    month_hours: int
    month_left_s: Decimal | None
    gb_month_usd: Decimal | None

    @classmethod
    def from_job(cls, job: Job, market: Market) -> Self | None:
        """Returns the figures of a job.

        None if its bill has other parts than compute and volumes, or is unknown.
        """
        seconds, basis = billed_seconds(job)
        if job.free or job.groups_unknown or job.warm_pool or seconds is None or basis == "prepaid":
            return None
        counts = tuple(group.count for group in job.groups)
        elapsed_s = job.elapsed_s or seconds
        if job.kind not in VOLUME_PATHS or job.volume_gb == 0:
            return cls(seconds, elapsed_s, counts, 0, 1, None, _ZERO)
        rate = (
            market.prices.storage_rate(job.region, job.kind.spec.component) if job.region else None
        )
        started_at = job.started_at
        if job.volume_gb is None or started_at is None or rate is None:
            return cls(seconds, elapsed_s, counts, 0, 1, None, None)
        days = monthrange(started_at.year, started_at.month)[1]
        month_start = datetime(started_at.year, started_at.month, 1, tzinfo=UTC)
        month_left_s = month_start + timedelta(days=days) - started_at
        left_s = Decimal(int(month_left_s.total_seconds()))
        return cls(seconds, elapsed_s, counts, job.volume_gb, 24 * days, left_s, rate.usd)

    def compute_usd(self, rate: Rate, time_factor: Decimal) -> Decimal:
        """Returns the cost of all instances at this rate.

        `time_factor`: how many times as long the run takes.
        """
        seconds, total = self.seconds * time_factor, _ZERO
        for count in self.counts:
            total += seconds * count * rate.usd / _HOUR_S
        return total

    def total_usd(
        self, instance_type: InstanceType, rate: Rate, time_factor: Decimal
    ) -> Decimal | None:
        """Returns the total at this rate. None if it needs a complete bill, such as over two
        months.
        """
        seconds, total = self.seconds * time_factor, self.compute_usd(rate, time_factor)
        if instance_type.is_ebs_billed is False or self.gb_month_usd == 0:
            return total
        if (
            instance_type.is_ebs_billed is None
            or self.gb_month_usd is None
            or self.month_left_s is None
        ):
            return None
        if self.elapsed_s * time_factor > self.month_left_s:
            return None
        hours = seconds / _HOUR_S
        quantity = self.volume_gb * sum(self.counts) * hours / self.month_hours
        return total + quantity * self.gb_month_usd


def spot_refusal(job: Job) -> str | None:
    """Returns why a job cannot run on managed Spot; None if it can."""
    reasons = (
        (job.purchase is Purchase.SPOT, "it ran on managed spot"),
        (job.purchase is Purchase.TRAINING_PLAN, "its training plan is prepaid"),
        (job.purchase is Purchase.SERVERLESS, "it is serverless"),
        (
            len(job.groups) > 1 or any(group.name for group in job.groups),
            "managed spot does not take instance groups",
        ),
        (job.warm_pool is not None, "managed spot does not keep a warm pool"),
    )
    return next((reason for applies, reason in reasons if applies), None)


def spot_capacity_refusal(job: Job) -> str | None:
    """Returns why a saving on Spot does not count, as its capacity is too scarce; None if it
    counts.
    """
    has_several_instances = (job.instance_count or 0) > 1
    scarce_types = [g.instance_type for g in job.groups if _SCARCE_TYPES.match(g.instance_type)]
    if not has_several_instances or not scarce_types:
        return None
    return f"spot capacity for several {scarce_types[0]} at once cannot be counted on"


def early_stopping_refusal(strategy: str | None) -> str | None:
    """Returns why a tuning job cannot have TrainingJobEarlyStoppingType Auto; None if it can."""
    return "Hyperband stops trials early itself" if strategy == HYPERBAND else None


def type_change_refusal(job: Job) -> str | None:
    """Returns why no other type is considered for the job; None if its type can change."""
    if len({group.instance_type for group in job.groups}) > 1:
        return "its instances are of several types"
    is_prepaid = job.purchase is Purchase.TRAINING_PLAN
    return "its training plan is prepaid, for this type" if is_prepaid else None


def change_refusal(change: Change, job: Job, *, savings_plan: bool) -> str | None:
    """Returns why a change's dollars are not counted for this job; None if they are."""
    if not isinstance(change, SetPurchase) or change.purchase is not Purchase.SPOT:
        return None
    if savings_plan:
        return "spot takes usage from a Savings Plan that is paid used or not"
    return spot_refusal(job)


def limit_to_possible(detection: Detection, job: Job, market: Market) -> Detection:
    """Returns the detection, moved to bucket `possible` if its saving is uncertain.

    A saving is uncertain if it depends on an estimated rate or an unknown run time.
    """
    estimate_basis = rate_estimate_basis(detection, job, market)
    needs_trial = isinstance(detection.change, SetType) and detection.change.needs_trial
    if estimate_basis is None and not needs_trial:
        return detection
    estimate_text = f"{estimate_basis}: {_MAY_NOT_BE_OFFERED}." if estimate_basis else None
    caution = " ".join(filter(None, (detection.caution, estimate_text)))
    if not detection.bucket.is_counted:
        return replace(detection, caution=caution)
    return replace(
        detection, confidence=Confidence.HEURISTIC, bucket=Bucket.POSSIBLE, caution=caution
    )


def rate_estimate_basis(detection: Detection, job: Job, market: Market) -> str | None:
    """Returns how the rate of a finding's new type was estimated; None for other rates."""
    if not isinstance(detection.change, SetType):
        return None
    rate = market.hourly(job.region, job.kind, detection.change.instance_type)
    return None if rate is None else rate.estimate_basis


def mark_estimated(detection: Detection) -> Detection:
    """Returns the detection with a caution that its dollars are estimates; unchanged without
    dollars.
    """
    if "$" in detection.summary or any("usd" in key.split("_") for key in detection.evidence):
        return replace(
            detection, caution=" ".join(filter(None, (detection.caution, _ESTIMATED_DOLLARS)))
        )
    return detection
