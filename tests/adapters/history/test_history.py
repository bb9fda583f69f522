"""What History promises when an audit is recorded and read back."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.history import rows
from sageaudit.adapters.history.record_steps import document_digest
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.record import AuditEntry, Detail, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.bill.finding import Severity
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes.entries import (
    DETAIL,
    NOON,
    document,
    entry,
    finding,
    key,
    stored_document,
    summary_of,
    unsettled_entry,
    with_detail,
)

EAST = timezone(timedelta(hours=5))
WAITING = unsettled_entry(due_at="2026-11-20T13:00:00Z")
OTHER_USD: dict[str, Any] = {"avoidable_usd": Decimal("1.6")}
NEW_RULES: dict[str, Any] = {"audit": {"ruleset": "2026.12"}}
STOPPED: dict[str, Any] = {"job": {"status": "Stopped"}}
TOLD_EAST = replace(
    entry(),
    key=replace(key(), created_at=key().created_at.astimezone(EAST)),
    last_modified_at=NOON.astimezone(EAST),
)
TOLD_NAIVE = replace(entry(), last_modified_at=NOON.replace(tzinfo=None))
IN_PROGRESS = entry(job={"status": "InProgress"}, force_new_version=True)
REUSED_NAME = replace(entry(modified_s=-60), key=key(created_at=NOON))
DELIVERIES: dict[str, tuple[list[tuple[AuditEntry, str]], dict[str, Any]]] = {
    "a second delivery changes nothing": (
        [(entry(), "recorded 1"), (entry(), "duplicate 1")],
        {"version": 1},
    ),
    "metrics read a second later make no second audit": (
        [(entry(), "recorded 1"), (entry(**OTHER_USD), "duplicate 1")],
        {"avoidable_usd": Decimal("1.5")},
    ),
    "nor while an audit waits": (
        [(WAITING, "recorded 1"), (unsettled_entry(**OTHER_USD), "duplicate 1")],
        {"avoidable_usd": Decimal("1.5"), "settled": False},
    ),
    "an older state never overwrites a newer one": (
        [(entry(modified_s=60), "recorded 1"), (IN_PROGRESS, "older 1")],
        {"status": "Completed"},
    ),
    "a newer state is a new version": (
        [(entry(), "recorded 1"), (entry(modified_s=60, **STOPPED), "recorded 2")],
        {"status": "Stopped", "version": 2},
    ),
    "a newer state that says the same only moves the time": (
        [
            (entry(), "recorded 1"),
            (entry(modified_s=60), "duplicate 1"),
            (entry(modified_s=30, **STOPPED), "older 1"),
        ],
        {"last_modified_at": NOON + timedelta(seconds=60), "status": "Completed"},
    ),
    "a second look settles an audit once": (
        [(WAITING, "recorded 1"), (entry(), "recorded 2"), (WAITING, "duplicate 2")],
        {"settled": True, "due_at": None},
    ),
    "a new ruleset judges again only when asked": (
        [
            (entry(), "recorded 1"),
            (entry(**NEW_RULES), "duplicate 1"),
            (entry(**NEW_RULES, force_new_version=True), "recorded 2"),
            (entry(**NEW_RULES, force_new_version=True), "duplicate 2"),
        ],
        {"ruleset": "2026.12"},
    ),
    "moments in another zone, or in none, are the same": (
        [(entry(), "recorded 1"), (TOLD_EAST, "duplicate 1"), (TOLD_NAIVE, "duplicate 1")],
        {"last_modified_at": NOON},
    ),
    "a name used again is another job": (
        [(entry(), "recorded 1"), (REUSED_NAME, "recorded 1")],
        {"key": key(), "last_modified_at": NOON},
    ),
}


@pytest.mark.parametrize("sentence", DELIVERIES)
def test_each_delivery_is_recorded_or_not(history: History, sentence: str) -> None:
    """And the head shows what stands after all of them."""
    deliveries, then = DELIVERIES[sentence]
    for given, outcome in deliveries:
        recorded = history.record(given)
        assert f"{recorded.outcome.value} {recorded.version}" == outcome
    head = summary_of(history)
    assert {name: getattr(head, name) for name in then} == then


def test_each_version_reads_back(history: History) -> None:
    """Every figure as the same Decimal; the newest is the default; the entry is not changed."""
    found: dict[str, Any] = {"findings": [finding(evidence={"minutes": 50})]}
    given = entry(**found)
    history.record(given)
    assert given == entry(**found)
    history.record(entry(modified_s=60, **STOPPED))
    got = stored_document(history, 1)
    assert got == document(audit={"version": 1}, **found)
    assert isinstance(got["lost_usd"], Decimal)
    assert isinstance(got["findings"][0]["evidence"]["minutes"], int)
    assert stored_document(history) == document(audit={"version": 2}, **STOPPED)


def test_the_head_shows_the_newest_version(history: History) -> None:
    """HEAD is the row that lists show."""
    history.record(WAITING)
    assert history.summary(key()) == AuditSummary(
        key=key(),
        version=1,
        settled=False,
        due_at=NOON + timedelta(hours=1),
        last_modified_at=NOON,
        job="train-1",
        kind="training",
        status="Completed",
        account="111122223333",
        region="us-east-1",
        family="training/resnet",
        owner="ana",
        ended_at=NOON,
        rollup=False,
        total_usd=Decimal("4.545"),
        avoidable_usd=Decimal("1.5"),
        lost_usd=Decimal(0),
        possible_usd=Decimal(0),
        costliest_rule="gpu-underused",
        unauditable=None,
        digest=document_digest(WAITING.document),
        ruleset="2026.11",
        policy="default",
        family_version=1,
        finding_ids=("SA-gpu-underused",),
        judged=Judged.YES,
        spend_qualifier=SpendQualifier.EXACT,
        severity=Severity.MEDIUM,
        duration_s=6900,
        waiting_s=300,
        instance="1 x ml.g5.2xlarge",
        sums=Sums(
            jobs=1,
            total_usd=Decimal("4.545"),
            judged_usd=Decimal("4.545"),
            avoidable_usd=Decimal("1.5"),
            rules={"gpu-underused": RuleSums(findings=1, avoidable_usd=Decimal("1.5"))},
        ),
    )


def _line(item: str, quantity: str, usd: str | None) -> dict[str, Any]:
    figures = {"quantity": Decimal(quantity), "usd": usd and Decimal(usd), "rate_usd": Decimal(2)}
    of_price = dict.fromkeys(("usage_type", "unit", "price_kind", "note"))
    return {"item": item, **figures, **of_price}


@pytest.mark.parametrize(
    ("lines", "missing", "parts"),
    [
        pytest.param([], [], (None, None, None), id="no line"),
        pytest.param(
            [_line("compute", "1.5", "3")], [], (5400, Decimal(0), Decimal(0)), id="compute alone"
        ),
        pytest.param(
            [
                _line("compute", "1", "3"),
                _line("compute", "2", None),
                _line("storage", "1", "0.02"),
                _line("warm_pool", "1", "0.3"),
                _line("warm_pool_storage", "1", "0.01"),
            ],
            [],
            (10_800, Decimal("0.02"), Decimal("0.31")),
            id="all parts, of which one line has no dollars",
        ),
        pytest.param(
            [_line("compute", "1", "3"), _line("storage", "1", None)],
            ["warm pool: the seconds that it was retained are not known"],
            (3600, None, None),
            id="parts that are missing",
        ),
    ],
)
def test_the_head_has_the_parts_of_the_bill_that_are_known(
    history: History, lines: list[Any], missing: list[str], parts: tuple[Any, ...]
) -> None:
    """A part without a line is 0, and unknown where the bill says that it is missing."""
    tags = {"team": "growth", "project": None}
    history.record(entry(job={"tags": tags}, bill={"lines": lines, "missing": missing}))
    head = summary_of(history)
    assert (head.instance_s, head.storage_usd, head.warm_pool_usd) == parts
    assert head.tags == tags


def test_an_unknown_job_has_nothing(history: History) -> None:
    """What was never recorded reads as None, not as an empty audit."""
    history.record(entry("another"))
    assert history.summary(key()) is None
    assert history.audit(key()) is None
    assert history.audit(key("another"), version=2) is None
    assert history.audit(key("another"), version=0) is None
    assert history.detail(key("another")) is None


def test_a_detail_reads_back(history: History) -> None:
    """Times become ISO texts, decimals stay decimals, the series stay bytes.

    A second look that reads nothing new does not lose it.
    """
    created_at = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
    described = {**DETAIL.describe, "CreationTime": created_at, "Volumes": (1, 2)}
    given = replace(DETAIL, describe=described, note="Two hosts.")
    history.record(with_detail(unsettled_entry(), given))
    history.record(entry())
    assert history.detail(key()) == Detail(
        {**DETAIL.describe, "CreationTime": "2026-11-20T10:00:00+00:00", "Volumes": [1, 2]},
        DETAIL.tags,
        b"\x01",
        "Two hosts.",
    )


def test_series_that_are_too_large_stay_out(history: History) -> None:
    """The item must fit: the description stays, and the note says what does not."""
    history.record(with_detail(entry(), replace(DETAIL, series=bytes(400_000), note="Long run.")))
    note = "Long run. The series were too large to keep."
    assert history.detail(key()) == replace(DETAIL, series=b"", note=note)


@pytest.mark.parametrize(
    "text", ["a\ud800b", "\u2028\x1b[31m<!channel>", "=HYPERLINK()", "😀" * 3000]
)
def test_hostile_text_is_stored_as_text(history: History, text: str) -> None:
    """No name, owner, family or reason keeps an audit from being stored."""
    job = {"name": text, "owner": text, "family": text, "status": text}
    findings = [finding(summary=text, evidence={text: text})]
    history.record(entry(job=job, findings=findings, unauditable=text))
    head = summary_of(history)
    assert len(head.family) <= 2_000
    assert list(history.runs(RunQuery.for_owner(text))) == [head]
    assert list(history.runs(RunQuery.for_family(head.account, head.region, text))) == [head]


@pytest.mark.parametrize("odd", [Decimal("NaN"), Decimal("Infinity"), Decimal("1E+40")])
def test_what_is_no_sum_of_money_is_unknown(history: History, odd: Decimal) -> None:
    """An impossible amount never fails the write and never counts."""
    history.record(
        entry(avoidable_usd=odd, findings=[finding(saving_usd=odd, evidence={"x": odd})])
    )
    assert summary_of(history).avoidable_usd is None


def test_a_float_in_the_evidence_is_stored(history: History) -> None:
    """A rule's float reads back as the Decimal of its digits; one that is not finite as None."""
    history.record(entry(findings=[finding(evidence={"share": 0.1, "bad": float("nan")})]))
    assert stored_document(history)["findings"][0]["evidence"] == {
        "share": Decimal("0.1"),
        "bad": None,
    }


def test_a_job_without_an_end_counts_by_its_creation(history: History) -> None:
    """A job that never ended, of no known account, can still be listed."""
    history.record(entry(job={"ended_at": None, "account": None, "region": None, "owner": ""}))
    head = summary_of(history)
    assert head.ended_at == key().created_at
    assert (head.account, head.region, head.owner) == ("unknown", "unknown", None)
    assert list(history.runs(RunQuery.for_day(key().created_at.date()))) == [head]


def test_the_top_rule_is_the_one_that_counts_most() -> None:
    """Dollars in the sums lead, then severity; exempt and superseded findings do not lead."""
    exempt = {"by": "tag", "until": None, "reason": "x"}
    findings = [
        finding("exempt", saving_usd=Decimal(9), exempt=exempt),
        finding("superseded", saving_usd=Decimal(8), superseded_by="best"),
        finding("possible", saving_usd=Decimal(7), bucket="possible", severity="high"),
        finding("best", saving_usd=Decimal(2)),
    ]
    heads = [rows.make_summary(entry(findings=findings[:number]), 1, "d") for number in (4, 3, 2)]
    assert [head.costliest_rule for head in heads] == ["best", "possible", None]


def test_rows_say_that_their_dollars_are_estimates(history: History) -> None:
    """The head and the finding's row; a part of the bill that is missing is another matter."""
    guess, lacks = "its rate is estimated", "no storage price"
    bill = {"complete": False, "missing": [guess, lacks], "estimated": [guess]}
    history.record(entry(bill=bill, findings=[{**finding(), "estimated": True}]))
    head = summary_of(history)
    assert (head.estimated, head.incomplete) == (True, True)
    history.record(entry("train-2"))
    plain = summary_of(history, "train-2")
    assert (plain.estimated, plain.incomplete) == (False, False)
