"""The same run on other instance types: its recorded use and its bill on each candidate.

A candidate is refused with the constraint that it breaks. It is also refused when the use of a
resource was not recorded, unless an idle GPU is dropped and everything else stays. With the same
GPU, or none, the run time is assumed equal. Another GPU model needs a throughput with a source: if
the GPU was busy for a share u of the time and the other GPU is r times weaker, the run takes at
most 1 + u (r - 1) times as long while the vCPUs stay. This slow end is counted; the fast end is
only shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal

from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.candidate import Candidate, Constraint, Duration, Refusal
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.compatibility import type_refused
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.gpu import times_weaker
from sageaudit.domain.prices.market import InstanceType, Market, Rate, comparable
from sageaudit.domain.usage.demand import Demand, Need, demand
from sageaudit.domain.usage.measurements import HOSTS_UNMAPPED, Measurements

HEADROOM_PERCENT = Decimal(20)
_NOT_STEADY = ("t3", "-flex")
"""Families without their full CPU all the time: never advised for a job that computes."""
_ONE = Decimal(1)
_PLACES = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Resize:
    """Today's type and bill, and all candidates: those that fit by cost, then the refused ones."""

    today: InstanceType
    rate: Rate | None
    bill: Bill
    need: Demand
    candidates: tuple[Candidate, ...]

    @property
    def fitting(self) -> tuple[Candidate, ...]:
        """The candidates that are not refused, the cheapest first."""
        return tuple(candidate for candidate in self.candidates if candidate.refused is None)

    def saves(self, candidate: Candidate) -> Decimal | None:
        """Today's bill less the candidate's: negative where it costs more."""
        today, other = self.bill.total_usd, candidate.usd
        return None if today is None or other is None else today - other

    def saves_at_best(self, candidate: Candidate) -> Decimal | None:
        """The same at the other end of its range; None where there is no range."""
        today, other = self.bill.total_usd, candidate.best_usd
        if today is None or other is None or candidate.best is None:
            return None
        return today - other

    @property
    def worthwhile(self) -> Iterator[Candidate]:
        """Candidates that fit, save money and are cheaper by the hour; the cheapest first.

        A lower hourly price ensures that the advice for the next run does not reverse this one.
        """
        for candidate in self.fitting:
            saves = self.saves(candidate)
            if self.cheaper(candidate) and (saves is None or saves > 0):
                yield candidate

    @property
    def unrecorded(self) -> Iterator[tuple[Candidate, str]]:
        """Cheaper by the hour, refused only for a use that was not recorded; with that reason."""
        for candidate in self.candidates:
            refused = candidate.refused
            if refused is None or refused.constraint is not Constraint.NOT_RECORDED:
                continue
            if self.cheaper(candidate):
                yield candidate, refused.reason

    def cheaper(self, candidate: Candidate) -> bool:
        """Priced below today's type by the hour."""
        rates = self.rate, candidate.rate
        return rates[0] is not None and rates[1] is not None and rates[1].usd < rates[0].usd


def impossible(job: Job, market: Market) -> str | None:
    """Why a job cannot be resized at all, or None."""
    kinds = {group.instance_type for group in job.groups}
    if job.kind is JobKind.TUNING:
        return "a tuning job has no instances of its own: ask about one of its training jobs"
    if job.purchase is Purchase.SERVERLESS:
        return "a serverless job has no instance type"
    if not job.finished:
        return f"the job has not ended (status {job.status})"
    if job.never_started:
        return "the job never started: there is no run to compare"
    if job.region is None:
        return "the region is not known, and so is no price"
    if not kinds:
        return "the instance type is not known"
    if len(kinds) > 1:
        return HOSTS_UNMAPPED.reason
    today = market.types.get(next(iter(kinds)))
    if today is None:
        return f"{kinds.pop()} is not in the catalogue: its size is not known"
    if today.accelerator and not today.gpus:
        return f"CloudWatch records no use of the accelerators of {today.name}"
    return None


def resize(
    job: Job,
    usage: Measurements,
    market: Market,
    *,
    headroom_percent: Decimal = HEADROOM_PERCENT,
    only: Callable[[InstanceType], bool] = lambda _: True,
) -> Resize:
    """Tries a run on each other type for which `only` is true. Call `impossible` first.

    `usage` must be cut to the active minutes. A training plan's capacity is for one type: another
    type is billed on demand.
    """
    today = market.types[job.groups[0].instance_type]
    billed = bill(job, market)
    need = demand(usage, today, headroom_percent)
    elsewhere = job
    if job.purchase is Purchase.TRAINING_PLAN:
        elsewhere = replace(job, purchase=Purchase.ON_DEMAND)
    trial = _Trial(elsewhere, today, need, market, billed, headroom_percent)
    candidates = [
        trial.candidate(other)
        for other in market.types.values()
        if other.name != today.name and only(other)
    ]
    return Resize(
        today, _rate(job, market, today), billed, need, tuple(sorted(candidates, key=_by_cost))
    )


@dataclass(frozen=True, slots=True)
class _Trial:
    """One run, tried on types."""

    job: Job
    today: InstanceType
    need: Demand
    market: Market
    billed: Bill
    headroom_percent: Decimal

    def candidate(self, other: InstanceType) -> Candidate:
        """The type with its bill, or with the reason for its refusal."""
        rate = _rate(self.job, self.market, other)
        refused = self._not_sold(other, rate) or next(self._refusals(other), None)
        if refused is not None:
            return Candidate(other, rate, refused)
        takes = self._takes(other)
        if isinstance(takes, Refusal):
            return Candidate(other, rate, takes)
        after, at_best = self._bill(other, takes.counted), self._bill(other, takes.best)
        usd, best_usd = after.total_usd, at_best.total_usd
        missing = [what for what in after.missing if what not in self.billed.missing]
        if missing:
            why = f"the bill on {other.name} would not be complete: {', '.join(missing)}"
            return Candidate(other, rate, Refusal(Constraint.BILL, why))
        even = self._break_even(takes, usd, best_usd)
        return Candidate(other, rate, None, takes, usd, best_usd, even)

    def _not_sold(self, other: InstanceType, rate: Rate | None) -> Refusal | None:
        if self.job.kind not in other.kinds:
            why = f"{self.job.kind.value} jobs do not take {other.name}"
            return Refusal(Constraint.NOT_OFFERED, why)
        if rate is None:
            why = f"no price known for {other.name} in {self.job.region}"
            return Refusal(Constraint.BILL, why)
        today = _rate(self.job, self.market, self.today)
        if today is not None and not comparable(today, rate):
            why = f"{other.name} and {self.today.name} have no price of one time and kind"
            return Refusal(Constraint.BILL, why)
        return None

    def _refusals(self, other: InstanceType) -> Iterator[Refusal]:
        """Constraints that are certainly broken first, then those that cannot be checked."""
        if other.accelerator and not other.gpus:
            yield Refusal(Constraint.ACCELERATOR, f"{other.name} has no GPU and needs other code")
        if other.family.endswith(_NOT_STEADY):
            yield Refusal(
                Constraint.VCPU,
                f"{other.family} is burstable or flexible: its full vCPU is not guaranteed",
            )
        if not self.need.recorded:
            reason = self.need.vcpu.unknown or "no metrics"
            yield Refusal(Constraint.NOT_RECORDED, f"nothing was recorded of the run ({reason})")
        unknown = []
        for constraint, unit, need, offered in self._resources(other):
            holds = True if self._stays(need, offered) else need.held_by(offered)
            if holds is False:
                asked = f"{need.needed:.1f} needed with headroom, {offered:g} offered"
                yield Refusal(constraint, f"{constraint.value}{unit}: {asked}")
            elif holds is None:
                gpus = constraint is Constraint.GPUS
                what = "the use of the GPU" if gpus else f"{constraint.value}{unit} used"
                why = f"{what} was not recorded ({need.unknown})"
                unknown.append(Refusal(Constraint.NOT_RECORDED, why))
        yield from unknown

    def _stays(self, need: Need, offered: float) -> bool:
        """True when an idle GPU is dropped and at least as much of this resource is offered."""
        return self.today.gpus > 0 and self.need.gpu_idle and offered >= need.today

    def _resources(self, other: InstanceType) -> Iterator[tuple[Constraint, str, Need, float]]:
        need, per_gpu_gib = self.need, float(other.gpu_memory_gib or 0)
        yield Constraint.GPUS, "", need.gpus, other.gpus
        # CloudWatch has no figure per GPU: all used memory may be on one GPU, so GPUs with less
        # memory than today's offer only the memory of one.
        as_large = per_gpu_gib >= float(self.today.gpu_memory_gib or 0)
        gpu_memory_gib = per_gpu_gib * other.gpus if as_large else per_gpu_gib
        yield Constraint.GPU_MEMORY, " GiB", need.gpu_memory_gib, gpu_memory_gib
        yield Constraint.VCPU, "", need.vcpu, other.vcpu
        yield Constraint.MEMORY, " GiB", need.memory_gib, float(other.memory_gib)

    def _takes(self, other: InstanceType) -> Duration | Refusal:
        """The run time on a type that covers all recorded use, or why it is refused."""
        unfit = None if self.need.gpu_idle else type_refused(self.job, self.today, other)
        if unfit is not None:
            return Refusal(Constraint.GPU_MODEL, unfit)
        same = (other.gpu_model, other.gpu_memory_gib)
        if self.need.gpu_idle or same == (self.today.gpu_model, self.today.gpu_memory_gib):
            return Duration(_ONE, _ONE, f"Assumes the same run time: {self._it_holds(other)}.")
        return self._on_other_gpu(other)

    def _it_holds(self, other: InstanceType) -> str:
        need, today = self.need, self.today
        held = f"the new type covers peak use plus {float(self.headroom_percent):g}%"
        resources = (need.vcpu, need.memory_gib, need.gpus, need.gpu_memory_gib)
        if any(resource.unknown for resource in resources):
            held = f"what was not recorded does not shrink, and {held}"
        if today.gpus and need.gpu_idle:
            held = f"the GPU did nothing, and {held}"
        if other.family == today.family:
            return held
        return f"{held} (a vCPU of {other.family} counts as one of {today.family})"

    def _on_other_gpu(self, other: InstanceType) -> Duration | Refusal:
        today, busy = self.today, self.need.gpu_busy
        if today.gpu_peaks is None or other.gpu_peaks is None:
            nameless = today.gpu_model if today.gpu_peaks is None else other.gpu_model
            why = f"no throughput of the {nameless} has a source"
            return Refusal(Constraint.GPU_MODEL, why)
        if other.vcpu < today.vcpu:
            why = f"vCPU: on another GPU all {today.vcpu} must stay, {other.vcpu} offered"
            return Refusal(Constraint.VCPU, why)
        links = (today.gpu_peaks.link_gb_s, other.gpu_peaks.link_gb_s)
        if today.gpus > 1 and None in links:
            why = f"the link between several {today.gpu_model} or {other.gpu_model} has no source"
            return Refusal(Constraint.GPU_MODEL, why)
        if busy is None:
            why = "how busy the GPU was is not recorded"
            return Refusal(Constraint.NOT_RECORDED, why)
        busy = min(busy * today.gpus / min(today.gpus, other.gpus), _ONE)
        weaker = times_weaker(today.gpu_peaks, other.gpu_peaks, linked=today.gpus > 1)
        end = (1 + busy * (weaker.times - 1)).quantize(_PLACES, ROUND_UP)
        used = f"the GPU was busy for {busy:.0%} of the time"
        if weaker.times > 1:
            times = f"up to {weaker.times:.2f} times weaker than {today.gpu_model}"
            because = f"{other.gpu_model} is {times} ({weaker.respect}), and {used}."
            return Duration(end, _ONE, because)
        because = f"{other.gpu_model} is no weaker than {today.gpu_model} in any respect"
        return Duration(_ONE, end, f"{because}, and {used}; the same run time is counted.")

    def _bill(self, other: InstanceType, times: Decimal) -> Bill:
        return bill(SetType(other.name, times).apply(self.job), self.market)

    def _break_even(
        self, takes: Duration, usd: Decimal | None, best_usd: Decimal | None
    ) -> Decimal | None:
        """The bill grows linearly with the run time, so two points of it give the third."""
        today = self.billed.total_usd
        if today is None or usd is None or best_usd is None or usd == best_usd:
            return None
        slope = (usd - best_usd) / (takes.counted - takes.best)
        return max(takes.best + (today - best_usd) / slope, Decimal(0))


def _rate(job: Job, market: Market, other: InstanceType) -> Rate | None:
    return market.hourly(job.region, job.kind, other.name)


def _by_cost(candidate: Candidate) -> tuple[bool, Decimal, Decimal, str]:
    """Sort key: candidates that fit by their bill, then refused ones by their hourly price."""
    hourly = candidate.rate.usd if candidate.rate else Decimal("Infinity")
    return (
        candidate.refused is not None,
        candidate.usd if candidate.usd is not None else hourly,
        hourly,
        candidate.type.name,
    )
