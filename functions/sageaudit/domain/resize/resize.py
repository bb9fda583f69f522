"""The same run on other instance types: its recorded use and its bill on each candidate.

All candidates are ranked together: the same GPU in another size, fewer GPUs, another GPU, none. A
candidate is refused with the constraint that it breaks. How long the run takes there is bounded
(`moved_run`): the slow end is counted, the fast end is only shown. What the family's own runs took
there replaces the bounds, and a step to a smaller type that made the runs dearer is the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from functools import cached_property

from msgspec import Struct, field

from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.billed_job import MovedBill
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.prices.market import InstanceType, Market, Rate
from sageaudit.domain.resize.candidate import (
    Candidate,
    Constraint,
    Duration,
    FamilyTypes,
    TypeRefusal,
    as_tried,
)
from sageaudit.domain.resize.fit import (
    Offer,
    by_hour,
    costs_less,
    doubt,
    may_cost_less,
    offers,
    offers_of,
    too_few_gpus,
)
from sageaudit.domain.resize.moved_run import MovedRun
from sageaudit.domain.usage.demand import Demand, demand
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.structs import replace

HEADROOM_PERCENT = Decimal(20)
_NOTHING_TRIED = FamilyTypes()
_Question = tuple[Job, Measurements, Market, Decimal, tuple[Measurements, ...]]


class Resize(Struct, frozen=True, dict=True):
    """Today's type and bill, and all candidates: those that fit by cost, then the refused ones.

    Without slots: which of them save, as several rules ask, is worked out once and kept.
    """

    today: InstanceType
    rate: Rate | None
    bill: Bill
    need: Demand
    fitting: tuple[Candidate, ...]
    """The cheapest first."""
    refused: tuple[tuple[Offer, TypeRefusal], ...]
    """The others, the cheapest by the hour first."""
    feasible_unpriced: tuple[InstanceType, ...]

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Those that fit, then the refused ones."""
        refused = (
            Candidate(offer.type, offer.rate, why, feasible_unpriced=offer.type in self.feasible_unpriced)
            for offer, why in self.refused
        )
        return (*self.fitting, *refused)

    def saves(self, candidate: Candidate) -> Decimal | None:
        """Today's bill less the candidate's: negative where it costs more.

        None where today's bill is not known, or only as an upper bound.
        """
        return self._less(candidate.usd)

    def saves_at_best(self, candidate: Candidate) -> Decimal | None:
        """The same at the other end of its range; None where there is no range."""
        return None if candidate.best is None else self._less(candidate.best_usd)

    def _less(self, other_usd: Decimal | None) -> Decimal | None:
        today = self.bill.total_usd
        if today is None or other_usd is None or self.bill.basis == "upper_bound":
            return None
        return today - other_usd

    @property
    def certain(self) -> Iterator[Candidate]:
        """Candidates that hold the run and certainly save, the largest counted saving first.

        None of them is possible at most: see `on_trial`.
        A lower hourly price ensures that the advice for the next run does not reverse this one.
        Where today's bill is not known, the cheapest by the hour come first.
        """
        return iter(self._saving[0])

    @property
    def on_trial(self) -> Iterator[Candidate]:
        """The same whose saving is possible at most."""
        return iter(self._saving[1])

    @cached_property
    def _saving(self) -> tuple[list[Candidate], list[Candidate]]:
        """Those that certainly save, and those on trial."""
        found: tuple[list[Candidate], list[Candidate]] = ([], [])
        for candidate in self._found_saving():
            found[candidate.on_trial].append(candidate)
        return found

    def _found_saving(self) -> Iterator[Candidate]:
        for candidate in self.fitting:
            saves = self.saves(candidate)
            if not self.cheaper(candidate) and not candidate.cost_less:
                continue
            noise = doubt(self.rate, candidate.rate)
            if saves is None or saves > (noise and noise * (self.bill.total_usd or Decimal(0))):
                yield candidate

    @property
    def unrecorded(self) -> Iterator[tuple[InstanceType, str]]:
        """Cheaper by the hour, refused only for a use that was not recorded; with that reason."""
        for offer, why in self.refused:
            if why.constraint is Constraint.NOT_RECORDED and offer.less:
                yield offer.type, why.reason

    @property
    def not_compared(self) -> tuple[InstanceType, ...]:
        """Types that hold the run, no larger than today's, whose price cannot be compared.

        Each of them may be the cheaper one. The smallest come first.
        """
        return tuple(sorted(self.feasible_unpriced, key=lambda kind: (kind.gpus, kind.vcpu, kind.name)))

    def cheaper(self, candidate: Candidate) -> bool:
        """Priced below today's type by the hour, for certain."""
        return costs_less(self.rate, candidate.rate)


def impossible(job: Job, market: Market) -> str | None:
    """Why a job cannot be resized at all, or None."""
    kinds = {group.instance_type for group in job.groups}
    if (rollup := job.kind.row.rollup) is not None:
        own = f"{job.kind.row.with_article} has no instances of its own"
        return f"{own}: ask about one of its {rollup.children}"
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
        return "its instances are of several types"
    today = market.types.get(next(iter(kinds)))
    if today is None:
        return f"{kinds.pop()} is not in the catalogue: its size is not known"
    if today.accelerator and not today.gpus:
        return f"CloudWatch records no use of the accelerators of {today.name}"
    return None


def resize(
    job: Job,
    whole: Measurements,
    market: Market,
    *,
    headroom_percent: Decimal = HEADROOM_PERCENT,
    also: tuple[Measurements, ...] = (),
    tried: FamilyTypes = _NOTHING_TRIED,
    only: Collection[str] | None = None,
    billed: Bill | None = None,
) -> Resize:
    """Tries a run on each other type, or on those of `only` by name. Call `impossible` first.

    `whole` are the metrics of the whole run; it is sized by its active minutes. What they used
    `also` must hold too; `tried` are types that the family ran on. A training plan's capacity is
    for one type: another type is billed on demand. `billed`: its bill, where it is at hand.
    """
    today = market.types[job.groups[0].instance_type]
    billed = billed or bill(job, market)
    need = demand(whole, today, headroom_percent, also)
    elsewhere = job
    if job.purchase is Purchase.TRAINING_PLAN:
        elsewhere = replace(job, purchase=Purchase.ON_DEMAND)
    rate = market.hourly(job.region, job.kind, today.name)
    moved = MovedBill.of(elsewhere, market)
    asked = (market, job.region, job.kind, today.name)
    beside = offers(*asked) if only is None else offers_of(*asked, frozenset(only))
    few = {n: why for n in range(today.gpus) if (why := too_few_gpus(need, n))}
    trial = _Trial(elsewhere, today, need, market, billed, moved, headroom_percent, tried, few)
    fitting, refused, feasible_unpriced = [], [], []
    for offer in beside:
        answer = offer.refused or trial.answer(offer)
        if isinstance(answer, Candidate):
            fitting.append(answer)
            continue
        refused.append((offer, answer))
        if offer.may_hold and trial.holds(offer):
            feasible_unpriced.append(offer.type)
    fitting.sort(key=_by_cost)
    return Resize(today, rate, billed, need, tuple(fitting), tuple(refused), tuple(feasible_unpriced))


class _Trial(Struct, frozen=True):
    """One run, tried on types."""

    job: Job
    today: InstanceType
    need: Demand
    market: Market
    billed: Bill
    moved: MovedBill | None
    headroom_percent: Decimal
    tried: FamilyTypes
    too_few_gpus: Mapping[int, TypeRefusal]

    def answer(self, offer: Offer) -> Candidate | TypeRefusal:
        """A type that is offered, with its bill, or the reason for its refusal."""
        other = offer.type
        tried = as_tried(self.tried, self.today, other)
        back = isinstance(tried, Duration) and tried.trial
        if offer.unlike is not None and not back:
            return offer.unlike
        if other.gpus in self.too_few_gpus:
            return self.too_few_gpus[other.gpus]
        run = self._moved(other)
        takes = run.too_small() or tried or run.run_time()
        if isinstance(takes, TypeRefusal):
            return takes
        usd = best_usd = self._total_usd(offer, takes.counted)
        if takes.best != takes.counted:
            best_usd = self._total_usd(offer, takes.best)
        if isinstance(usd, TypeRefusal):
            return usd
        if isinstance(best_usd, TypeRefusal):
            return best_usd
        even = self._break_even(takes, usd, best_usd)
        return Candidate(other, offer.rate, None, takes, usd, best_usd, even)

    def holds(self, offer: Offer) -> bool:
        """Whether the type holds the run, whatever it costs."""
        return isinstance(self._moved(offer.type).takes(), Duration)

    def _moved(self, other: InstanceType) -> MovedRun:
        return MovedRun(self.job, self.today, self.need, self.headroom_percent, other)

    def _total_usd(self, offer: Offer, times: Decimal) -> Decimal | TypeRefusal | None:
        """The bill's total on the type, or that the bill there would lack what today's has."""
        if self.moved is not None and offer.rate is not None:
            usd = self.moved.total_usd(offer.type, offer.rate, times)
            if usd is not None:
                return usd
        after = bill(SetType(offer.type.name, times).apply(self.job), self.market)
        missing = [what for what in after.gaps if what not in self.billed.gaps]
        if not missing:
            return after.total_usd
        why = f"the bill on {offer.type.name} would not be complete: {', '.join(missing)}"
        return TypeRefusal(Constraint.BILL, why)

    def _break_even(
        self, takes: Duration, usd: Decimal | None, best_usd: Decimal | None
    ) -> Decimal | None:
        """The bill grows linearly with the run time, so two points of it give the third."""
        today = self.billed.total_usd
        if today is None or usd is None or best_usd is None or usd == best_usd:
            return None
        slope = (usd - best_usd) / (takes.counted - takes.best)
        return max(takes.best + (today - best_usd) / slope, Decimal(0))


def _by_cost(candidate: Candidate) -> tuple[Decimal, Decimal, str]:
    """Sort key of candidates that fit: by their bill."""
    hourly, name = by_hour(candidate.type, candidate.rate)
    return (candidate.usd if candidate.usd is not None else hourly, hourly, name)


class Resizes(Struct, frozen=True):
    """The answers of `resize` in one audit: rules that ask the same share one answer.

    Types that cost as much by the hour, or more, are left out, but for those that the family tried.
    """

    _known: list[tuple[_Question, Resize]] = field(default_factory=list)

    @property
    def answers(self) -> list[Resize]:
        """Those so far."""
        return [answer for _, answer in self._known]

    def resize(
        self,
        job: Job,
        whole: Measurements,
        market: Market,
        headroom_percent: Decimal,
        also: tuple[Measurements, ...] = (),
        tried: Callable[[], FamilyTypes] = FamilyTypes,
        billed: Bill | None = None,
    ) -> Resize:
        """As the function `resize`, for equal arguments once; `tried` is asked only then."""
        asked = (job, whole, market, headroom_percent, also)
        for question, answer in self._known:
            if question == asked:
                return answer
        known = tried()
        own_type = job.groups[0].instance_type
        cheaper = may_cost_less(market, job.region, job.kind, own_type)
        answer = resize(
            job,
            whole,
            market,
            headroom_percent=headroom_percent,
            also=also,
            tried=known,
            only=cheaper.union(one.type.name for one in known.tried) if known.tried else cheaper,
            billed=billed,
        )
        self._known.append((asked, answer))
        return answer
