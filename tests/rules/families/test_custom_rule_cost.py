from __future__ import annotations

from dataclasses import replace

from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.parts import CustomRule
from tests.fakes.jobs import job
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "custom-rule-cost"
MINE = CustomRule("MyGradients", "ml.m5.xlarge")


test_cases = cases(
    RULE,
    "A custom rule is found by its name. A built-in one is given without an instance type.",
    row(finds("1 custom Debugger rule (MyGradients) ran beside it, each billed as a processing "
        "job of its own.", fix=[("DebugRuleConfigurations[MyGradients].InstanceType",
        "ml.m5.xlarge", None)]), job(custom_rules=(MINE,))),
    "A profiler rule is named where it stands.",
    # The request has two lists of rules: the fix never names the other one.
    row(finds("…(MyIo)…", paths=["ProfilerRuleConfigurations[MyIo].InstanceType"]),
        parse({"TrainingJobName": "train", "TrainingJobStatus": "Completed",
        "ProfilerRuleConfigurations": [{"RuleConfigurationName": "MyIo",
        "InstanceType": "ml.t3.medium"}]}, {})),
    "Without custom rules it is clear. So is the advised job.",
    row(CLEAR, job(custom_rules=())),
    "Its dollars are those of other jobs. Never a second sum.",
    row(finds(bucket="none", usd=None, severity="info", caution="….", evidence={"custom_rules": 2,
        "names": "A, B"}), job(custom_rules=(replace(MINE, name="A"), replace(MINE, name="B")))),
)  # fmt: skip
