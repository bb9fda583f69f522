"""AWS refuses the waiting time of the managed spot request.

What it checks: AWS refuses a request with one of these:
    - EnableManagedSpotTraining without MaxWaitTimeInSeconds, or with one below MaxRuntimeInSeconds.
    - MaxWaitTimeInSeconds without managed spot.
    - MaxWaitTimeInSeconds above an hour for a built-in algorithm without CheckpointConfig.
Why it costs: Nothing, because AWS refuses the request. But time is lost until somebody notices.
Saving: None.
When it is wrong: Another tool may fill in the parameter before it sends the request.
What to do: Set MaxWaitTimeInSeconds to MaxRuntimeInSeconds plus the time that the job may wait for
    spot capacity. A built-in algorithm whose run may take more than an hour needs CheckpointConfig
    for this.
Sources: API reference, StoppingCondition: MaxWaitTimeInSeconds "must be equal to or greater than
    MaxRuntimeInSeconds"; the limit is one day if the request has none. SageMaker guide, managed
    spot training: at most 3,600 s for built-in algorithms without checkpoints.
"""

from __future__ import annotations

from sageaudit.domain.job.addresses import BuiltInAlgorithm, builtin_algorithm
from sageaudit.domain.request.forecast import DEFAULT_LIMIT_S
from sageaudit.rules import api

_SPOT = "EnableManagedSpotTraining"
_WAIT = "StoppingCondition.MaxWaitTimeInSeconds"
_RUN = "StoppingCondition.MaxRuntimeInSeconds"
_MAX_EXTRA_WAIT_S = 86_400
"""The longest wait for capacity that the fix adds to the run. Our choice."""

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
    """Compares EnableManagedSpotTraining, MaxWaitTimeInSeconds and MaxRuntimeInSeconds."""
    is_spot = case.request.value(_SPOT) is True
    wait_s, run_s = case.request.value(_WAIT), case.request.value(_RUN)
    limit_s = run_s if isinstance(run_s, int) and run_s > 0 else DEFAULT_LIMIT_S
    if not is_spot:
        if not isinstance(wait_s, int):
            return api.Clear()
        return api.measured_fact(
            "MaxWaitTimeInSeconds is set without managed spot: AWS refuses the request.",
            {"max_wait_s": wait_s},
            fix=(
                api.Parameter(_SPOT, case.request.value(_SPOT), True),
                *_wait_fix(case, wait_s, limit_s),
            ),
            alternatives=((api.Parameter(_WAIT, wait_s, None),),),
            caution="If the job should run on demand, remove MaxWaitTimeInSeconds.",
        )
    if wait_s is None:
        return api.measured_fact(
            "Managed spot is set without MaxWaitTimeInSeconds: AWS refuses the request.",
            {"max_runtime_s": limit_s},
            fix=_wait_fix(case, wait_s, limit_s),
            caution=f"It must be at least the run's limit, {limit_s} s.",
        )
    if not isinstance(wait_s, int):
        return api.Clear()
    if wait_s >= limit_s:
        return _check_built_in_algorithm(case, wait_s, limit_s)
    default_text = "" if isinstance(run_s, int) else " (AWS's default)"
    return api.measured_fact(
        f"MaxWaitTimeInSeconds, {wait_s} s, is less than MaxRuntimeInSeconds, {limit_s} "
        f"s{default_text}: AWS refuses the request.",
        {"max_wait_s": wait_s, "max_runtime_s": limit_s},
        fix=_wait_fix(case, wait_s, limit_s),
        caution="MaxWaitTimeInSeconds limits the wait and the run together.",
    )


def _wait_fix(case: api.RequestCase, wait_s: int | None, limit_s: int) -> tuple[api.Parameter, ...]:
    """Returns the changes after which AWS takes the waiting time; none if it takes it now.

    A built-in algorithm without checkpoints waits at most an hour, if its limit fits.
    """
    enough_s = limit_s + min(limit_s, _MAX_EXTRA_WAIT_S)
    new_s = enough_s if wait_s is None or wait_s < limit_s else wait_s
    is_too_long = new_s > _BUILT_IN_MAX_WAIT_S and _limited_algorithm(case) is not None
    if is_too_long and limit_s <= _BUILT_IN_MAX_WAIT_S:
        new_s = _BUILT_IN_MAX_WAIT_S
    wait = () if new_s == wait_s else (api.Parameter(_WAIT, wait_s, new_s),)
    return (*wait, api.CHECKPOINTS) if is_too_long and new_s > _BUILT_IN_MAX_WAIT_S else wait


def _limited_algorithm(case: api.RequestCase) -> BuiltInAlgorithm | None:
    """Returns the built-in algorithm of a request without checkpoints."""
    has_checkpoints = case.request.is_set("CheckpointConfig.S3Uri")
    return None if has_checkpoints else builtin_algorithm(case.job.image)


def _check_built_in_algorithm(case: api.RequestCase, wait_s: int, limit_s: int) -> api.Outcome:
    algorithm = _limited_algorithm(case)
    if algorithm is None or wait_s <= _BUILT_IN_MAX_WAIT_S:
        return api.Clear()
    return api.measured_fact(
        f"MaxWaitTimeInSeconds is {wait_s} s, and {algorithm.name} without CheckpointConfig may "
        f"have {_BUILT_IN_MAX_WAIT_S} s at most: AWS refuses the request.",
        {"max_wait_s": wait_s},
        fix=_wait_fix(case, wait_s, limit_s),
        alternatives=((api.CHECKPOINTS,),) if limit_s <= _BUILT_IN_MAX_WAIT_S else (),
        caution="Checkpoints help only if the algorithm writes them.",
    )
