from __future__ import annotations

from dataclasses import replace

from sageaudit.domain.bill.finding import Bucket, Clear
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.parts import CustomRule
from tests.fakes.jobs import job
from tests.fakes.judging import found, outcome, priced

RULE = "custom-rule-cost"
MINE = CustomRule("MyGradients", "ml.m5.xlarge")


def test_a_custom_rule_is_found_by_its_name() -> None:
    """A built-in one is given without an instance type."""
    what = found(RULE, job(custom_rules=(MINE,)))
    assert what.summary == (
        "1 custom Debugger rule (MyGradients) ran beside it, each billed as a processing job of "
        "its own."
    )
    [fix] = what.fix
    assert fix.path == "DebugRuleConfigurations[MyGradients].InstanceType"
    assert (fix.old, fix.new) == ("ml.m5.xlarge", None)


def test_its_dollars_are_those_of_other_jobs() -> None:
    """Never a second sum."""
    finding = priced(RULE, job(custom_rules=(replace(MINE, name="A"), replace(MINE, name="B"))))
    assert finding.found.bucket is Bucket.NONE
    assert (finding.saving_usd, finding.severity.value) == (None, "info")
    assert finding.found.evidence == {"custom_rules": 2, "names": "A, B"}
    assert finding.found.caution is not None


def test_a_profiler_rule_is_named_where_it_stands() -> None:
    """The request has two lists of rules: the fix never names the other one."""
    rule = {"RuleConfigurationName": "MyIo", "InstanceType": "ml.t3.medium"}
    answer = {"TrainingJobName": "train", "TrainingJobStatus": "Completed"}
    run = parse({**answer, "ProfilerRuleConfigurations": [rule]}, {})
    what = found(RULE, run)
    assert "(MyIo)" in what.summary
    assert [fix.path for fix in what.fix] == ["ProfilerRuleConfigurations[MyIo].InstanceType"]


def test_without_custom_rules_it_is_clear() -> None:
    """So is the advised job."""
    assert outcome(RULE, job(custom_rules=())) == Clear()
