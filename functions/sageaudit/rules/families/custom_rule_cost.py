"""Custom Debugger rules ran beside the job, each billed as a processing job.

What it checks: A Debugger or profiler rule configuration names an instance type: it is a custom
    rule.
Why it costs: Built-in rules run free of charge. A custom rule runs on its own instance for as long
    as the training job, and is billed as a processing job.
Saving: None here, so that no dollar is counted twice: those processing jobs are audited on their
    own.
When it is wrong: A custom rule that stops a diverging run early can save more than it costs.
What to do: Use a built-in rule that checks the same, without an instance type; else the smallest
    instance that is fast enough. Remove the rules of a model that no longer changes.
Sources: AWS, Debugger guide: built-in rules are "fully managed ... at no additional cost"; custom
    rules are given an `instance_type`. Debugger is closed to new customers since 2026-07-30.
"""

from __future__ import annotations

from sageaudit.rules import api

_LISTS = ("DebugRuleConfigurations", "ProfilerRuleConfigurations")


@api.rule(
    id="SA706",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    in_chat=False,
    before_run=api.Severity.LOW,
)
def check(case: api.JobCase) -> api.Outcome:
    """Needs only the job's own configuration."""
    custom_rules = case.job.custom_rules
    if not custom_rules:
        return api.Clear()
    names = ", ".join(rule.name for rule in custom_rules)
    plural = "s" if len(custom_rules) > 1 else ""
    beside = "ran beside it" if case.before_run is None else "will run beside it"
    return api.fact(
        f"{len(custom_rules)} custom Debugger rule{plural} ({names}) {beside}, each billed as "
        "a processing job of its own.",
        {"custom_rules": len(custom_rules), "names": names},
        fix=tuple(
            api.Parameter(
                f"{_LISTS[rule.of_profiler]}[{rule.name}].InstanceType", rule.instance_type, None
            )
            for rule in custom_rules
        ),
        caution=(
            "Those processing jobs are billed and audited on their own. A built-in "
            "rule, without an instance type, is free; a custom rule may run on a smaller type."
        ),
    )
