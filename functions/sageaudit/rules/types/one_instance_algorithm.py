"""The request asks for several instances, but its algorithm or container trains on one.

What it checks: The request has more than one instance for the scikit-learn container, or for a
    built-in algorithm whose guide says "single instance only". These are BlazingText on a GPU, LDA,
    Object2Vec, Semantic Segmentation and Sequence to Sequence.
Why it costs: Each instance is billed, but the others are refused or idle, or fit the same model to
    the same data.
Saving: Derived: the run on one instance, with the same run time.
When it is wrong: A script in the scikit-learn container may split the work itself, by the hosts in
    resourceconfig.json.
What to do: Set InstanceCount to 1.
Sources: SageMaker guide, "Parameters for built-in algorithms" (instance class, parallelizable).
    SageMaker Python SDK, SKLearn: "Scikit-Learn does not support distributed training".
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.job.addresses import builtin_algorithm, repository
from sageaudit.rules import api

_SINGLE_INSTANCE_ALGORITHMS = frozenset(
    {"LDA", "Object2Vec", "Semantic Segmentation", "Sequence to Sequence"}
)
_SINGLE_INSTANCE_ON_GPU = frozenset({"BlazingText"})
_SKLEARN = "sagemaker-scikit-learn"
_COUNT = api.COUNT_PATHS[api.JobKind.TRAINING]


@api.rule(
    id="SA308",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    request_severity=api.Severity.HIGH,
    required_parameters=(_COUNT, "AlgorithmSpecification.TrainingImage", *api.TYPE_PARAMETERS),
    subsumes={"replicated-input"},
)
def check(case: api.RequestCase) -> api.Outcome:
    """Judges by the image's name and the number of instances."""
    job = case.job
    name = _single_instance_algorithm(case)
    if name is None or (job.instance_count or 1) <= 1:
        return api.Clear()
    return api.derived_saving(
        f"{name} trains on one instance, but the request asks for {job.instance_count}.",
        {"instances": job.instance_count},
        fix=(api.Parameter(_COUNT, job.instance_count, 1),),
        change=api.SetCount(1, Decimal(1)),
        caution="The run takes as long on one instance, because the others do not help it.",
    )


def _single_instance_algorithm(case: api.RequestCase) -> str | None:
    algorithm = builtin_algorithm(case.job.image)
    if algorithm is None:
        return "scikit-learn" if repository(case.job.image) == _SKLEARN else None
    has_gpus = any(
        instance_type is not None and instance_type.gpus for instance_type in case.instance_types
    )
    is_single = algorithm.name in _SINGLE_INSTANCE_ALGORITHMS or (
        has_gpus and algorithm.name in _SINGLE_INSTANCE_ON_GPU
    )
    return algorithm.name if is_single else None
