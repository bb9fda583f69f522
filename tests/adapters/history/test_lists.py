"""What History promises of its lists: order, where they begin, and what is in them."""

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest

from sageaudit.domain.alert.audit_figures import read_recommendations
from sageaudit.domain.audit.record import RuleFinding, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes.documents import ACCOUNT, REGION, fix
from tests.fakes.entries import (
    NOON,
    due_audits,
    entry,
    entry_ending_at,
    finding,
    key,
    stored_document,
    summary_of,
    unsettled_entry,
)
from tests.fakes.families import run_fields, run_summary

DAY = date(2026, 11, 20)
FAMILY = RunQuery.for_family(ACCOUNT, REGION, "training/resnet")
QUERIES: dict[str, RunQuery[Any]] = {
    "day": RunQuery.for_day(DAY),
    "family": FAMILY,
    "owner": RunQuery.for_owner("ana"),
    "account": RunQuery.for_account(ACCOUNT),
    "rule": RunQuery.for_rule("gpu-underused"),
}


def names(rows: Iterable[AuditSummary | RuleFinding]) -> list[str]:
    """The names of the jobs, in the list's order."""
    return [(row.summary if isinstance(row, RuleFinding) else row).job for row in rows]


def found(history: History, rule: str) -> list[RuleFinding]:
    """The findings of a rule."""
    return list(history.runs(RunQuery.for_rule(rule)))


def with_twelve(history: History) -> list[str]:
    """Twelve jobs, of which two end at each minute from 12:00 to 12:05; the newest first."""
    for number in range(12):
        history.record(entry_ending_at(f"job-{number:02d}", NOON + timedelta(minutes=number // 2)))
    return [f"job-{number:02d}" for number in reversed(range(12))]


@pytest.mark.parametrize("of", QUERIES)
def test_each_list_has_its_runs_newest_first(history: History, of: str) -> None:
    """Whatever it reads at a time, also between two runs of one moment; others are not in it."""
    query, newest_first = QUERIES[of], with_twelve(history)
    elsewhere = {"family": "x", "owner": "bo", "account": "4", "ended_at": "2026-12-01T12:00:00Z"}
    history.record(entry("elsewhere", job=elsewhere, findings=[finding("another-rule")]))
    for page_size in (None, 1, 3, 100):
        assert names(history.runs(query, page_size=page_size)) == newest_first
    assert names(islice(history.runs(query, page_size=2), 2)) == newest_first[:2]
    before = NOON + timedelta(minutes=2)
    assert names(history.runs(query, ended_before=before, page_size=3)) == newest_first[8:]
    assert not names(history.runs(query, ended_before=NOON))


def test_nothing_found_is_an_empty_list(history: History) -> None:
    """And no error."""
    assert not [row for query in QUERIES.values() for row in history.runs(query)]
    assert not list(history.runs(RunQuery.for_owner("")))
    assert not due_audits(history, NOON)


def test_a_rule_lists_what_it_found_in_every_month(history: History) -> None:
    """One row for each job whose newest version has it: what was found and what to change."""
    underused = finding(
        "gpu-underused",
        severity="medium",
        summary="The GPU was busy 8 % of 50 minutes.",
        saving_usd=Decimal("1.5"),
        fix=[fix("ResourceConfig.InstanceType", "a", "b")],
    )
    for months in range(6):
        ended_at = NOON + months * timedelta(days=30)
        history.record(entry_ending_at(f"month-{months}", ended_at, findings=[underused]))
    rows = found(history, "gpu-underused")
    assert names(rows) == [f"month-{months}" for months in reversed(range(6))]
    assert rows[-1].key == key("month-0")
    first = rows[-1].finding
    assert (first.saving_usd, first.severity, first.bucket) == (
        Decimal("1.5"),
        "medium",
        "avoidable",
    )
    assert first.summary == "The GPU was busy 8 % of 50 minutes."
    assert first.fix == 'ResourceConfig.InstanceType = "b"'


def test_findings_are_replaced_with_their_version(history: History) -> None:
    """What the newer version no longer finds is gone from its rule's list."""
    history.record(entry(findings=[finding("a"), finding("b")]))
    history.record(entry(modified_s=60, findings=[finding("b", summary="Newer."), finding("c")]))
    assert [len(found(history, rule)) for rule in "abc"] == [0, 1, 1]
    assert found(history, "b")[0].finding.summary == "Newer."


def test_an_audit_has_at_most_forty_rows_of_findings(history: History) -> None:
    """As many as a transaction can replace by others; the document and the head say so."""
    history.record(entry(findings=[finding(f"old-{n}") for n in range(40)]))
    assert summary_of(history).findings_without_row is None
    assert not stored_document(history)["audit"]["coverage"]["missing"]
    history.record(entry(modified_s=60, findings=[finding(f"new-{n}") for n in range(60)]))

    rows = [bool(found(history, f"new-{n}")) for n in range(60)]
    assert rows == [True] * 40 + [False] * 20
    assert not found(history, "old-0")
    document = stored_document(history)
    assert len(document["findings"]) == 60
    said = "Findings that no list shows: 20 (lists have one of each rule, 40 at most)."
    assert document["audit"]["coverage"]["missing"] == [said]
    assert summary_of(history).findings_without_row == 20


def test_a_roll_up_lists_the_findings_of_its_own(history: History) -> None:
    """Those of its training jobs have rows already, of their own audits."""
    findings = [finding("idle-tail"), finding("trials-fail")]
    history.record(entry(rollup=True, rollup_rules=["trials-fail"], findings=findings))
    history.record(entry("without", rollup=True, findings=findings))
    assert not found(history, "idle-tail")
    assert names(found(history, "trials-fail")) == ["train-1"]
    assert summary_of(history).findings_without_row is None


def test_one_rule_has_one_row_of_a_job(history: History) -> None:
    """A second finding of one rule stays in the document and out of the list."""
    history.record(entry(findings=[finding(summary="First."), finding(summary="Second.")]))
    assert [row.finding.summary for row in found(history, "gpu-underused")] == ["First."]


def test_what_is_due_is_listed_oldest_first(history: History) -> None:
    """Only audits that are not final, with a recheck time at or before the moment."""
    for hour in (3, 1, 2, 4):
        history.record(unsettled_entry(f"h{hour}", due_at=f"2026-11-20T1{2 + hour}:00:00Z"))
    history.record(unsettled_entry("no-plan"))
    history.record(entry("final", audit={"due_at": "2026-11-20T13:00:00Z"}))
    for page_size in (1, 2, 50):
        rows = history.runs(RunQuery.due_until(NOON + timedelta(hours=3)), page_size=page_size)
        assert [row.job for row in rows if isinstance(row, AuditSummary)] == ["h1", "h2", "h3"]
    history.record(entry("h2"))
    assert names(due_audits(history, NOON + timedelta(hours=3))) == ["h1", "h3"]


FACTS = run_summary(
    purchase=Purchase.SPOT,
    instance_type="ml.g5.xlarge",
    instance_count=2,
    elapsed_s=Decimal("3600.250"),
    billable_s=Decimal(1200),
    phase_s={"Training": Decimal("3000.1"), "Downloading": Decimal(600)},
    retained_s=Decimal(60),
    fingerprint="f" * 64,
    is_data_pinned=False,
    has_artifact=True,
    reason="memory error",
    final_metrics={"validation:auc": Decimal("0.91234567890123456"), "odd": Decimal("1E-300")},
    rules_with_findings=("gpu-idle", "spot-not-used"),
    settings={"ResourceConfig.VolumeSizeInGB": "50", "BatchStrategy": ""},
)
BARE = run_summary(purchase=Purchase.ON_DEMAND)


def test_what_rules_compare_comes_back_as_it_was(history: History) -> None:
    """Exact numbers, of any exponent; what is not known stays unknown. A roll-up is no such run."""
    history.record(replace(entry_ending_at("full", NOON), run_summary=FACTS))
    history.record(replace(entry_ending_at("bare", NOON - timedelta(hours=1)), run_summary=BARE))
    history.record(entry_ending_at("none", NOON - timedelta(hours=2)))
    history.record(
        replace(entry_ending_at("sweep", NOON - timedelta(hours=3), rollup=True), run_summary=BARE)
    )
    heads = list(history.runs(FAMILY))
    advised = read_recommendations(entry_ending_at("full", NOON).document)
    assert advised
    own = [run_fields(replace(run, recommendations=advised)) for run in (FACTS, BARE)]
    assert [run_fields(head) for head in heads][:2] == own
    assert [head.job for head in heads if head.is_comparable] == ["full", "bare"]
