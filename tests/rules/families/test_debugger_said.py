from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.parts import RuleEvaluation
from tests.fakes.jobs import job
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "debugger-said"
MET = "RuleEvaluationConditionMet: Evaluation of the rule LowGPUUtilization at step 0 resulted in "


def said(*statuses: str, details: str | None = None) -> Job:
    """A job whose rules ended so, each named after its position."""
    return job(
        evaluations=tuple(
            RuleEvaluation(f"Rule{n}", status, details) for n, status in enumerate(statuses, 1)
        )
    )


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


def test_long_words_are_cut_and_missing_ones_are_the_status() -> None:
    """300 characters fit."""
    assert found(RULE, said("IssuesFound", details="x" * 300)).evidence["Rule1"] == "x" * 300
    assert found(RULE, said("IssuesFound", details="x" * 301)).evidence["Rule1"] == "x" * 299 + "…"
    assert found(RULE, said("IssuesFound")).evidence["Rule1"] == "IssuesFound"


def test_rules_without_issues_are_clear() -> None:
    """One that could not be evaluated found none."""
    assert outcome(RULE, said("NoIssuesFound", "Error", "Stopped")) == Clear()


def test_an_evaluation_that_goes_on_is_unknown() -> None:
    """Debugger may end after the job; an issue that is found stays found."""
    assert unknown(RULE, said("NoIssuesFound", "InProgress")) == "debugger_not_finished"
    assert unknown(RULE, said("Stopping")) == "debugger_not_finished"
    assert found(RULE, said("InProgress", "IssuesFound")).evidence["rules_evaluated"] == 2


def test_a_job_without_debugger_is_not_its_concern() -> None:
    """It has nothing to quote."""
    assert not_applicable(RULE, job()) == "Debugger evaluated no rule of it"
