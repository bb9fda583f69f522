"""Parameters of a training request that exclude each other, or of which one is needed.

What it checks: Both or none of TrainingImage and AlgorithmName; no instances, or an InstanceType
    beside InstanceGroups or InstancePreferences; a warm pool with instance groups.
Why it costs: Nothing: AWS refuses the request.
Saving: None.
When it is wrong: Serverless jobs need none of them and are left out.
What to do: Keep the one that is meant.
Sources: botocore, AlgorithmSpecification: "You must specify either the algorithm name ... or the
    image URI"; ResourceConfig: InstancePreferences "is mutually exclusive with InstanceType,
    InstanceGroups". SageMaker guide, heterogeneous clusters: no warm pools.
"""

from __future__ import annotations

from sageaudit.rules import api

_IMAGE, _NAME = "AlgorithmSpecification.TrainingImage", "AlgorithmSpecification.AlgorithmName"
_TYPE, _GROUPS = "ResourceConfig.InstanceType", "ResourceConfig.InstanceGroups"
_PREFERRED = "ResourceConfig.InstancePreferences"
_TUNING = "HyperParameterTuningResourceConfig"
_KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"


def _serverless(case: api.RequestCase) -> str | None:
    return "it is serverless" if case.request.value("ServerlessJobConfig") else None


@api.rule(
    id="SA608",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    not_applicable=(_serverless,),
    before_run=api.BeforeRun(api.Severity.HIGH),
)
def check(case: api.RequestCase) -> api.Outcome:
    """The first of them that holds; a value that is not known yet counts as set."""
    value = case.request.value
    if value(_IMAGE) and value(_NAME):
        return _refused("it has both TrainingImage and AlgorithmName", _NAME, "set", None)
    if not value(_IMAGE) and not value(_NAME):
        return _refused("it has neither TrainingImage nor AlgorithmName", _IMAGE, None, "<image>")
    chosen = [path for path in (_TYPE, _GROUPS, _PREFERRED) if value(path)]
    if not chosen and not value(_TUNING):
        return _refused("it has no instance type", _TYPE, None, "<instance type>")
    if len(chosen) > 1:
        names = " and ".join(path.rpartition(".")[2] for path in chosen)
        return _refused(f"it has {names}", chosen[0], "set", None)
    if value(_GROUPS) and value(_KEEP):
        return _refused("a warm pool does not take instance groups", _KEEP, "set", None)
    return api.Clear()


def _refused(why: str, path: str, old: str | None, new: str | None) -> api.Found:
    return api.fact(
        f"AWS refuses the request: {why}.",
        {"parameter": path},
        fix=(api.Parameter(path, old, new),),
        caution="The job does not start.",
    )
