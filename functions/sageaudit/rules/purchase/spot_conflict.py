"""The request combines managed spot with a setting that managed spot does not support.

What it checks: EnableManagedSpotTraining is set together with KeepAlivePeriodInSeconds,
    InstanceGroups, InstancePreferences, TrainingPlanArn or ServerlessJobConfig.
Why it costs: AWS refuses the request, or one of the two settings has no effect. Then a warm pool is
    never kept, or a prepaid plan stays idle.
Saving: None.
When it is wrong: AWS may allow a combination later: the SageMaker guide has the current list.
What to do: Keep one of the two. Short runs that follow one another gain from a warm pool, long runs
    with checkpoints from spot.
Sources: SageMaker guide, warm pools and heterogeneous clusters: not with managed spot. botocore,
    InstancePreferences: "mutually exclusive with ... EnableManagedSpotTraining". Training plans are
    reserved capacity.
"""

from __future__ import annotations

from sageaudit.rules import api

_SPOT = "EnableManagedSpotTraining"
_CONFLICTING_SETTINGS = {
    "ResourceConfig.KeepAlivePeriodInSeconds": "a warm pool",
    "ResourceConfig.InstanceGroups": "instance groups",
    "ResourceConfig.InstancePreferences": "a list of preferred types",
    "ResourceConfig.TrainingPlanArn": "a training plan",
    "ServerlessJobConfig": "a serverless job",
}


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
    settings_text = " and ".join(_CONFLICTING_SETTINGS[path] for path in conflicts)
    return api.measured_fact(
        f"Managed spot cannot be combined with {settings_text}.",
        {"with": ", ".join(conflicts)},
        fix=tuple(
            api.Parameter(path, value if isinstance(value, int | str) else "set", None)
            for path, value in conflicts.items()
        ),
        alternatives=((api.Parameter(_SPOT, True, False),),),
        caution="Keep one of the two.",
    )
