from typing import Any

from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "debugger-closed"
HOOK = {"S3OutputPath": "s3://bucket/debug"}


def rules(**more: Any) -> dict[str, Any]:
    """One profiler rule."""
    return {
        "ProfilerRuleConfigurations": [
            {"RuleConfigurationName": "mine", "RuleEvaluatorImage": "i", **more}
        ]
    }


test_cases = cases(
    RULE,
    "Each of its parameters is found. And removed by the fix.",
    row(finds(fix=[("DebugHookConfig", None)], severity="low"), {"DebugHookConfig": HOOK}),
    row(finds(fix=[("ProfilerConfig", None)], severity="low"),
        {"ProfilerConfig": {"S3OutputPath": "s3://bucket/p"}}),
    row(finds(fix=[("ProfilerRuleConfigurations", None)], severity="low"),
        {"ProfilerRuleConfigurations": [{"RuleConfigurationName": "r",
        "RuleEvaluatorImage": "i"}]}),
    "A profiler that is off is no use of it. As SDKs write it.",
    row(CLEAR, {"ProfilerConfig": {"DisableProfiler": True}}),
    row(CLEAR),
    "A switch that is known later is not judged. It may be off.",
    row("unknown: …", {"ProfilerConfig": {"DisableProfiler": LATER}}),
    "A dropped rule is named by what it invokes. Whatever it is called here.",
    row(finds("…mine is of a kind that was dropped…"),
        rules(RuleParameters={"rule_to_invoke": "StepOutlier"})),
    "Other built-in rules are not named, custom ones are. They have an instance type.",
    row(finds("…July 2026."), rules(RuleParameters={"rule_to_invoke": "ProfilerReport"})),
    row(finds("…StepOutlier is billed as a processing job of its own."),
        rules(RuleConfigurationName="StepOutlier", InstanceType="ml.m5.xlarge")),
    ask=asked,
)  # fmt: skip
