"""Several instances for an algorithm or container that trains on one.

What it checks: More than one instance for a built-in algorithm whose guide says "single instance
    only" (BlazingText on a GPU, LDA, Object2Vec, Semantic Segmentation, Sequence to Sequence), or
    for the scikit-learn container.
Why it costs: Each instance is billed. The others are refused or idle, or all of them fit the same
    model on the same data.
Saving: Derived: the run on one instance. It takes as long, since the others do not help it.
When it is wrong: A script in the scikit-learn container that splits the work itself by the hosts
    in resourceconfig.json.
What to do: InstanceCount 1.
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
    """By the image's name and the number of instances."""
    job = case.job
    name = _single_instance_reason(case)
    if name is None or (job.instance_count or 1) <= 1:
        return api.Clear()
    return api.derived_saving(
        f"{name} trains on one instance, and the request asks for {job.instance_count}.",
        {"instances": job.instance_count},
        fix=(api.Parameter(_COUNT, job.instance_count, 1),),
        change=api.SetCount(1, Decimal(1)),
        caution="The run takes as long on one: the other instances do not help it.",
    )


def _single_instance_reason(case: api.RequestCase) -> str | None:
    algorithm = builtin_algorithm(case.job.image)
    if algorithm is None:
        return "scikit-learn" if repository(case.job.image) == _SKLEARN else None
    gpus = any(found is not None and found.gpus for found in case.instance_types)
    one = algorithm.name in _SINGLE_INSTANCE_ALGORITHMS or (
        gpus and algorithm.name in _SINGLE_INSTANCE_ON_GPU
    )
    return algorithm.name if one else None
