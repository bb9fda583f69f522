"""A profiler rule that SageMaker Debugger no longer has.

What it checks: A profiler rule configuration asks for MaxInitializationTime,
    OverallFrameworkMetrics or StepOutlier.
Why it costs: It is never evaluated, so it gives no result.
Saving: None.
When it is wrong: A custom rule of the same name, which has an instance type of its own, is left
    out.
What to do: Remove it. CloudWatch's metrics of the hosts show idle starts; the framework's own
    profiler shows slow steps.
Sources: SageMaker guide, Debugger release notes: dropped on 2023-03-16.
"""

from __future__ import annotations

from sageaudit.rules import api

_RULES = "ProfilerRuleConfigurations"
_DROPPED = frozenset({"maxinitializationtime", "overallframeworkmetrics", "stepoutlier"})


@api.rule(
    id="SA710",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    before_run=api.Severity.MEDIUM,
)
def check(case: api.RequestCase) -> api.Outcome:
    """By the rule that is invoked, or else by its name."""
    listed = case.request.value(_RULES)
    dropped = []
    for position, item in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(item, dict) or item.get("InstanceType"):
            continue
        name = str(item.get("RuleConfigurationName") or position)
        parameters = item.get("RuleParameters")
        invoked = parameters.get("rule_to_invoke") if isinstance(parameters, dict) else None
        if str(invoked or name).replace("_", "").lower() in _DROPPED:
            dropped.append(name)
    if not dropped:
        return api.Clear()
    return api.fact(
        f"{' and '.join(dropped)}: SageMaker dropped this kind of profiler rule in March 2023.",
        {"rules": len(dropped)},
        fix=tuple(api.Parameter(f"{_RULES}[{name}]", "set", None) for name in dropped),
        caution="It is never evaluated.",
    )
