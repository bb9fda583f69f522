"""Several GPUs an instance for an algorithm that uses one of them.

What it checks: The built-in XGBoost on a type with several GPUs, without the hyperparameter
    use_dask_gpu_training; or k-means or k-NN there.
Why it costs: All GPUs of the type are billed, and one works.
Saving: None is counted, since the smaller type may have less memory; the rates are shown.
When it is wrong: A type that is taken for its memory: the GPUs come with it.
What to do: A type with one such GPU; or, with XGBoost from 1.5-1 on, use_dask_gpu_training.
Sources: SageMaker guide: XGBoost, "distributed GPU training" with Dask; k-means and k-NN, "single
    GPU device on one or more instances".
"""

from __future__ import annotations

from sageaudit.domain.job.image import builtin_algorithm
from sageaudit.domain.prices.market import InstanceType
from sageaudit.rules import api

_ONE_DEVICE = frozenset({"k-means", "k-NN"})
_DASK = ("HyperParameters.use_dask_gpu_training", "StaticHyperParameters.use_dask_gpu_training")


@api.rule(
    id="SA309",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    before_run=api.BeforeRun(
        api.Severity.HIGH, reads=("AlgorithmSpecification.TrainingImage", *api.TYPE_READS, *_DASK)
    ),
)
def check(case: api.RequestCase) -> api.Outcome:
    """By the image's name, the type and one hyperparameter."""
    algorithm = builtin_algorithm(case.job.image)
    group = case.job.groups[0] if len(case.job.groups) == 1 else None
    today = case.market.types.get(group.instance_type) if group else None
    if algorithm is None or today is None or today.gpus <= 1 or algorithm.cpu_only:
        return api.Clear()
    dask = any(str(case.request.value(path)).lower() == "true" for path in _DASK)
    if not (algorithm.name in _ONE_DEVICE or (algorithm.name.startswith("XGBoost") and not dask)):
        return api.Clear()
    smaller = _with_one(case, today)
    more = ""
    if smaller:
        now, then = _said(case, today), _said(case, smaller)
        more = f" {smaller.name} has one for {then} instead of {now} an hour."
    return api.fact(
        f"{algorithm.name} uses one GPU, and {today.name} has {today.gpus}.{more}",
        {"gpus": today.gpus, "one_gpu_type": smaller.name if smaller else None},
        fix=api.type_fix(case.job, smaller.name if smaller else None),
        caution="Check that the data fits into the memory of the smaller type.",
    )


def _with_one(case: api.RequestCase, today: InstanceType) -> InstanceType | None:
    """The cheapest type with one GPU of the same model, at a known price."""
    rates = [
        (rate.usd, other.name, other)
        for other in case.market.types.values()
        if other.gpu_model == today.gpu_model
        and other.gpus == 1
        and case.job.kind in other.kinds
        and (rate := case.market.hourly(case.job.region, case.job.kind, other.name)) is not None
    ]
    return min(rates)[2] if rates else None


def _said(case: api.RequestCase, one: InstanceType) -> str:
    rate = case.market.hourly(case.job.region, case.job.kind, one.name)
    return "an unknown rate" if rate is None else f"${rate.usd:,.2f}"
