from __future__ import annotations

from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "debugger-closed"
HOOK = {"S3OutputPath": "s3://bucket/debug"}


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
    ask=asked,
)  # fmt: skip
