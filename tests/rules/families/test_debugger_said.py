from __future__ import annotations

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.parts import RuleEvaluation
from tests.fakes.jobs import job
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "debugger-said"
MET = "RuleEvaluationConditionMet: Evaluation of the rule LowGPUUtilization at step 0 resulted in "


def said(*statuses: str, details: str | None = None) -> Job:
    """A job whose rules ended so, each named after its position."""
    return job(
        evaluations=tuple(
            RuleEvaluation(f"Rule{n}", status, details) for n, status in enumerate(statuses, 1)
        )
    )


def issues(*names: str) -> Job:
    """A job in which these rules found issues."""
    return job(evaluations=tuple(RuleEvaluation(name, "IssuesFound", None) for name in names))


test_cases = cases(
    RULE,
    "Long words are cut and missing ones are the status. 300 characters fit.",
    row(finds(evidence={"Rule1": "x" * 300}), said("IssuesFound", details="x" * 300)),
    row(finds(evidence={"Rule1": "x" * 299 + "…"}), said("IssuesFound", details="x" * 301)),
    row(finds(evidence={"Rule1": "IssuesFound"}), said("IssuesFound")),
    "Rules without issues are clear. One that could not be evaluated found none.",
    row(CLEAR, said("NoIssuesFound", "Error", "Stopped")),
    "An evaluation that goes on is unknown.",
    # Debugger may end after the job; an issue that is found stays found.
    row("unknown: debugger_not_finished", said("NoIssuesFound", "InProgress")),
    row("unknown: debugger_not_finished", said("Stopping")),
    row(finds(evidence={"rules_evaluated": 2}), said("InProgress", "IssuesFound")),
    "A job without Debugger is not its concern. It has nothing to quote.",
    row("not applicable: Debugger evaluated no rule of it", job()),
    "What Debugger found is told in its words. Two of three rules.",
    row(finds("2 of 3 Debugger rules found issues: Rule1, Rule3.", confidence="measured",
        evidence={"rules_evaluated": 3, "Rule1": MET, "Rule3": MET}), said("IssuesFound",
        "NoIssuesFound", "IssuesFound", details=MET)),
    "Rules without an answer are no rules without issues. One still ran and one failed.",
    row(finds("1 of 4 Debugger rules found issues: Rule1; 2 gave no answer."), said("IssuesFound",
        "NoIssuesFound", "InProgress", "Error")),
    "It has no dollars. Debugger gives no prices.",
    row(finds(bucket="none", usd=None, severity="info", caution="…."), said("IssuesFound")),
    "What says nothing of cost is not told alone. With others all are named.",
    # A report's status names no rule; initial weights are no waste.
    row(CLEAR, issues("ProfilerReport")),
    row(CLEAR, issues("PoorWeightInitialization", "ProfilerReport-1643526487")),
    row(finds("2 of 2 Debugger rules found issues: ProfilerReport, LossNotDecreasing."),
        issues("ProfilerReport", "LossNotDecreasing")),
    row(finds("3 of 3 Debugger rules found issues: PoorWeightInitialization, "
        "ProfilerReport-1643526487, LossNotDecreasing."), issues("PoorWeightInitialization",
        "ProfilerReport-1643526487", "LossNotDecreasing")),
)  # fmt: skip
