from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Clear, Unknown
from tests.fakes.planned import LATER, said, told

RULE = "debugger-closed"
HOOK = {"S3OutputPath": "s3://bucket/debug"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("DebugHookConfig", HOOK),
        ("ProfilerConfig", {"S3OutputPath": "s3://bucket/p"}),
        ("ProfilerRuleConfigurations", [{"RuleConfigurationName": "r", "RuleEvaluatorImage": "i"}]),
    ],
)
def test_each_of_its_parameters_is_found(path: str, value: object) -> None:
    """And removed by the fix."""
    finding = told(RULE, {path: value})
    assert [(fix.path, fix.new) for fix in finding.found.fix] == [(path, None)]
    assert finding.severity.value == "low"


def test_a_profiler_that_is_off_is_no_use_of_it() -> None:
    """As SDKs write it."""
    assert said(RULE, {"ProfilerConfig": {"DisableProfiler": True}}) == Clear()
    assert said(RULE) == Clear()


def test_a_switch_that_is_known_later_is_not_judged() -> None:
    """It may be off."""
    assert isinstance(said(RULE, {"ProfilerConfig": {"DisableProfiler": LATER}}), Unknown)
