from __future__ import annotations

from typing import Any

from tests.fakes.planned import asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "profiler-rule-dropped"
IMAGE = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"


def rules(**more: Any) -> dict[str, Any]:
    """One profiler rule."""
    return {
        "ProfilerRuleConfigurations": [
            {"RuleConfigurationName": "mine", "RuleEvaluatorImage": IMAGE, **more}
        ]
    }


test_cases = cases(
    RULE,
    "A dropped rule is found by what it invokes. Whatever it is called here.",
    row(finds(paths=["ProfilerRuleConfigurations[mine]"]),
        rules(RuleParameters={"rule_to_invoke": "StepOutlier"})),
    "Other rules and custom ones are clear. A custom rule has an instance type of its own.",
    row(CLEAR, rules(RuleParameters={"rule_to_invoke": "ProfilerReport"})),
    row(CLEAR, rules(RuleConfigurationName="StepOutlier", InstanceType="ml.m5.xlarge")),
    row(CLEAR),
    ask=asked,
)  # fmt: skip
