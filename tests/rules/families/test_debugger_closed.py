from functools import partial
from typing import Any

from tests.fakes.planned import LATER, request_answer
from tests.fakes.rule_cases import CLEAR, cannot_judge, finds

RULE = "debugger-closed"
HOOK = {"S3OutputPath": "s3://bucket/debug"}


def rules(**facts: Any) -> dict[str, Any]:
    """One profiler rule."""
    return {
        "ProfilerRuleConfigurations": [
            {"RuleConfigurationName": "mine", "RuleEvaluatorImage": "i", **facts}
        ]
    }


verdict = partial(request_answer, RULE)


def test_each_of_its_parameters_is_found() -> None:
    """And removed by the fix."""
    assert verdict({"DebugHookConfig": HOOK}) == finds(
        fix=[("DebugHookConfig", None)], severity="low"
    )
    result = verdict({"ProfilerConfig": {"S3OutputPath": "s3://bucket/p"}})
    assert result == finds(fix=[("ProfilerConfig", None)], severity="low")
    result = verdict(
        {"ProfilerRuleConfigurations": [{"RuleConfigurationName": "r", "RuleEvaluatorImage": "i"}]}
    )
    assert result == finds(fix=[("ProfilerRuleConfigurations", None)], severity="low")


def test_a_profiler_that_is_off_is_no_use_of_it() -> None:
    """As SDKs write it."""
    assert verdict({"ProfilerConfig": {"DisableProfiler": True}}) == CLEAR
    assert verdict() == CLEAR


def test_a_switch_that_is_known_later_is_not_judged() -> None:
    """It may be off."""
    assert verdict({"ProfilerConfig": {"DisableProfiler": LATER}}) == cannot_judge("…")


def test_a_dropped_rule_is_named_by_what_it_invokes() -> None:
    """Whatever it is called here."""
    result = verdict(rules(RuleParameters={"rule_to_invoke": "StepOutlier"}))
    assert result == finds("…mine is a rule that Debugger has not supported…")


def test_other_built_in_rules_are_not_named_custom_ones_are() -> None:
    """They have an instance type."""
    result = verdict(rules(RuleParameters={"rule_to_invoke": "ProfilerReport"}))
    assert result == finds("…July 2026.")
    result = verdict(rules(RuleConfigurationName="StepOutlier", InstanceType="ml.m5.xlarge"))
    assert result == finds("…StepOutlier is billed as a processing job of its own.")
