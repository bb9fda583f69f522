"""The request configures SageMaker Debugger, which is closed to new customers.

What it checks: DebugHookConfig, DebugRuleConfigurations, ProfilerRuleConfigurations, or a
    ProfilerConfig that is not switched off. The kinds of profiler rules that Debugger no longer has
    are named: MaxInitializationTime, OverallFrameworkMetrics and StepOutlier.
Why it costs: A new account's request fails or has no rules evaluated. In an account where it still
    works, hooks and profiler slow the run down, and custom rules are billed. A rule of a dropped
    kind is never evaluated.
Saving: None is counted: what the hooks cost is not known before the run.
When it is wrong: Existing customers may use it as before, without new features. Older SDKs add the
    configuration by themselves.
What to do: Remove the parameters; with the SageMaker Python SDK v2 pass disable_profiler=True and
    debugger_hook_config=False. CloudWatch's metrics of the hosts stay. For profiles, use the
    framework's own profiler.
Sources: SageMaker guide, Debugger: "no longer open to new customers", since 2026-07-30; SageMaker
    Profiler ends on 2027-06-30; release notes: three kinds of rules dropped on 2023-03-16.
"""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.request.request import Request
from sageaudit.rules import api

_OFF = "ProfilerConfig.DisableProfiler"
_PARAMETERS = (
    "DebugHookConfig",
    "DebugRuleConfigurations",
    "ProfilerRuleConfigurations",
    "ProfilerConfig",
)
_DROPPED = frozenset({"maxinitializationtime", "overallframeworkmetrics", "stepoutlier"})


@api.rule(
    id="SA709",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    before_run=api.Severity.LOW,
    reads=(_OFF,),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Looks at the configuration alone."""
    request = case.request
    disabled = request.value(_OFF) is True
    used = [
        path
        for path in _PARAMETERS
        if request.value(path) and not (path == "ProfilerConfig" and disabled)
    ]
    if not used:
        return api.Clear()
    dropped = "; ".join(
        f"{name} is of a kind that was dropped in March 2023" for name in _dropped(request)
    )
    return api.advice(
        f"{' and '.join(used)}: SageMaker Debugger is closed to new customers since July 2026"
        f"{dropped and '; '}{dropped}.",
        {"parameters": ", ".join(used)},
        fix=tuple(api.Parameter(path, "set", None) for path in used),
        caution="Existing customers may go on using it. What it costs the run is not known.",
    )


def _dropped(request: Request) -> Iterator[str]:
    """The names of profiler rules of a dropped kind; a custom rule has an instance type."""
    listed = request.value("ProfilerRuleConfigurations")
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, dict) and not item.get("InstanceType"):
            parameters, name = item.get("RuleParameters"), str(item.get("RuleConfigurationName"))
            kind = parameters.get("rule_to_invoke") if isinstance(parameters, dict) else None
            if str(kind or name).replace("_", "").lower() in _DROPPED:
                yield name
