"""The most that a tuning job can cost, worked out from the training jobs that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import prod

from sageaudit.domain.request.forecast import HOUR_S, Cost, Limit
from sageaudit.domain.request.request import Request
from sageaudit.domain.request.values import NotKnown

_CONFIG = "HyperParameterTuningJobConfig"
_TRIALS = f"{_CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs"
_PARALLEL = f"{_CONFIG}.ResourceLimits.MaxParallelTrainingJobs"
_SEARCH_S = f"{_CONFIG}.ResourceLimits.MaxRuntimeInSeconds"


def cost_of_search(request: Request, limit: Limit, trials: Sequence[Cost]) -> Cost:
    """All training jobs at the dearest definition's limit; less where the search itself ends."""
    count, parallel = request.value(_TRIALS), request.value(_PARALLEL)
    count = _grid_size(request) if count is None else count
    search_s = request.value(_SEARCH_S)
    known = [cost.usd for cost in trials if cost.usd is not None]
    if not trials or len(known) < len(trials):
        why = next((cost.why for cost in trials if cost.why), "its training jobs are not known")
        return Cost(None, limit, None, 1, None, why)
    bounds: list[Decimal] = []
    if isinstance(count, int):
        bounds.append(max(known) * count)
    rates = [cost.hourly_usd for cost in trials if cost.hourly_usd is not None]
    if isinstance(search_s, int) and isinstance(parallel, int) and rates:
        bounds.append(max(rates) * parallel * search_s / HOUR_S)
    if not bounds:
        unknown = next((v for v in (count, search_s) if isinstance(v, NotKnown)), None)
        why = (
            f"the number of its training jobs is not known ({unknown.why})"
            if unknown
            else ("nothing limits the number of its training jobs")
        )
        return Cost(None, limit, None, 1, None, why)
    return Cost(None, limit, None, count if isinstance(count, int) else 1, min(bounds), None)


def _grid_size(request: Request) -> int | None:
    """How many combinations a grid search has; None for another search or an unknown range."""
    ranges = request.value(f"{_CONFIG}.ParameterRanges.CategoricalParameterRanges")
    if request.value(f"{_CONFIG}.Strategy") != "Grid" or not isinstance(ranges, list):
        return None
    sizes = [item.get("Values") if isinstance(item, dict) else None for item in ranges]
    known = [len(values) for values in sizes if isinstance(values, list)]
    return prod(known) if known and len(known) == len(sizes) else None
