from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.document import document as document_of
from sageaudit.domain.audit.rollup import job_of_children, roll_up
from sageaudit.domain.audit.tuning_savings import TrialSavings
from sageaudit.domain.bill.counterfactual import Severities
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.ref import JobKind
from tests.fakes.documents import TUNING_ARN, document, finding, trial, type_finding


def up(
    *children: AuditDocument, launched: int | None = None, severities: Severities | None = None
) -> AuditDocument:
    """The tuning job's own document."""
    audit = roll_up(
        Job(JobKind.TUNING, "sweep-7", TUNING_ARN, "111122223333", "us-east-1", "Completed"),
        children,
        family=TUNING_ARN,
        owner=None,
        launched=launched,
        severities=severities or Severities(),
        ruleset="r",
        policy="p",
        outcomes=(),
        own=TrialSavings(()),
    )
    return document_of(audit, children)


def test_a_roll_up_adds_its_children_and_is_marked() -> None:
    """Cost and savings are sums; the mark keeps them out of every other sum."""
    whole = up(trial(1, "5.10", "1.70"), trial(2, "5.20", "2.10"), trial(3, "2.00", None),
               launched=3)  # fmt: skip
    assert whole["rollup"] is True
    assert whole["bill"]["total_usd"] == Decimal("12.30")
    assert whole["avoidable_usd"] == Decimal("3.80")
    assert (whole["bill"]["complete"], whole["audit"]["settled"]) == (True, True)
    assert len(whole["children"] or []) == 3


def test_one_finding_stands_for_one_rule_of_all_children() -> None:
    """With the sum of their shares, the number of children, and a severity of its own."""
    whole = up(trial(1, "5.10", "4.70"), trial(2, "9.20", "6.10"), trial(3, "2.00", None),
               launched=3)  # fmt: skip
    [merged] = whole["findings"]
    assert merged["rule"] == "gpu-underused"
    assert merged["saving_usd"] == Decimal("10.80")
    assert merged["severity"] == "medium"  # from $10
    assert merged["evidence"]["training_jobs"] == 2
    assert merged["summary"].startswith("In 2 of 3 training jobs")


def test_findings_without_dollars_of_their_own_are_not_merged() -> None:
    """Exempt, superseded and subsumed ones stay with their child."""
    quiet = [
        type_finding(superseded_by="x"),
        finding(subsumed_by="y"),
        finding(rule="z", exempt={"by": "ana", "until": None, "reason": "ok"}),
    ]
    assert up(document(findings=quiet), launched=1)["findings"] == []


def test_a_child_that_is_not_audited_leaves_it_open() -> None:
    """Incomplete, unsettled, and it says how many are missing."""
    whole = up(trial(1, "5.10", None), launched=3)
    assert (whole["bill"]["complete"], whole["audit"]["settled"]) == (False, False)
    assert whole["bill"]["missing"] == ["2 of 3 training jobs are not audited"]
    assert whole["bill"]["total_usd"] == Decimal("5.10")


def test_a_child_without_known_cost_makes_the_sum_unknown() -> None:
    """Half a sum is no sum."""
    unpriced = trial(2, "1.00", None)
    unpriced["bill"]["total_usd"] = None
    whole = up(trial(1, "5.10", None), unpriced, launched=2)
    assert whole["bill"]["total_usd"] is None
    assert whole["bill"]["missing"] == ["1 of 2 training jobs have no known cost"]
    assert whole["waterfall"] == []


def test_a_tuning_job_that_launched_nothing_cost_nothing() -> None:
    """Its counters say 0: that is known, like a job that never started."""
    whole = up(launched=0)
    assert (whole["bill"]["total_usd"], whole["bill"]["complete"]) == (0, True)
    assert (whole["avoidable_usd"], whole["lost_usd"]) == (0, 0)


def test_nobody_knows_what_was_launched() -> None:
    """Unknown, not 0."""
    whole = up(launched=None)
    assert (whole["bill"]["total_usd"], whole["bill"]["complete"]) == (None, False)


@pytest.mark.parametrize("launched", [2, None])
def test_the_waterfall_sums_to_the_children(launched: int | None) -> None:
    """Slice by slice, the rest last."""
    first, second = document(), document()
    first["waterfall"] = [
        {"slice": "avoidable: a", "usd": Decimal("1.5")},
        {"slice": "rest", "usd": Decimal("3.0534")},
    ]
    second["waterfall"] = [
        {"slice": "lost: b", "usd": Decimal("0.5534")},
        {"slice": "rest", "usd": Decimal(4)},
    ]
    whole = up(first, second, launched=launched)
    assert whole["waterfall"] == [
        {"slice": "avoidable: a", "usd": Decimal("1.5")},
        {"slice": "lost: b", "usd": Decimal("0.5534")},
        {"slice": "rest", "usd": Decimal("7.0534")},
    ]
    assert sum(part["usd"] for part in whole["waterfall"]) == whole["bill"]["total_usd"]


def test_a_set_of_children_names_its_tuning_job() -> None:
    """Where the tuning job's own answer was not recorded."""
    named = job_of_children([trial(1, "1", None), trial(2, "1", None)])
    assert (named.name, named.arn, named.kind) == ("sweep-7", TUNING_ARN, JobKind.TUNING)
    assert named.parent is None
