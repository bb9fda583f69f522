"""Several GPUs an instance for an algorithm that uses one of them.

What it checks: The built-in XGBoost on a type with several GPUs, without the hyperparameter
    use_dask_gpu_training; or k-means or k-NN there.
Why it costs: All GPUs of the type are billed, and one works.
Saving: None is counted, since the smaller type may have less memory; the rates are shown.
When it is wrong: A type that was chosen for its memory.
What to do: A type with one such GPU; or, with XGBoost from 1.5-1 on, use_dask_gpu_training.
Sources: SageMaker guide: XGBoost, "distributed GPU training" with Dask; k-means and k-NN, "single
    GPU device on one or more instances".
"""

from __future__ import annotations

from sageaudit.domain.job.addresses import builtin_algorithm
from sageaudit.domain.resize.type_choice import cheapest_type
from sageaudit.rules import api
from sageaudit.rules.types.another_type import hourly_rate

_ONE_DEVICE = frozenset({"k-means", "k-NN"})
_DASK = ("HyperParameters.use_dask_gpu_training", "StaticHyperParameters.use_dask_gpu_training")


@api.rule(
    id="SA309",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    request_severity=api.Severity.HIGH,
    required_parameters=("AlgorithmSpecification.TrainingImage", *api.TYPE_PARAMETERS, *_DASK),
)
def check(case: api.RequestCase) -> api.Outcome:
    """By the image's name, the type and one hyperparameter."""
    algorithm = builtin_algorithm(case.job.image)
    today, *others = case.instance_types or [None]
    if algorithm is None or today is None or others or today.gpus <= 1 or algorithm.is_cpu_only:
        return api.Clear()
    dask = any(str(case.request.value(path)).lower() == "true" for path in _DASK)
    if not (algorithm.name in _ONE_DEVICE or (algorithm.name.startswith("XGBoost") and not dask)):
        return api.Clear()
    model = today.gpu_model
    one_gpu = cheapest_type(
        case.job,
        case.market,
        lambda other: other.gpu_model == model and other.gpus == 1,
        allow_estimates=True,
    )
    smaller, more = None, ""
    if one_gpu:
        usd, smaller = one_gpu
        rate = hourly_rate(case, today)
        now = "an unknown rate" if rate is None else f"${rate.usd:,.2f}"
        more = f" {smaller} has one for ${usd:,.2f} instead of {now} an hour."
    return api.measured_fact(
        f"{algorithm.name} uses one GPU, and {today.name} has {today.gpus}.{more}",
        {"gpus": today.gpus, "one_gpu_type": smaller},
        fix=api.type_fix(case.job, smaller),
        caution="Check that the data fits into the memory of the smaller type.",
    )
