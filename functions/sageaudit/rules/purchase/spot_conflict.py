"""The request combines managed spot with a setting that managed spot does not support.

What it checks: EnableManagedSpotTraining is set together with KeepAlivePeriodInSeconds,
    InstanceGroups, InstancePreferences, TrainingPlanArn or ServerlessJobConfig.
Why it costs: AWS refuses the request, or one of the two settings has no effect. Then a warm pool is
    never kept, or a prepaid plan stays idle.
Saving: None.
When it is wrong: AWS may allow a combination later: the SageMaker guide has the current list.
What to do: Keep one of the two. Without managed spot, remove MaxWaitTimeInSeconds too. Short runs
    that follow one another gain from a warm pool, long runs with checkpoints from spot.
Sources: SageMaker guide, warm pools and heterogeneous clusters: not with managed spot. botocore,
    InstancePreferences: "mutually exclusive with ... EnableManagedSpotTraining". Training plans are
    reserved capacity.
"""

from __future__ import annotations

from sageaudit.rules import api

_SPOT = "EnableManagedSpotTraining"
_WAIT = "StoppingCondition.MaxWaitTimeInSeconds"
_CONFLICTING_SETTINGS = {
    "ResourceConfig.KeepAlivePeriodInSeconds": "a warm pool",
    "ResourceConfig.InstanceGroups": "instance groups",
    "ResourceConfig.InstancePreferences": "a list of preferred types",
    "ResourceConfig.TrainingPlanArn": "a training plan",
    "ServerlessJobConfig": "a serverless job",
}

_NAMING_TYPES = {
    "ResourceConfig.InstanceGroups",
    "ResourceConfig.InstancePreferences",
    "ServerlessJobConfig",
}
"""Settings without which the request would name no instance type."""


@api.rule(
    id="SA407",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    request_severity=api.Severity.HIGH,
    required_parameters=(_SPOT,),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Looks for settings that exclude managed spot. A value that is not known yet is none."""
    request = case.request
    if request.value(_SPOT) is not True:
        return api.Clear()
    conflicts = {
        path: value
        for path in _CONFLICTING_SETTINGS
        if request.is_set(path) and (value := request.value(path))
    }
    if not conflicts:
        return api.Clear()
    removal = tuple(
        api.Parameter(path, value if isinstance(value, int | str) else "set", None)
        for path, value in conflicts.items()
    )
    no_spot = [api.Parameter(_SPOT, True, False)]
    if (wait_s := request.value(_WAIT)) is not None:
        no_spot.append(api.Parameter(_WAIT, wait_s if isinstance(wait_s, int) else "set", None))
    has_other_types = _NAMING_TYPES.isdisjoint(conflicts)
    settings_text = " and ".join(_CONFLICTING_SETTINGS[path] for path in conflicts)
    return api.measured_fact(
        f"Managed spot cannot be combined with {settings_text}.",
        {"with": ", ".join(conflicts)},
        fix=removal if has_other_types else tuple(no_spot),
        alternatives=(tuple(no_spot),) if has_other_types else (),
        caution="Keep one of the two.",
    )
