"""The request configures SageMaker Debugger, which is closed to new customers.

What it checks: The request has DebugHookConfig, DebugRuleConfigurations,
    ProfilerRuleConfigurations, or a ProfilerConfig that is not disabled. The finding names custom
    rules, which have an instance type, and profiler rules that Debugger no longer supports:
    MaxInitializationTime, OverallFrameworkMetrics and StepOutlier.
Why it costs: In a new account the request fails, or its rules are not evaluated. In an account that
    may still use Debugger, hooks and the profiler slow the run down. A custom rule is billed as a
    processing job for as long as the training job runs. Built-in rules are free.
Saving: None: the cost of the hooks is not known before the run.
When it is wrong: Existing customers may still use Debugger. Older SDKs add the configuration by
    themselves.
What to do: Remove the parameters. With the SageMaker Python SDK v2, pass disable_profiler=True and
    debugger_hook_config=False. CloudWatch's host metrics remain. For profiles, use the framework's
    own profiler.
Sources: SageMaker guide, Debugger: "no longer open to new customers", since 2026-07-30; SageMaker
    Profiler ends on 2027-06-30; release notes: support for three profiler rules ended on
    2023-03-16.
"""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.request.request import Request
from sageaudit.rules import api

_OFF = "ProfilerConfig.DisableProfiler"
_RULES = ("DebugRuleConfigurations", "ProfilerRuleConfigurations")
_PARAMETERS = ("DebugHookConfig", *_RULES, "ProfilerConfig")
_REMOVED_RULES = frozenset({"maxinitializationtime", "overallframeworkmetrics", "stepoutlier"})


@api.rule(
    id="SA709",
    scope=api.RequestCase,
    kinds={api.JobKind.TRAINING},
    request_severity=api.Severity.LOW,
    required_parameters=(_OFF,),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Judges only the request's Debugger parameters."""
    request = case.request
    is_disabled = request.value(_OFF) is True
    parameters = [
        path
        for path in _PARAMETERS
        if request.is_set(path) and not (path == "ProfilerConfig" and is_disabled)
    ]
    if not parameters:
        return api.Clear()
    return api.recommendation(
        f"{' and '.join(parameters)}: SageMaker Debugger has been closed to new customers since "
        f"July 2026{''.join(_rule_clauses(request))}.",
        {"parameters": ", ".join(parameters)},
        fix=tuple(api.Parameter(path, "set", None) for path in parameters),
        caution="Existing customers may still use it. How much it slows the run down is not known.",
    )


def _rule_clauses(request: Request) -> Iterator[str]:
    for path in _RULES:
        configurations = request.value(path)
        for item in configurations if isinstance(configurations, list) else []:
            if not isinstance(item, dict):
                continue
            parameters, name = item.get("RuleParameters"), item.get("RuleConfigurationName")
            kind = parameters.get("rule_to_invoke") if isinstance(parameters, dict) else None
            if item.get("InstanceType"):
                yield f"; {name} is billed as a processing job of its own"
            elif str(kind or name).replace("_", "").lower() in _REMOVED_RULES:
                yield f"; {name} is a rule that Debugger has not supported since March 2023"
