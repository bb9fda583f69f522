"""The algorithm uses one of the several GPUs of an instance.

What it checks: The type has several GPUs, and the algorithm is the built-in k-means, k-NN, or
    XGBoost without the hyperparameter use_dask_gpu_training.
Why it costs: All GPUs of the type are billed, but only one works.
Saving: None: the smaller type may have less memory. The finding shows the rates.
When it is wrong: The type may have been chosen for its memory.
What to do: Take a type with one such GPU. Or set use_dask_gpu_training, which XGBoost has from
    version 1.5-1.
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
    """Judges by the image's name, the type and one hyperparameter."""
    algorithm = builtin_algorithm(case.job.image)
    current_type, *other_types = case.instance_types or [None]
    if (
        algorithm is None
        or current_type is None
        or other_types
        or current_type.gpus <= 1
        or algorithm.is_cpu_only
    ):
        return api.Clear()
    uses_dask = any(str(case.request.value(path)).lower() == "true" for path in _DASK)
    if not (
        algorithm.name in _ONE_DEVICE or (algorithm.name.startswith("XGBoost") and not uses_dask)
    ):
        return api.Clear()
    gpu_model = current_type.gpu_model
    one_gpu = cheapest_type(
        case.job,
        case.market,
        lambda instance_type: instance_type.gpu_model == gpu_model and instance_type.gpus == 1,
        allow_estimates=True,
    )
    smaller, price_sentence = None, ""
    if one_gpu:
        usd, smaller = one_gpu
        rate = hourly_rate(case, current_type)
        rate_text = "an unknown rate" if rate is None else api.format_rate(rate.usd)
        price_sentence = (
            f" {smaller} has one for {api.format_rate(usd)} instead of {rate_text} an hour."
        )
    return api.measured_fact(
        f"{algorithm.name} uses one GPU, and {current_type.name} has "
        f"{current_type.gpus}.{price_sentence}",
        {"gpus": current_type.gpus, "one_gpu_type": smaller},
        fix=api.type_fix(case.job, smaller),
        caution="Check that the data fits into the memory of the smaller type.",
    )
