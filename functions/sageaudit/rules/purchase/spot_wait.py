"""A managed spot request whose waiting time AWS refuses.

What it checks: A request with EnableManagedSpotTraining and without MaxWaitTimeInSeconds, or with
    less of it than MaxRuntimeInSeconds; or with MaxWaitTimeInSeconds and without managed spot; or a
    built-in algorithm that is to wait for over an hour without CheckpointConfig.
Why it costs: Nothing: AWS refuses the request. It costs the time until somebody sees that the job
    never started.
Saving: None.
When it is wrong: Where another tool fills the parameter in before it sends the request.
What to do: Set MaxWaitTimeInSeconds to the run time limit plus the time that the job may wait for
    spot capacity. It counts both.
Sources: API reference, StoppingCondition: MaxWaitTimeInSeconds "must be equal to or greater than
    MaxRuntimeInSeconds"; the limit is one day where the request has none. SageMaker guide, managed
    spot training: at most 3,600 s for built-in algorithms without checkpoints.
"""

from __future__ import annotations

from sageaudit.domain.job.addresses import builtin_algorithm
from sageaudit.domain.request.forecast import DEFAULT_LIMIT_S
from sageaudit.rules import api

_SPOT = "EnableManagedSpotTraining"
_WAIT = "StoppingCondition.MaxWaitTimeInSeconds"
_RUN = "StoppingCondition.MaxRuntimeInSeconds"
_MAX_EXTRA_WAIT_S = 86_400
"""The longest wait that the fix adds to the run."""

_BUILT_IN_MAX_WAIT_S = 3600
"""The longest MaxWaitTimeInSeconds of a built-in algorithm without checkpoints."""


@api.rule(
    id="SA406",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    request_severity=api.Severity.HIGH,
    required_parameters=(_SPOT, _WAIT, _RUN, "CheckpointConfig"),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Compares three parameters."""
    spot = case.request.value(_SPOT) is True
    wait_s, run_s = case.request.value(_WAIT), case.request.value(_RUN)
    limit_s = run_s if isinstance(run_s, int) and run_s > 0 else DEFAULT_LIMIT_S
    if not spot:
        if not isinstance(wait_s, int):
            return api.Clear()
        return api.measured_fact(
            "MaxWaitTimeInSeconds is set and managed spot is not on: AWS refuses the request.",
            {"max_wait_s": wait_s},
            fix=(api.Parameter(_SPOT, case.request.value(_SPOT), True),),
            alternatives=((api.Parameter(_WAIT, wait_s, None),),),
            caution="Remove MaxWaitTimeInSeconds if the job is to run on demand.",
        )
    fix = (api.Parameter(_WAIT, wait_s, limit_s + min(limit_s, _MAX_EXTRA_WAIT_S)),)
    if wait_s is None:
        return api.measured_fact(
            "Managed spot is on and MaxWaitTimeInSeconds is missing: AWS refuses the request.",
            {"max_runtime_s": limit_s},
            fix=fix,
            caution=f"It must be at least the limit of the run, {limit_s} s.",
        )
    if not isinstance(wait_s, int):
        return api.Clear()
    if wait_s >= limit_s:
        return _check_built_in_algorithm(case, wait_s)
    default = "" if isinstance(run_s, int) else " (AWS's default)"
    return api.measured_fact(
        f"MaxWaitTimeInSeconds, {wait_s} s, is less than MaxRuntimeInSeconds, {limit_s} "
        f"s{default}: AWS refuses the request.",
        {"max_wait_s": wait_s, "max_runtime_s": limit_s},
        fix=fix,
        caution="It counts the waiting and the run together.",
    )


def _check_built_in_algorithm(case: api.RequestCase, wait_s: int) -> api.Outcome:
    algorithm = builtin_algorithm(case.job.image)
    if (
        algorithm is None
        or wait_s <= _BUILT_IN_MAX_WAIT_S
        or case.request.is_set("CheckpointConfig.S3Uri")
    ):
        return api.Clear()
    return api.measured_fact(
        f"{algorithm.name} without CheckpointConfig may wait for {_BUILT_IN_MAX_WAIT_S} s at"
        " most, and "
        f"MaxWaitTimeInSeconds is {wait_s} s: AWS refuses the request.",
        {"max_wait_s": wait_s},
        fix=(api.Parameter(_WAIT, wait_s, _BUILT_IN_MAX_WAIT_S),),
        alternatives=((api.CHECKPOINTS,),),
        caution="Checkpoints help only an algorithm that writes them.",
    )
