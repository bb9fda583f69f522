"""What History promises when an audit is recorded and read back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from sageaudit.adapters.history.stored_document import digest_of
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import (
    Detail,
    Head,
    Recorded,
    RunQuery,
    Verdict,
    earlier_run,
)
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.bill.finding import Severity
from sageaudit.ports import History
from tests.adapters.history.entries import (
    DETAIL,
    NOON,
    document,
    entry,
    finding,
    head_of,
    key,
    stored,
    unsettled,
    with_detail,
)


def test_a_first_audit_is_version_1(history: History) -> None:
    """The first delivery makes version 1, and every figure reads back as the same Decimal."""
    assert history.record(entry()) == Recorded(Verdict.RECORDED, 1)

    got = stored(history)
    assert got == document(audit={"version": 1})
    assert isinstance(got["lost_usd"], Decimal)
    assert isinstance(got["findings"][0]["evidence"]["minutes"], int)


def test_the_head_shows_the_newest_version(history: History) -> None:
    """HEAD is the row that lists show."""
    given = unsettled(due_at="2026-11-20T13:00:00Z")
    history.record(given)

    assert history.head(key()) == Head(
        key=key(),
        version=1,
        settled=False,
        due_at=NOON + timedelta(hours=1),
        last_modified_at=NOON,
        name="train-1",
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
        top_rule="gpu-underused",
        unauditable=None,
        digest=digest_of(given.document),
        ruleset="2026.11",
        policy="default",
        family_version=1,
        fingerprint="f" * 64,
        finding_ids=("SA-gpu-underused",),
        judged=Judged.YES,
        severity=Severity.MEDIUM,
        sums=Sums(
            jobs=1,
            total_usd=Decimal("4.545"),
            avoidable_usd=Decimal("1.5"),
            rules={"gpu-underused": RuleSums(findings=1, avoidable_usd=Decimal("1.5"))},
        ),
    )


def test_an_unknown_job_has_nothing(history: History) -> None:
    """What was never recorded reads as None, not as an empty audit."""
    history.record(entry("another"))

    assert history.head(key()) is None
    assert history.audit(key()) is None
    assert history.audit(key("another"), version=2) is None
    assert history.audit(key("another"), version=0) is None
    assert history.detail(key("another")) is None


def test_the_entry_is_not_changed(history: History) -> None:
    """The version is set in a copy."""
    given = entry()
    history.record(given)
    assert given == entry()


def test_a_second_delivery_changes_nothing(history: History) -> None:
    """The same entry again is a duplicate of the version that stands."""
    history.record(entry())
    assert history.record(entry()) == Recorded(Verdict.DUPLICATE, 1)


def test_metrics_read_a_second_later_make_no_second_audit(history: History) -> None:
    """Other content for the same state of the job is a duplicate, settled or not."""
    history.record(entry())
    assert history.record(entry(avoidable_usd=Decimal("1.6"))) == Recorded(Verdict.DUPLICATE, 1)

    history.record(unsettled("waits"))
    other = unsettled("waits", avoidable_usd=Decimal("1.6"))
    assert history.record(other) == Recorded(Verdict.DUPLICATE, 1)


def test_an_older_state_never_overwrites_a_newer(history: History) -> None:
    """An old event that is replayed finds a newer audit and leaves it alone."""
    history.record(entry(modified_s=60))
    older = entry(job={"status": "InProgress"}, again=True)

    assert history.record(older) == Recorded(Verdict.OLDER, 1)
    head = head_of(history)
    assert head.status == "Completed"


def test_a_newer_state_is_a_new_version(history: History) -> None:
    """Both versions can be read; the newest is the default."""
    history.record(entry())
    newer = entry(modified_s=60, job={"status": "Stopped"})

    assert history.record(newer) == Recorded(Verdict.RECORDED, 2)
    first, second = stored(history, 1), stored(history)
    assert (first["job"]["status"], first["audit"]["version"]) == ("Completed", 1)
    assert (second["job"]["status"], second["audit"]["version"]) == ("Stopped", 2)


def test_a_newer_state_that_says_the_same_only_moves_the_time(history: History) -> None:
    """No new version, but what lies between the two states is older from then on."""
    history.record(entry())

    assert history.record(entry(modified_s=60)) == Recorded(Verdict.DUPLICATE, 1)
    between = entry(modified_s=30, job={"status": "Stopped"})
    assert history.record(between) == Recorded(Verdict.OLDER, 1)
    head = head_of(history)
    assert head.last_modified_at == NOON + timedelta(seconds=60)


def test_a_second_look_settles_an_audit_once(history: History) -> None:
    """Unsettled then settled is version 2; the unsettled one delivered again is a duplicate."""
    history.record(unsettled(due_at="2026-11-20T13:00:00Z"))

    assert history.record(entry()) == Recorded(Verdict.RECORDED, 2)
    assert history.record(unsettled(due_at="2026-11-20T13:00:00Z")).verdict is Verdict.DUPLICATE
    head = head_of(history)
    assert head.settled
    assert head.due_at is None


def test_a_new_ruleset_judges_again_only_when_asked(history: History) -> None:
    """`again` makes a new version of the same state, and its own second delivery makes none."""
    history.record(entry())
    new_rules = {"ruleset": "2026.12"}

    assert history.record(entry(audit=new_rules)).verdict is Verdict.DUPLICATE
    assert history.record(entry(audit=new_rules, again=True)) == Recorded(Verdict.RECORDED, 2)
    assert history.record(entry(audit=new_rules, again=True)) == Recorded(Verdict.DUPLICATE, 2)


def test_a_name_used_again_is_another_job(history: History) -> None:
    """A deleted job's ARN with another creation time has its own versions."""
    history.record(entry())
    reused = replace(entry(modified_s=-60), key=key(created_at=NOON))

    assert history.record(reused) == Recorded(Verdict.RECORDED, 1)
    assert history.head(key()) != history.head(key(created_at=NOON))


def test_time_zones_do_not_matter(history: History) -> None:
    """The same moments told in another zone, or without one, are the same job and state."""
    history.record(entry())
    east = timezone(timedelta(hours=5))
    told_east = replace(
        entry(),
        key=replace(key(), created_at=key().created_at.astimezone(east)),
        last_modified_at=NOON.astimezone(east),
    )
    told_naive = replace(entry(), last_modified_at=NOON.replace(tzinfo=None))

    assert history.record(told_east).verdict is Verdict.DUPLICATE
    assert history.record(told_naive).verdict is Verdict.DUPLICATE


def test_a_detail_reads_back(history: History) -> None:
    """Times become ISO texts, decimals stay decimals, the series stay bytes."""
    created_at = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
    described = {**DETAIL.describe, "CreationTime": created_at, "Volumes": (1, 2)}
    history.record(with_detail(entry(), replace(DETAIL, describe=described, note="Two hosts.")))

    assert history.detail(key()) == Detail(
        {**DETAIL.describe, "CreationTime": "2026-11-20T10:00:00+00:00", "Volumes": [1, 2]},
        DETAIL.tags,
        b"\x01",
        "Two hosts.",
    )


def test_a_version_without_detail_keeps_the_one_before(history: History) -> None:
    """A second look that reads nothing new does not lose what was kept."""
    history.record(with_detail(unsettled()))
    history.record(entry())
    assert history.detail(key()) == DETAIL


def test_series_that_are_too_large_stay_out(history: History) -> None:
    """The item must fit: the description stays, and the note says what does not."""
    history.record(with_detail(entry(), replace(DETAIL, series=bytes(400_000), note="Long run.")))

    detail = history.detail(key())
    assert detail is not None
    assert detail.describe == DETAIL.describe
    assert detail.series == b""
    assert detail.note == "Long run. The series were too large to keep."


@pytest.mark.parametrize(
    "text", ["a\ud800b", "\u2028\x1b[31m<!channel>", "=HYPERLINK()", "😀" * 3000]
)
def test_hostile_text_is_stored_as_text(history: History, text: str) -> None:
    """No name, owner, family or reason keeps an audit from being stored."""
    job = {"name": text, "owner": text, "family": text, "status": text}
    findings = [finding(summary=text, evidence={text: text})]
    given = entry(job=job, findings=findings, unauditable=text)

    assert history.record(given).verdict is Verdict.RECORDED
    head = head_of(history)
    assert len(head.family) <= 2_000
    assert list(history.runs(RunQuery.of_owner(text))) == [head]
    assert list(history.runs(RunQuery.of_family(head.account, head.region, text))) == [head]


@pytest.mark.parametrize("odd", [Decimal("NaN"), Decimal("Infinity"), Decimal("1E+40")])
def test_what_is_no_sum_of_money_is_unknown(history: History, odd: Decimal) -> None:
    """An impossible amount never fails the write and never counts."""
    given = entry(avoidable_usd=odd, findings=[finding(saving_usd=odd, evidence={"x": odd})])

    assert history.record(given).verdict is Verdict.RECORDED
    head = head_of(history)
    assert head.avoidable_usd is None


def test_a_float_in_the_evidence_is_stored(history: History) -> None:
    """A rule's float reads back as the Decimal of its digits; one that is not finite as None."""
    history.record(entry(findings=[finding(evidence={"share": 0.1, "bad": float("nan")})]))

    assert stored(history)["findings"][0]["evidence"] == {"share": Decimal("0.1"), "bad": None}


def test_a_job_without_an_end_counts_by_its_creation(history: History) -> None:
    """A job that never ended, of no known account, can still be listed."""
    history.record(entry(job={"ended_at": None, "account": None, "region": None, "owner": ""}))

    head = head_of(history)
    assert head.ended_at == key().created_at
    assert (head.account, head.region, head.owner) == ("unknown", "unknown", None)
    assert list(history.runs(RunQuery.of_day(key().created_at.date()))) == [head]


def test_the_top_rule_is_the_one_that_counts_most(history: History) -> None:
    """Dollars in the sums lead, then severity; exempt and superseded findings do not lead."""
    findings = [
        finding(
            "exempt", saving_usd=Decimal(9), exempt={"by": "tag", "until": None, "reason": "x"}
        ),
        finding("superseded", saving_usd=Decimal(8), superseded_by="best"),
        finding("possible", saving_usd=Decimal(7), bucket="possible", severity="high"),
        finding("best", saving_usd=Decimal(2)),
    ]
    history.record(entry(findings=findings))
    history.record(entry("no-dollars", findings=findings[:3]))
    history.record(entry("nothing", findings=findings[:2]))

    tops = [head_of(history, name).top_rule for name in ("train-1", "no-dollars", "nothing")]
    assert tops == ["best", "possible", None]


def test_rows_say_that_their_dollars_are_estimates(history: History) -> None:
    """The head and the finding's row; a part of the bill that is missing is another matter."""
    guess, lacks = "its rate is estimated", "no storage price"
    bill = {"complete": False, "missing": [guess, lacks], "estimated": [guess]}
    history.record(entry(bill=bill, findings=[{**finding(), "estimated": True}]))
    head = head_of(history)
    assert (head.estimated, head.incomplete) == (True, True)
    run = earlier_run(head)
    assert run is None or run.estimated
    history.record(entry("train-2"))
    plain = head_of(history, "train-2")
    assert (plain.estimated, plain.incomplete) == (None, None)
