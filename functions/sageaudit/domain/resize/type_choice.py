"""Chooses one type for a family, and finds the cheapest type and hourly cost of a job.

A family's runs differ, and the next run may resemble any recent run. For each run, the smallest
fitting types are stored with the longest run time on each, as a factor. A type with at least as
much of everything as a stored type fits the run, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from math import ceil

from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.resize.candidate import Candidate
from sageaudit.domain.resize.resize import HEADROOM_PERCENT, Resize

RECENT_RUNS = 10
"""The number of a family's newest runs that choose its type. Our choice."""
_KEEP_SHARE = Decimal("0.9")
"""The family's recommended type stays while it saves at least this share of the best saving. Our
choice."""
_MAX_STORED_TYPES = 8
_HUNDREDTH = Decimal("0.01")
_ONE = Decimal(1)

_HEADROOM_FACTOR = 1 + float(HEADROOM_PERCENT) / 100


def smallest_types(runs: Sequence[Resize]) -> dict[str, Decimal] | None:
    """Returns the smallest types that fit a run and save, by name, each with its run-time factor.

    `runs`: the results of `resize` for this one run, as several rules called it. The result is
    empty if nothing cheaper fits, and None if the use is unknown.
    """
    judged_results = [
        run for run in runs if run.rate is not None and not any(run.unrecorded_refusals)
    ]
    saving_candidates = next(filter(None, (_saving_candidates(run) for run in judged_results)), [])
    smallest: dict[str, tuple[InstanceType, Decimal]] = {}
    for candidate in sorted(saving_candidates, key=lambda row: _size(row.type)):
        is_covered = any(
            _is_at_least_as_large(candidate.type, small) for small, _ in smallest.values()
        )
        if (
            candidate.runtime_factor is not None
            and not is_covered
            and len(smallest) < _MAX_STORED_TYPES
        ):
            factor = candidate.runtime_factor.counted.quantize(_HUNDREDTH, ROUND_UP)
            smallest[candidate.type.name] = (candidate.type, factor)
    return {name: factor for name, (_, factor) in smallest.items()} if judged_results else None


def _saving_candidates(run: Resize) -> list[Candidate]:
    return list(run.certain_savings) or list(run.possible_savings)


def _size(instance_type: InstanceType) -> tuple[int, int, Decimal]:
    return instance_type.gpus, instance_type.vcpu, instance_type.memory_gib


def _is_at_least_as_large(other: InstanceType, small: InstanceType) -> bool:
    if (other.gpu_model, other.gpu_memory_gib) != (small.gpu_model, small.gpu_memory_gib):
        return False
    (gpus, vcpu, gib), (least_gpus, least_vcpu, least_gib) = _size(other), _size(small)
    return gpus >= least_gpus and vcpu >= least_vcpu and gib >= least_gib


def best_for_family(
    run: Resize,
    candidates: Sequence[Candidate],
    family_smallest_types: Sequence[Mapping[str, Decimal]],
    types: Mapping[str, InstanceType],
    recommended_type: str | None,
) -> list[Candidate]:
    """Returns the candidates that fit most of the family's newest runs, the best first.

    The best candidate saves most at its slowest run time. `recommended_type` stays first while it
    saves nearly as much. `family_smallest_types` has the smallest types of each of the newest runs.
    `types`: the catalogue by name.
    """
    if not family_smallest_types and recommended_type is None:
        return list(candidates)  # already sorted by the saving of this run
    factors = {
        candidate.type.name: runtime_factors(candidate.type, family_smallest_types, types)
        for candidate in candidates
    }
    most_fits = max(map(len, factors.values()), default=0)
    best = [candidate for candidate in candidates if len(factors[candidate.type.name]) == most_fits]
    savings = {
        candidate.type.name: _family_saving_usd(run, candidate, factors[candidate.type.name])
        for candidate in best
    }
    if None in savings.values():
        return best
    best.sort(key=lambda candidate: -(savings[candidate.type.name] or 0))
    current = next(
        (candidate for candidate in best if candidate.type.name == recommended_type), None
    )
    if current is not None:
        min_saving_usd = _KEEP_SHARE * (savings[best[0].type.name] or 0)
        best.sort(
            key=lambda candidate: (
                candidate is not current or (savings[candidate.type.name] or 0) < min_saving_usd
            )
        )
    return best


def runtime_factors(
    instance_type: InstanceType,
    smallest_types_by_run: Sequence[Mapping[str, Decimal]],
    types: Mapping[str, InstanceType],
) -> list[Decimal]:
    """Returns the run-time factors on a type, one for each run that is known to fit on it.

    `smallest_types_by_run` has the smallest types of each run. `types`: the catalogue by name.
    """
    factors = []
    for smallest in smallest_types_by_run:
        stored_types = ((types.get(name), factor) for name, factor in smallest.items())
        fitting_factors = [
            factor
            for small_type, factor in stored_types
            if small_type is not None and _is_at_least_as_large(instance_type, small_type)
        ]
        factors += [min(fitting_factors)] if fitting_factors else []
    return factors


def _family_saving_usd(
    run: Resize, candidate: Candidate, factors: Sequence[Decimal]
) -> Decimal | None:
    """Returns what the candidate saves in USD at the family's slowest run time; None if unknown.

    A factor that the family's runs measured is kept.
    """
    saving_usd, runtime_factor = run.saving_usd(candidate), candidate.runtime_factor
    if saving_usd is None or runtime_factor is None or candidate.usd is None:
        return None
    slowest = (
        _ONE
        if runtime_factor.is_measured
        else max([_ONE, *(factor / runtime_factor.counted for factor in factors)])
    )
    return saving_usd - (slowest - 1) * candidate.usd


def cluster_usd_per_hour(job: Job, market: Market) -> Decimal | None:
    """Returns the USD per hour of all instances of a job; None if a rate is unknown."""
    total = Decimal(0)
    for group in job.groups:
        rate = market.hourly(job.region, job.kind, group.instance_type)
        if rate is None:
            return None
        total += rate.usd * group.count
    return total if job.groups else None


def cheapest_type(
    job: Job,
    market: Market,
    is_fitting: Callable[[InstanceType], bool],
    *,
    allow_estimates: bool = False,
) -> tuple[Decimal, str] | None:
    """Returns the USD per hour and the name of the cheapest type; None if no rate is known.

    `is_fitting` returns whether a type fits. `allow_estimates` admits estimated rates. Among equal
    rates, the first name wins.
    """
    priced = _priced_types(job, market, is_fitting, allow_estimates=allow_estimates)
    return min(((usd, other.name) for usd, other in priced), default=None)


def _priced_types(
    job: Job,
    market: Market,
    is_fitting: Callable[[InstanceType], bool],
    *,
    allow_estimates: bool = False,
) -> Iterator[tuple[Decimal, InstanceType]]:
    for other in market.types.values():
        if job.kind in other.kinds and is_fitting(other):
            rate = market.hourly(job.region, job.kind, other.name)
            if rate is not None and (allow_estimates or not rate.is_estimate):
                yield rate.usd, other


def seconds_saved_by_cpu_type(
    job: Job, market: Market, seconds: Decimal, cores: float, memory_gib: float
) -> Decimal:
    """Returns `seconds` times the share of their cost that current CPU types save; 0 if unknown.

    `cores` and `memory_gib`: what each host needs in these seconds.
    """
    share = saving_share_of_cpu_type(job, market, cores, memory_gib) if seconds else None
    return (seconds * (share or 0)).quantize(Decimal(1), ROUND_DOWN)


def saving_share_of_cpu_type(
    job: Job, market: Market, cores: float, memory_gib: float
) -> Decimal | None:
    """Returns the share (0..1) of the hourly price that current CPU types save; None if unknown.

    `cores` and `memory_gib`: what each host needs. Each host is replaced by enough CPU instances
    for this plus a fifth.
    """
    current_usd = cluster_usd_per_hour(job, market)
    current_cpu = _priced_types(
        job, market, lambda other: not (other.accelerator or other.is_legacy)
    )
    costs_usd = [
        usd
        * ceil(
            max(
                cores * _HEADROOM_FACTOR / other.vcpu,
                memory_gib * _HEADROOM_FACTOR / float(other.memory_gib),
                0.01,
            )
        )
        for usd, other in current_cpu
    ]
    if not costs_usd or not current_usd:
        return None
    return max(1 - min(costs_usd) * (job.instance_count or 1) / current_usd, Decimal(0))
