"""Parameters of a training request that exclude each other, or of which one is needed.

What it checks: Both or none of TrainingImage and AlgorithmName; no instances, or an InstanceType
    beside InstanceGroups or InstancePreferences; a warm pool with instance groups; a channel for an
    instance group that is not there.
Why it costs: Nothing: AWS refuses the request.
Saving: None.
When it is wrong: Serverless jobs need none of them and are left out.
What to do: Keep the one that is meant.
Sources: botocore, AlgorithmSpecification: "You must specify either the algorithm name ... or the
    image URI"; ResourceConfig: InstancePreferences "is mutually exclusive with InstanceType,
    InstanceGroups". SageMaker guide, heterogeneous clusters: no warm pools.
"""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.request.request import Request
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
    before_run=api.Severity.HIGH,
)
def check(case: api.RequestCase) -> api.Outcome:
    """All of them at once; a value that is not known yet counts as set."""
    found = list(_conflicts(case.request))
    if not found:
        return api.Clear()
    reasons = "; ".join(why for why, _ in found)
    return api.fact(
        f"AWS refuses the request: {reasons}.",
        {"conflicts": len(found)},
        fix=tuple(fix for _, fix in found),
        caution="The job does not start.",
    )


def _conflicts(request: Request) -> Iterator[tuple[str, api.Parameter]]:
    """Each conflict with what removes it."""
    has = request.is_set
    if has(_IMAGE) and has(_NAME):
        yield "it has both TrainingImage and AlgorithmName", api.Parameter(_NAME, "set", None)
    if not has(_IMAGE) and not has(_NAME):
        fix = api.Parameter(_IMAGE, None, "<image>")
        yield "it has neither TrainingImage nor AlgorithmName", fix
    chosen = [path for path in (_TYPE, _GROUPS, _PREFERRED) if has(path)]
    if not chosen and not has(_TUNING):
        yield "it has no instance type", api.Parameter(_TYPE, None, "<instance type>")
    if len(chosen) > 1:
        names = " and ".join(path.rpartition(".")[2] for path in chosen)
        yield f"it has {names}", api.Parameter(chosen[0], "set", None)
    if has(_GROUPS) and has(_KEEP):
        fix = api.Parameter(_KEEP, "set", None)
        yield "a warm pool does not take instance groups", fix
    yield from _unknown_groups(request)


def _unknown_groups(request: Request) -> Iterator[tuple[str, api.Parameter]]:
    """Channels for an instance group that the request does not have."""
    groups, channels = request.value(_GROUPS), request.value("InputDataConfig")
    if not isinstance(groups, list) or not isinstance(channels, list):
        return
    names = [group.get("InstanceGroupName") for group in groups if isinstance(group, dict)]
    if any(isinstance(name, api.NotKnown) for name in names):
        return
    for position, channel in enumerate(channels):
        path = f"InputDataConfig[{position}].DataSource.S3DataSource.InstanceGroupNames"
        asked = request.value(path)
        for number, name in enumerate(asked if isinstance(asked, list) else []):
            if isinstance(name, str) and name not in names:
                of = channel.get("ChannelName", position)
                fix = api.Parameter(f"{path}[{number}]", name, "<one of InstanceGroups>")
                yield f"channel {of} is for the instance group {name}, which is not there", fix
