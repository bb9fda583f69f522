"""The limit will stop the run before it is done.

What it checks: MaxRuntimeInSeconds is less than the longest of the last 3 completed runs of the
    family on the same instances.
Why it costs: A run that reaches its limit is stopped and billed. Without checkpoints or a model it
    leaves no result.
Saving: None. If the run is stopped, its whole bill may be lost.
When it is wrong: The new run is known to be shorter, such as a test on less data.
What to do: Set MaxRuntimeInSeconds to one and a half times the longest of the last runs. Set it
    higher if each run is longer than the one before.
Sources: API reference, StoppingCondition: "if the job does not complete during this time, SageMaker
    ends the job". The 3 runs are our choice.
"""

from __future__ import annotations

import math
from decimal import Decimal

from sageaudit.domain.request.forecast import recent_durations_s
from sageaudit.rules import api

_LIMIT = "StoppingCondition.MaxRuntimeInSeconds"
RUNS = api.Threshold("last_runs", 3, "runs", "they show how long the family runs now")
_LIMIT_FACTOR = Decimal("1.5")


@api.rule(
    id="SA609",
    scope=api.RequestCase,
    kinds=api.LIMITED_KINDS,
    thresholds=(RUNS,),
    request_severity=api.Severity.HIGH,
    required_parameters=(_LIMIT, *api.TYPE_PARAMETERS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Compares the limit with the family's last runs."""
    limit_s = case.cost.limit.seconds
    if case.family_history is None:
        return api.HISTORY_UNREAD
    durations_s = recent_durations_s(case.job, case.family_history, int(case.threshold(RUNS)))
    if limit_s is None or not durations_s:
        return api.Unknown("too_few_runs", "no completed run on these instances is known")
    longest_s = max(durations_s)
    if limit_s >= longest_s:
        return api.Clear()
    return api.measured_fact(
        f"MaxRuntimeInSeconds allows {api.duration_text(limit_s)}, but one of the last "
        f"{len(durations_s)} completed runs of its family took {api.duration_text(longest_s)}.",
        {"max_runtime_s": limit_s, "longest_s": longest_s, "runs": len(durations_s)},
        fix=(
            api.Parameter(
                _LIMIT, case.request.value(_LIMIT), math.ceil(_LIMIT_FACTOR * longest_s / 600) * 600
            ),
        ),
        caution="SageMaker stops the run at its limit, and bills it.",
    )
