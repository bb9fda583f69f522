"""Debugger rules of its own ran beside the job, each billed as a processing job.

## What it checks
A Debugger or profiler rule configuration names an instance type: it is a custom rule.

## Why it costs
Built-in rules run free of charge. A custom one runs on its own instance for as long as the training
job, and is billed as the processing job that it is.

## Saving
None here, so that no dollar is counted twice: those processing jobs are audited on their own.

## When it is wrong
A custom rule that stops a diverging run early can save more than it costs.

## What to do
A built-in rule that checks the same, given without an instance type; else the smallest instance
that keeps up. Drop rules of a model that has settled.

## Sources
AWS, Debugger guide: built-in rules are "fully managed ... at no additional cost"; custom rules are
given an `instance_type`. Debugger is closed to new customers since 2026-07-30.
"""

from __future__ import annotations

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter
from sageaudit.domain.job.job import CustomRule
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, rule


@rule(id="SA706", scope=JobCase, kinds={JobKind.TRAINING}, in_chat=False)
def check(case: JobCase) -> Outcome:
    """Needs only the job's own configuration."""
    job = case.job
    if not job.custom_rules:
        return Clear()
    names = [rule.name for rule in job.custom_rules]
    rules = f"{len(names)} custom Debugger rule{'s' if len(names) > 1 else ''}"
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE,
        summary=(
            f"{rules} ({', '.join(names)}) ran beside it, each billed as a processing job of its "
            "own."
        ),
        evidence={"custom_rules": len(names), "names": ", ".join(names)},
        fix=tuple(Parameter(_path(rule), rule.instance_type, None) for rule in job.custom_rules),
        caution=(
            "No figure: those processing jobs are billed and audited on their own. A built-in "
            "rule, given without an instance type, is free; a custom one may take a smaller type."
        ),
    )


def _path(rule: CustomRule) -> str:
    """The request has two lists of rules."""
    if rule.of_profiler:
        return f"ProfilerRuleConfigurations[{rule.name}].InstanceType"
    return f"DebugRuleConfigurations[{rule.name}].InstanceType"
