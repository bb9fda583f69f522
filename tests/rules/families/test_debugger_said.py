from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.parts import RuleEvaluation
from tests.fakes.jobs import job
from tests.fakes.judging import found, outcome, priced
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
)  # fmt: skip


def test_what_debugger_found_is_told_in_its_words() -> None:
    """Two of three rules."""
    run = said("IssuesFound", "NoIssuesFound", "IssuesFound", details=MET)
    what = found(RULE, run)
    assert what.summary == "2 of 3 Debugger rules found issues: Rule1, Rule3."
    assert what.evidence == {"rules_evaluated": 3, "Rule1": MET, "Rule3": MET}
    assert what.confidence is Confidence.MEASURED


@pytest.mark.parametrize(
    "names",
    [("ProfilerReport",), ("PoorWeightInitialization", "ProfilerReport-1643526487")],
)
def test_what_says_nothing_of_cost_is_not_told_alone(names: tuple[str, ...]) -> None:
    """A report's status names no rule; initial weights are no waste. With others all are named."""
    alone = tuple(RuleEvaluation(name, "IssuesFound", None) for name in names)
    assert outcome(RULE, job(evaluations=alone)) == Clear()
    with_loss = (*alone, RuleEvaluation("LossNotDecreasing", "IssuesFound", None))
    assert found(RULE, job(evaluations=with_loss)).summary == (
        f"{len(with_loss)} of {len(with_loss)} Debugger rules found issues: "
        f"{', '.join((*names, 'LossNotDecreasing'))}."
    )


def test_rules_without_an_answer_are_no_rules_without_issues() -> None:
    """One still ran and one failed: only one of four found nothing."""
    run = said("IssuesFound", "NoIssuesFound", "InProgress", "Error")
    assert found(RULE, run).summary == (
        "1 of 4 Debugger rules found issues: Rule1; 2 gave no answer."
    )


def test_it_has_no_dollars() -> None:
    """Debugger gives no prices."""
    finding = priced(RULE, said("IssuesFound"))
    assert finding.found.bucket is Bucket.NONE
    assert (finding.saving_usd, finding.severity.value) == (None, "info")
    assert finding.found.caution is not None
