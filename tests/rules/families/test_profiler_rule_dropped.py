from __future__ import annotations

from typing import Any

from sageaudit.domain.bill.finding import Clear
from tests.fakes.planned import said, told

RULE = "profiler-rule-dropped"
IMAGE = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"


def rules(**more: Any) -> dict[str, Any]:
    """One profiler rule."""
    return {
        "ProfilerRuleConfigurations": [
            {"RuleConfigurationName": "mine", "RuleEvaluatorImage": IMAGE, **more}
        ]
    }


def test_a_dropped_rule_is_found_by_what_it_invokes() -> None:
    """Whatever it is called here."""
    finding = told(RULE, rules(RuleParameters={"rule_to_invoke": "StepOutlier"}))
    assert finding.found.fix[0].path == "ProfilerRuleConfigurations[mine]"


def test_other_rules_and_custom_ones_are_clear() -> None:
    """A custom rule has an instance type of its own."""
    assert said(RULE, rules(RuleParameters={"rule_to_invoke": "ProfilerReport"})) == Clear()
    own = rules(RuleConfigurationName="StepOutlier", InstanceType="ml.m5.xlarge")
    assert said(RULE, own) == Clear()
    assert said(RULE) == Clear()
