"""Computes the bill of a job from the job and the market.

Prices are on demand. Savings Plans, credits, the free tier, S3, FSx, ECR, NAT and data transfer are
not included. A bill with an estimated rate has dollars, but is not complete.

compute = billable seconds x instances x on-demand rate of the region
storage = GB x instance-hours / hours of that calendar month, only if EBS is provisioned
warm pool = retained seconds x instances x the same rate, and its volumes

Sources: botocore (BillableTimeInSeconds, "multiply by the instance count"); the quantities match a
real eu-west-1 bill of December 2023 to the printed digit.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Literal

from msgspec import Struct

from sageaudit.domain.job.job import (
    InstanceGroup,
    Job,
    Phase,
    Purchase,
    seconds_between,
    sum_if_complete,
)
from sageaudit.domain.job.kinds import VOLUME_PATHS
from sageaudit.domain.prices.market import Market, Rate
from sageaudit.domain.prices.price_list import STORAGE

Basis = Literal["billable_seconds", "estimated_from_times", "upper_bound", "prepaid", "none"]
"""How the billed seconds are known. `billable_seconds`: reported by AWS. `estimated_from_times`:
computed from times. `upper_bound`: all seconds of a Spot run. `prepaid`: a training plan. `none`:
unknown, or not started."""

_ZERO = Decimal(0)

UPPER_BOUND = "a spot run without BillableTimeInSeconds: all its seconds are billed here"
"""The sentence in `missing` of a bill that is an upper bound."""
_HOUR_S = Decimal(3600)
_MILLIONTH = Decimal("0.000001")
"""The precision of USD in documents."""


def billed_seconds(job: Job) -> tuple[Decimal | None, Basis]:
    """Returns the wall-clock seconds billed for each instance, and how they are known.

    The seconds are None if unknown. For a running job, they end at `observed_until`.
    """
    if job.purchase is Purchase.SERVERLESS:
        return None, "none"
    elapsed_s = job.elapsed_s if job.finished else _seconds_so_far(job)
    if job.purchase is Purchase.TRAINING_PLAN:
        return job.billable_s if job.billable_s is not None else elapsed_s, "prepaid"
    if job.billable_s is not None:
        return job.billable_s, "billable_seconds"
    if elapsed_s is None:
        return None, "none"
    is_spot = job.purchase is Purchase.SPOT
    return elapsed_s, "upper_bound" if is_spot else "estimated_from_times"


def _seconds_so_far(job: Job) -> Decimal | None:
    if is_still_waiting(job):
        return _ZERO
    seconds = job.billed_phases_s
    return job.elapsed_s if seconds is None else seconds


def is_still_waiting(job: Job) -> bool:
    """Returns whether a job still waits for its instances, according to its phases."""
    has_only_waited = bool(job.phases) and not any(phase.billed for phase in job.phases)
    return not job.finished and job.started_at is None and has_only_waited


class BillLine(Struct, frozen=True):
    """One line of a bill. `usd`: exact; None if the quantity or the rate is unknown."""

    item: str
    usage_type: str | None
    quantity: Decimal | None
    unit: str
    rate: Rate | None
    usd: Decimal | None
    note: str | None = None


class PhaseCost(Struct, frozen=True):
    """A phase and its share of the compute lines: 0 if not billed, None if unknown."""

    phase: Phase
    usd: Decimal | None


class Bill(Struct, frozen=True, dict=True):
    """The lines of a bill, the cost by phase, and one sentence for each missing part.

    The class has no slots, so that sums are cached.
    """

    basis: Basis
    lines: tuple[BillLine, ...]
    phases: tuple[PhaseCost, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether no part of the bill is missing."""
        return not self.missing

    @property
    def estimated(self) -> tuple[str, ...]:
        """The sentences in `missing` about estimated rates, whose lines have dollars."""
        return estimate_sentences(self.lines)

    @property
    def gaps(self) -> tuple[str, ...]:
        """The sentences in `missing` about parts that are not in the total.

        Sentences about estimated parts are left out, because the total has these parts.
        """
        return tuple(sentence for sentence in self.missing if sentence not in self.estimated)

    @cached_property
    def compute_usd(self) -> Decimal | None:
        """The sum of the compute lines; None if a line has no price, or if there are no lines."""
        parts = [line.usd for line in self.lines if line.item == "compute"]
        return sum_if_complete(parts) if parts else None

    @property
    def volumes_usd(self) -> Decimal:
        """The sum of the known lines of volumes."""
        lines = (line for line in self.lines if line.item == "storage")
        return sum((line.usd for line in lines if line.usd is not None), _ZERO)

    @cached_property
    def total_usd(self) -> Decimal | None:
        """The sum of the known lines; None if a compute line has no price."""
        if self.compute_usd is None:
            return None
        return sum((line.usd for line in self.lines if line.usd is not None), _ZERO)


def estimate_sentences(lines: Iterable[BillLine]) -> tuple[str, ...]:
    """Returns one sentence for each estimated rate of these lines."""
    rates = (line.rate for line in lines if line.rate is not None)
    return tuple(
        dict.fromkeys(rate.estimate_basis for rate in rates if rate.estimate_basis is not None)
    )


class BillSum(Struct, frozen=True):
    """The sum of the bills of a roll-up's jobs, without lines of its own.

    `estimated`: a sentence with the number of jobs at an estimated rate, if any.
    """

    total_usd: Decimal | None
    complete: bool
    missing: tuple[str, ...]
    estimated: tuple[str, ...] = ()
    basis: Basis = "none"
    lines: tuple[BillLine, ...] = ()
    phases: tuple[PhaseCost, ...] = ()


def bill(job: Job, market: Market) -> Bill:
    """Returns the bill of one job. Unknown parts stay unknown; a job that never started costs 0."""
    if (rollup := job.kind.spec.rollup) is not None:
        return Bill("none", (), (), (rollup.cost_label,))
    if job.has_never_started:
        zero_line = BillLine("compute", None, _ZERO, "instance-hours", None, _ZERO, "never started")
        return Bill("none", (zero_line,), _phases(job, _ZERO), ())
    seconds, basis = billed_seconds(job)
    if seconds is None:
        return Bill("none", (), _phases(job, None), (_missing_seconds_reason(job),))
    if is_still_waiting(job):
        zero_line = BillLine(
            "compute", None, _ZERO, "instance-hours", None, _ZERO, "not started yet"
        )
        return Bill("none", (zero_line,), _phases(job, _ZERO), (_still_running_sentence(job),))
    if not job.groups:
        reason = job.groups_unknown or ("the instance type is not known",)
        return Bill(basis, (), _phases(job, None), reason)
    lines = list(_compute(job, market, seconds))
    if basis != "prepaid" and not job.free:
        lines += _storage(job, market, seconds, "storage")
        lines += _warm_pool(job, market)
    lines += (
        BillLine("compute", None, None, "instance-hours", None, None, reason)
        for reason in job.groups_unknown
    )
    missing = (*_missing(job, market, basis, lines), *job.groups_unknown)
    priced = Bill(basis, tuple(lines), (), missing)
    return Bill(basis, tuple(lines), _phases(job, priced.compute_usd), missing)


def _still_running_sentence(job: Job) -> str:
    until = f"{job.observed_until:%Y-%m-%d %H:%M} UTC" if job.observed_until else "an unknown time"
    has_counted_seconds = job.billed_phases_s is None and job.training_s is not None
    if job.billable_s is not None or has_counted_seconds:
        until = "the seconds that AWS counted"
    return f"the job is still running, and its cost is counted up to {until}"


def _missing_seconds_reason(job: Job) -> str:
    if not job.finished:
        return f"the job is still running (status {job.status}), and its cost so far is not known"
    if job.purchase is Purchase.SERVERLESS:
        return "a serverless job is priced by token, and no token price is known"
    return "neither billable seconds nor start and end are known"


def _compute(job: Job, market: Market, seconds: Decimal) -> Iterator[BillLine]:
    component = job.kind.spec.component
    for group in job.groups:
        hours = seconds * group.count / _HOUR_S
        rate = _free_rate(job) or _hourly(job, market, group)
        usage_type = None
        if job.region and not job.free:
            usage_type = market.prices.usage_type(job.region, component, group.instance_type)
        usd = None if rate is None else seconds * group.count * rate.usd / _HOUR_S
        note = " · ".join(filter(None, (_compute_note(job, group), rate.note if rate else None)))
        yield BillLine("compute", usage_type, hours, "instance-hours", rate, usd, note or None)


def _free_rate(job: Job) -> Rate | None:
    if job.free:
        return Rate(_ZERO, "2023-03-17", f"SageMaker guide: {job.free}, no additional cost")
    if job.purchase is Purchase.TRAINING_PLAN:
        return Rate(_ZERO, None, "prepaid capacity of a training plan")
    return None


def _hourly(job: Job, market: Market, group: InstanceGroup) -> Rate | None:
    return market.hourly(job.region, job.kind, group.instance_type)


def _compute_note(job: Job, group: InstanceGroup) -> str:
    note = f"{group.count} x {group.instance_type}"
    if job.purchase is Purchase.TRAINING_PLAN:
        return f"{note}, prepaid: marginal cost 0"
    if job.purchase is Purchase.SPOT and job.billable_s is None:
        return f"{note}, spot without billable seconds: an upper bound"
    return note if job.finished else f"{note}, so far"


def _storage(job: Job, market: Market, seconds: Decimal, item: str) -> Iterator[BillLine]:
    if job.kind not in VOLUME_PATHS or job.volume_gb == 0:
        return
    groups = [group for group in job.groups if group.instance_type in market.types]
    ebs_instances = sum(
        g.count for g in groups if market.types[g.instance_type].is_ebs_billed is True
    )
    is_unknown = len(groups) < len(job.groups) or any(
        market.types[g.instance_type].is_ebs_billed is None for g in groups
    )
    if not ebs_instances and not is_unknown:
        return
    component = job.kind.spec.component
    rate = market.prices.storage_rate(job.region, component) if job.region else None
    usage_type = None
    if job.region and item == "storage":
        usage_type = market.prices.usage_type(job.region, component, STORAGE)
    if is_unknown or job.volume_gb is None or job.started_at is None:
        reason = "when it ran is not known"
        if is_unknown or job.volume_gb is None:
            reason = "whether EBS is provisioned" if is_unknown else "the volume's size"
            reason += " is not known"
        yield BillLine(item, usage_type, None, "GB-months", rate, None, reason)
        return
    start = job.started_at
    if item == "warm_pool_storage" and job.ended_at is not None:
        start = job.ended_at
    span_s = job.elapsed_s if item == "storage" else seconds
    for month, share in _by_month(start, start + timedelta(seconds=float(span_s or seconds))):
        hours = seconds * share / _HOUR_S
        days = monthrange(month.year, month.month)[1]
        quantity = job.volume_gb * ebs_instances * hours / (24 * days)
        usd = None if rate is None else quantity * rate.usd
        note = f"{job.volume_gb} GB x {ebs_instances}, {month:%Y-%m}"
        yield BillLine(item, usage_type, quantity, "GB-months", rate, usd, note)


def _by_month(start: datetime, end: datetime) -> Iterator[tuple[datetime, Decimal]]:
    """Yields each calendar month (UTC) with its share (0..1) of the time."""
    total_s = seconds_between(start, end)
    month = datetime(start.year, start.month, 1, tzinfo=UTC)
    if not total_s:
        yield month, Decimal(1)
        return
    remaining_share = Decimal(1)
    while month < end:
        next_month = datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)
        if next_month >= end:
            yield month, remaining_share
            return
        share = (seconds_between(max(start, month), next_month) or _ZERO) / total_s
        remaining_share -= share
        yield month, share
        month = next_month


def _warm_pool(job: Job, market: Market) -> Iterator[BillLine]:
    pool = job.warm_pool
    if pool is None or not pool.retained_s:
        return
    note = f"warm pool {pool.status}" if pool.is_final else "warm pool still available: so far"
    for group in job.groups:
        rate = _hourly(job, market, group)
        seconds = pool.retained_s * group.count
        usd = None if rate is None else seconds * rate.usd / _HOUR_S
        yield BillLine("warm_pool", None, seconds / _HOUR_S, "instance-hours", rate, usd, note)
    yield from _storage(job, market, pool.retained_s, "warm_pool_storage")


def _missing(job: Job, market: Market, basis: Basis, lines: list[BillLine]) -> Iterator[str]:
    if not job.finished:
        yield _still_running_sentence(job)
    if basis == "upper_bound":
        yield UPPER_BOUND
    if job.region is None:
        yield "the region is not known"
        return
    component, prices = job.kind.spec.component, market.prices
    compute_lines = [line for line in lines if line.item == "compute"]
    unpriced = dict.fromkeys(
        group.instance_type
        for group, line in zip(job.groups, compute_lines, strict=False)
        if line.usd is None
    )
    for instance_type in unpriced:
        reason = prices.absence_reason(job.region, component, instance_type)
        no_rate = f"no {component.value} price known for {instance_type} in {job.region}"
        yield ": ".join(filter(None, (no_rate, reason)))
    unpriced_lines = [line for line in lines if "storage" in line.item and line.usd is None]
    for item in dict.fromkeys(line.item for line in unpriced_lines):
        unpriced_line = next(line for line in unpriced_lines if line.item == item)
        if unpriced_line.quantity is None:
            sentence = unpriced_line.note
        else:
            reason = prices.absence_reason(job.region, component, STORAGE)
            no_price = f"no ML storage price for {job.region} ({component.value})"
            sentence = ": ".join(filter(None, (no_price, reason)))
        yield f"{item.replace('_', ' ')}: {sentence}"
    yield from estimate_sentences(lines)
    pool = job.warm_pool
    if pool is not None and pool.status is not None and not job.free:
        if pool.retained_s is None:
            yield "warm pool: the seconds that it was retained are not known"
        elif not pool.is_final:
            yield "warm pool: still available, its figure grows"


def _phases(job: Job, compute_usd: Decimal | None) -> tuple[PhaseCost, ...]:
    """Returns each phase with its share of the compute lines, by billed seconds.

    The longest phase gets the rounding difference.
    """
    billed_s = job.billed_phases_s
    if compute_usd is None or not compute_usd or not billed_s:
        billed_phase_usd = _ZERO if compute_usd == 0 else None
        return tuple(
            PhaseCost(phase, billed_phase_usd if phase.billed else _ZERO) for phase in job.phases
        )
    shares = [
        (compute_usd * (phase.seconds or _ZERO) / billed_s).quantize(_MILLIONTH)
        if phase.billed
        else _ZERO
        for phase in job.phases
    ]
    longest = max(range(len(shares)), key=lambda index: shares[index])
    shares[longest] += compute_usd - sum(shares, _ZERO)
    return tuple(PhaseCost(*pair) for pair in zip(job.phases, shares, strict=True))
