"""The request configures SageMaker Debugger, which is closed to new customers.

What it checks: DebugHookConfig, DebugRuleConfigurations, ProfilerRuleConfigurations, or a
    ProfilerConfig that is not switched off. Named are custom rules, which have an instance type,
    and profiler rules of the kinds that Debugger no longer has: MaxInitializationTime,
    OverallFrameworkMetrics and StepOutlier.
Why it costs: A new account's request fails or has no rules evaluated. In an account where it still
    works, hooks and profiler slow the run down. A custom rule is billed as a processing job for as
    long as the training job runs; a built-in one is free, and one of a dropped kind is never
    evaluated.
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
    return api.recommendation(
        f"{' and '.join(used)}: SageMaker Debugger is closed to new customers since July 2026"
        f"{''.join(_rule_sentences(request))}.",
        {"parameters": ", ".join(used)},
        fix=tuple(api.Parameter(path, "set", None) for path in used),
        caution="Existing customers may go on using it. What it costs the run is not known.",
    )


def _rule_sentences(request: Request) -> Iterator[str]:
    """More for the sentence: custom rules, and profiler rules of a dropped kind."""
    for path in _RULES:
        listed = request.value(path)
        for item in listed if isinstance(listed, list) else []:
            if not isinstance(item, dict):
                continue
            parameters, name = item.get("RuleParameters"), item.get("RuleConfigurationName")
            kind = parameters.get("rule_to_invoke") if isinstance(parameters, dict) else None
            if item.get("InstanceType"):
                yield f"; {name} is billed as a processing job of its own"
            elif str(kind or name).replace("_", "").lower() in _REMOVED_RULES:
                yield f"; {name} is of a kind that was dropped in March 2023"
