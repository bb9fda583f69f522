"""Tries a run on other instance types: whether its recorded use fits, and its bill there.

All candidates are ranked together: the same GPU in another size, fewer GPUs, another GPU, no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from functools import cached_property

from msgspec import Struct, field

from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.billed_job import BillOnType
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.prices.market import InstanceType, Market, Rate
from sageaudit.domain.resize.candidate import (
    Candidate,
    Constraint,
    FamilyTypes,
    RuntimeFactor,
    TypeRefusal,
    factor_from_family,
)
from sageaudit.domain.resize.fit import (
    TypeOffer,
    gpu_count_refusal,
    hourly_price_order,
    is_cheaper_per_hour,
    named_offers,
    offers,
    possibly_cheaper_types,
    rate_uncertainty,
)
from sageaudit.domain.resize.moved_run import RuntimeOnType
from sageaudit.domain.usage.demand import Demand, demand
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.structs import replace

HEADROOM_PERCENT = Decimal(20)
_NO_FAMILY_TYPES = FamilyTypes()
_Arguments = tuple[Job, Measurements, Market, Decimal, tuple[Measurements, ...]]


class Resize(Struct, frozen=True, dict=True):
    """The result of trying a run on other types: the current type and bill, and the candidates.

    The class has no slots, so that the candidates that save are computed once for several rules.
    """

    current_type: InstanceType
    rate: Rate | None
    bill: Bill
    demand: Demand
    fitting: tuple[Candidate, ...]
    """The candidates that fit the run, the cheapest first."""
    refusals: tuple[tuple[TypeOffer, TypeRefusal], ...]
    """The refused types with the reasons, the cheapest per hour first."""
    feasible_unpriced: tuple[InstanceType, ...]

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The fitting candidates, then the refused ones."""
        refused = (
            Candidate(
                offer.type, offer.rate, veto, feasible_unpriced=offer.type in self.feasible_unpriced
            )
            for offer, veto in self.refusals
        )
        return (*self.fitting, *refused)

    def saving_usd(self, candidate: Candidate) -> Decimal | None:
        """Returns the current bill less the candidate's bill; negative if the candidate costs more.

        None if a bill is unknown, or if the current bill is an upper bound.
        """
        return self._saving_against(candidate.usd)

    def best_saving_usd(self, candidate: Candidate) -> Decimal | None:
        """Returns the USD saved at the best run time; None if unknown or without a range."""
        return None if candidate.best_change is None else self._saving_against(candidate.best_usd)

    def _saving_against(self, other_usd: Decimal | None) -> Decimal | None:
        current_usd = self.bill.total_usd
        if current_usd is None or other_usd is None or self.bill.basis == "upper_bound":
            return None
        return current_usd - other_usd

    @property
    def certain_savings(self) -> Iterator[Candidate]:
        """The candidates that fit the run and certainly save, the largest counted saving first.

        Each costs less per hour, so the next run's recommendation does not reverse the move. If the
        current bill is unknown, the cheapest per hour come first.
        """
        return iter(self._candidates_that_save[0])

    @property
    def possible_savings(self) -> Iterator[Candidate]:
        """The candidates whose saving needs a trial, the largest counted saving first."""
        return iter(self._candidates_that_save[1])

    @cached_property
    def _candidates_that_save(self) -> tuple[list[Candidate], list[Candidate]]:
        savings: tuple[list[Candidate], list[Candidate]] = ([], [])
        for candidate in self._saving_candidates():
            savings[candidate.needs_trial].append(candidate)
        return savings

    def _saving_candidates(self) -> Iterator[Candidate]:
        """The fitting candidates whose saving is unknown, or larger than the rate's uncertainty."""
        for candidate in self.fitting:
            saving_usd = self.saving_usd(candidate)
            if not self.is_cheaper_per_hour(candidate) and not candidate.was_cheaper_per_run:
                continue
            uncertainty = rate_uncertainty(self.rate, candidate.rate)
            if saving_usd is None or saving_usd > (
                uncertainty and uncertainty * (self.bill.total_usd or Decimal(0))
            ):
                yield candidate

    @property
    def unrecorded_refusals(self) -> Iterator[tuple[InstanceType, str]]:
        """The cheaper types refused only because use was not recorded, each with the reason."""
        for offer, refusal in self.refusals:
            if refusal.constraint is Constraint.NOT_RECORDED and offer.is_cheaper_per_hour:
                yield offer.type, refusal.reason

    @property
    def feasible_unpriced_by_size(self) -> tuple[InstanceType, ...]:
        """The types that fit the run but have no comparable price, the smallest first.

        None is larger than the current type, so each may be cheaper.
        """
        return tuple(
            sorted(
                self.feasible_unpriced,
                key=lambda instance_type: (
                    instance_type.gpus,
                    instance_type.vcpu,
                    instance_type.name,
                ),
            )
        )

    def is_cheaper_per_hour(self, candidate: Candidate) -> bool:
        """Returns whether the candidate certainly costs less per hour than the current type."""
        return is_cheaper_per_hour(self.rate, candidate.rate)


def resize_refusal(job: Job, market: Market) -> str | None:
    """Returns why a job cannot be resized at all, or None."""
    types = {group.instance_type for group in job.groups}
    if (rollup := job.kind.spec.rollup) is not None:
        sentence = f"{job.kind.spec.label_with_article} has no instances of its own"
        return f"{sentence}: ask about one of its {rollup.children_label}"
    if job.purchase is Purchase.SERVERLESS:
        return "a serverless job has no instance type"
    if not job.finished:
        return f"the job has not ended (status {job.status})"
    if job.has_never_started:
        return "the job never started: there is no run to compare"
    if job.region is None:
        return "the region is not known, and so is no price"
    if not types:
        return "the instance type is not known"
    if len(types) > 1:
        return "its instances are of several types"
    current_type = market.types.get(next(iter(types)))
    if current_type is None:
        return f"{types.pop()} is not in the catalogue: its size is not known"
    if current_type.accelerator and not current_type.gpus:
        return f"CloudWatch records no use of the accelerators of {current_type.name}"
    return None


def resize(
    job: Job,
    whole_run: Measurements,
    market: Market,
    *,
    headroom_percent: Decimal = HEADROOM_PERCENT,
    other_usage: tuple[Measurements, ...] = (),
    family_types: FamilyTypes = _NO_FAMILY_TYPES,
    type_names: Collection[str] | None = None,
    job_bill: Bill | None = None,
) -> Resize:
    """Returns the results of trying a run on each other type, or only on `type_names`.

    Call `resize_refusal` first. `whole_run` has the metrics of the whole run; its active minutes
    decide the size. `other_usage` has more measurements that must fit. `family_types` are the types
    that the family used. `job_bill` is the job's bill, if it was computed. A training plan's
    capacity is for one type, so other types are billed on demand.
    """
    current_type = market.types[job.groups[0].instance_type]
    job_bill = job_bill or bill(job, market)
    need = demand(whole_run, current_type, headroom_percent, other_usage)
    moved_job = job
    if job.purchase is Purchase.TRAINING_PLAN:
        moved_job = replace(job, purchase=Purchase.ON_DEMAND)
    rate = market.hourly(job.region, job.kind, current_type.name)
    type_bill = BillOnType.from_job(moved_job, market)
    key = (market, job.region, job.kind, current_type.name)
    offer_list = offers(*key) if type_names is None else named_offers(*key, frozenset(type_names))
    too_few_gpus = {
        gpus: refusal
        for gpus in range(current_type.gpus)
        if (refusal := gpu_count_refusal(need, gpus))
    }
    evaluation = _TypeEvaluation(
        moved_job,
        current_type,
        need,
        market,
        job_bill,
        type_bill,
        headroom_percent,
        family_types,
        too_few_gpus,
    )
    fitting, refused, feasible_unpriced = [], [], []
    for offer in offer_list:
        result = offer.refusal or evaluation.evaluate(offer)
        if isinstance(result, Candidate):
            fitting.append(result)
            continue
        refused.append((offer, result))
        if offer.can_fit and evaluation.can_fit(offer):
            feasible_unpriced.append(offer.type)
    fitting.sort(key=_by_cost)
    return Resize(
        current_type, rate, job_bill, need, tuple(fitting), tuple(refused), tuple(feasible_unpriced)
    )


class _TypeEvaluation(Struct, frozen=True):
    """Tries one run on other types.

    `moved_bill`: computes the run's bill on another type quickly; None if only a complete bill can.
    `too_few_gpus`: the refusals of types with too few GPUs, by the number of GPUs.
    """

    job: Job
    current_type: InstanceType
    demand: Demand
    market: Market
    job_bill: Bill
    moved_bill: BillOnType | None
    headroom_percent: Decimal
    family_types: FamilyTypes
    too_few_gpus: Mapping[int, TypeRefusal]

    def evaluate(self, offer: TypeOffer) -> Candidate | TypeRefusal:
        other_type = offer.type
        by_family = factor_from_family(self.family_types, self.current_type, other_type)
        needs_trial = isinstance(by_family, RuntimeFactor) and by_family.needs_trial
        if offer.type_class_refusal is not None and not needs_trial:
            return offer.type_class_refusal
        if other_type.gpus in self.too_few_gpus:
            return self.too_few_gpus[other_type.gpus]
        run = self._runtime_on(other_type)
        factor = run.size_refusal() or by_family or run.unchecked_runtime_factor()
        if isinstance(factor, TypeRefusal):
            return factor
        usd = best_usd = self._total_usd(offer, factor.counted)
        if factor.best != factor.counted:
            best_usd = self._total_usd(offer, factor.best)
        if isinstance(usd, TypeRefusal):
            return usd
        if isinstance(best_usd, TypeRefusal):
            return best_usd
        break_even_factor = self._break_even(factor, usd, best_usd)
        return Candidate(other_type, offer.rate, None, factor, usd, best_usd, break_even_factor)

    def can_fit(self, offer: TypeOffer) -> bool:
        return isinstance(self._runtime_on(offer.type).runtime_factor(), RuntimeFactor)

    def _runtime_on(self, other_type: InstanceType) -> RuntimeOnType:
        return RuntimeOnType(
            self.job, self.current_type, self.demand, self.headroom_percent, other_type
        )

    def _total_usd(self, offer: TypeOffer, time_factor: Decimal) -> Decimal | TypeRefusal | None:
        """Returns the run's bill on the offered type in USD; None if unknown.

        Returns a refusal if that bill would lack an amount that the current bill has.
        """
        if self.moved_bill is not None and offer.rate is not None:
            usd = self.moved_bill.total_usd(offer.type, offer.rate, time_factor)
            if usd is not None:
                return usd
        new_bill = bill(SetType(offer.type.name, time_factor).apply(self.job), self.market)
        new_gaps = [gap for gap in new_bill.gaps if gap not in self.job_bill.gaps]
        if not new_gaps:
            return new_bill.total_usd
        reason = f"the bill on {offer.type.name} would not be complete: {', '.join(new_gaps)}"
        return TypeRefusal(Constraint.BILL, reason)

    def _break_even(
        self, factor: RuntimeFactor, usd: Decimal | None, best_usd: Decimal | None
    ) -> Decimal | None:
        """Returns the run-time factor at which the bill on the type equals the current bill.

        The bill is linear in the run time, so the best and counted bills determine the factor. None
        if a bill is unknown or the two are equal.
        """
        current_usd = self.job_bill.total_usd
        if current_usd is None or usd is None or best_usd is None or usd == best_usd:
            return None
        slope = (usd - best_usd) / (factor.counted - factor.best)
        return max(factor.best + (current_usd - best_usd) / slope, Decimal(0))


def _by_cost(candidate: Candidate) -> tuple[Decimal, Decimal, str]:
    hourly, name = hourly_price_order(candidate.type, candidate.rate)
    return (candidate.usd if candidate.usd is not None else hourly, hourly, name)


class ResizeCache(Struct, frozen=True):
    """Caches the results of `resize` in one audit, for rules with the same arguments.

    Only types that may cost less per hour, and types that the family used, are tried.
    """

    _entries: list[tuple[_Arguments, Resize]] = field(default_factory=list)

    @property
    def results(self) -> list[Resize]:
        """All results that are cached so far."""
        return [result for _, result in self._entries]

    def resize(
        self,
        job: Job,
        whole_run: Measurements,
        market: Market,
        headroom_percent: Decimal,
        other_usage: tuple[Measurements, ...] = (),
        read_family_types: Callable[[], FamilyTypes] = FamilyTypes,
        job_bill: Bill | None = None,
    ) -> Resize:
        """Returns the cached result for equal arguments, or calls `resize`.

        `read_family_types` is called only if no result is cached. `job_bill` is not compared.
        """
        arguments = (job, whole_run, market, headroom_percent, other_usage)
        for cached_arguments, result in self._entries:
            if cached_arguments == arguments:
                return result
        family_types = read_family_types()
        own_type = job.groups[0].instance_type
        cheaper = possibly_cheaper_types(market, job.region, job.kind, own_type)
        result = resize(
            job,
            whole_run,
            market,
            headroom_percent=headroom_percent,
            other_usage=other_usage,
            family_types=family_types,
            type_names=cheaper.union(row.type.name for row in family_types.tried_types)
            if family_types.tried_types
            else cheaper,
            job_bill=job_bill,
        )
        self._entries.append((arguments, result))
        return result
