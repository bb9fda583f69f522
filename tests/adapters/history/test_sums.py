"""What History promises about daily sums: every audit counts once, in its newest version."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.sums import RuleSums, Scope, Sums, group_rows, sum_rows
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes.documents import ACCOUNT, REGION
from tests.fakes.entries import NOON, entry, entry_ending_at, finding
from tests.fakes.families import run_summary

DAY = NOON.date()
FAMILY = "training/resnet"
ONE = Sums(
    jobs=1,
    total_usd=Decimal("4.545"),
    judged_usd=Decimal("4.545"),
    avoidable_usd=Decimal("1.5"),
    rules={"gpu-underused": RuleSums(1, avoidable_usd=Decimal("1.5"))},
)


def sums_by_name(
    history: History, scope: Scope = Scope.FAMILY, **filters: Any
) -> dict[str | None, Sums]:
    """The sums of three days by name."""
    rows = history.daily_sums(scope, DAY - timedelta(days=1), DAY + timedelta(days=1), **filters)
    return group_rows(rows, lambda row: row.name)


def test_an_empty_history_has_no_sums(history: History) -> None:
    """Nor has one of other days."""
    assert sums_by_name(history) == {}
    history.record(entry_ending_at("before", NOON - timedelta(days=2)))
    history.record(entry_ending_at("after", NOON + timedelta(days=2)))
    assert sums_by_name(history) == {}


def test_a_job_is_in_each_scope_by_its_name(history: History) -> None:
    """Account, family, owner, and instance type."""
    facts = run_summary(Purchase.ON_DEMAND, instance_type="ml.g5.xlarge")
    history.record(replace(entry(), run_summary=facts))
    assert {scope: sums_by_name(history, scope) for scope in Scope} == {
        Scope.ACCOUNT: {None: ONE},
        Scope.FAMILY: {FAMILY: ONE},
        Scope.OWNER: {"ana": ONE},
        Scope.TYPE: {"ml.g5.xlarge": ONE},
        Scope.TAG: {},
    }


def test_a_job_without_owner_or_single_type_has_no_name_there(history: History) -> None:
    """It counts all the same."""
    history.record(entry(job={"owner": None}))
    assert sums_by_name(history, Scope.OWNER) == {None: ONE}
    assert sums_by_name(history, Scope.TYPE) == {None: ONE}


def test_jobs_of_a_day_add_up(history: History) -> None:
    """By day in UTC."""
    for name, hours in (("a", 0), ("b", 11), ("c", 12), ("d", -13)):
        history.record(entry_ending_at(name, NOON + timedelta(hours=hours)))
    rows = list(history.daily_sums(Scope.FAMILY, DAY - timedelta(days=1), DAY + timedelta(days=1)))
    assert group_rows(rows, lambda row: row.day) == {
        DAY: ONE + ONE,
        DAY + timedelta(days=1): ONE,
        DAY - timedelta(days=1): ONE,
    }
    assert {(row.account, row.region, row.scope) for row in rows} == {
        (ACCOUNT, REGION, Scope.FAMILY)
    }


def test_only_the_newest_version_counts(history: History) -> None:
    """A newer state replaces what the older one added; what comes twice or late adds nothing."""
    for again in (False, False, True, True):
        history.record(entry(again=again))
    assert sums_by_name(history) == {FAMILY: ONE}
    newer = entry(modified_s=60, avoidable_usd=Decimal("0.5"), findings=[])
    history.record(newer)
    history.record(newer)
    history.record(entry(modified_s=30, avoidable_usd=Decimal(9)))
    assert sums_by_name(history) == {FAMILY: replace(ONE, avoidable_usd=Decimal("0.5"), rules={})}


def test_months_and_years_are_crossed(history: History) -> None:
    """A question over a turn of the year is one question."""
    for name, at in (("a", "2026-10-31"), ("b", "2026-12-31"), ("c", "2027-01-01")):
        history.record(entry(name, job={"ended_at": f"{at}T12:00:00Z"}))
    rows = list(history.daily_sums(Scope.FAMILY, date(2026, 10, 31), date(2027, 1, 1)))
    assert sorted(row.day for row in rows) == [
        date(2026, 10, 31),
        date(2026, 12, 31),
        date(2027, 1, 1),
    ]
    assert list(history.daily_sums(Scope.FAMILY, date(2027, 1, 2), date(2026, 1, 1))) == []


def test_rows_are_asked_for_by_account_region_and_name(history: History) -> None:
    """Each leaves the others out, alone and together."""
    places = [
        (account, region, family)
        for account in ("1", "2")
        for region in ("r", "s")
        for family in ("f", "g")
    ]
    for number, (account, region, family) in enumerate(places):
        job = {"account": account, "region": region, "family": family}
        history.record(entry(f"job-{number}", job=job))
    for filters in (
        {},
        {"account": "1"},
        {"region": "r"},
        {"name": "f"},
        {"account": "1", "region": "r"},
        {"account": "1", "name": "f"},
        {"region": "r", "name": "f"},
        {"account": "1", "region": "r", "name": "f"},
        {"account": "3"},
        {"name": "h"},
    ):
        rows = list(history.daily_sums(Scope.FAMILY, DAY, DAY, **filters))
        wanted = [
            place
            for place in places
            if filters.items()
            <= dict(zip(("account", "region", "name"), place, strict=True)).items()
        ]
        assert sorted((row.account, row.region, row.name) for row in rows) == wanted
        assert sum_rows(rows).jobs == len(wanted)


@pytest.mark.parametrize(
    "name", ["a#b", "a#us-east-1#2026-11-20", "#", "", "~", "😀" * 900, "a\ud800", "x" * 2_500]
)
def test_a_family_of_any_name_has_its_own_sums(history: History, name: str) -> None:
    """Beside families whose names begin alike, with the signs that part keys."""
    others = ("a", "a#", "a#b#", "x" * 2_501 if len(name) < 2_000 else "y", f"{name}z"[:1_900])
    for number, family in enumerate((name, *others)):
        history.record(entry(f"job-{number}", job={"family": family}))
    for filters in ({}, {"account": ACCOUNT}, {"account": ACCOUNT, "region": REGION}):
        rows = list(history.daily_sums(Scope.FAMILY, DAY, DAY, name=name, **filters))
        assert sum_rows(rows) == ONE
    assert sums_by_name(history, name="b") == {}


def test_a_region_of_any_name_has_its_own_sums(history: History) -> None:
    """A key must not mix family and region."""
    history.record(entry("a", job={"family": "f#g", "region": "r"}))
    history.record(entry("b", job={"family": "f", "region": "g#r"}))
    history.record(entry("c", job={"family": "f", "region": None, "account": None}))
    rows = list(history.daily_sums(Scope.FAMILY, DAY, DAY))
    assert sorted((row.name, row.account, row.region) for row in rows) == [
        ("f", ACCOUNT, "g#r"),
        ("f", "unknown", "unknown"),
        ("f#g", ACCOUNT, "r"),
    ]
    filters = {"account": ACCOUNT, "region": "g#r", "name": "f"}
    assert sum_rows(history.daily_sums(Scope.FAMILY, DAY, DAY, **filters)) == ONE


def test_what_is_not_known_is_counted_beside_the_dollars(history: History) -> None:
    """A job without a price adds itself and no dollars."""
    history.record(entry("a", bill={"total_usd": None}, avoidable_usd=None, findings=[]))
    history.record(entry("b", avoidable_usd=Decimal("1E+40")))
    sums = sums_by_name(history)[FAMILY]
    assert (sums.jobs, sums.unpriced, sums.total_usd) == (2, 1, Decimal("4.545"))
    assert sums.avoidable_usd == 0


def test_a_roll_up_counts_its_own_findings_once(history: History) -> None:
    """Beside its children's audits, of which it is the sum."""
    for name in ("trial-1", "trial-2"):
        history.record(entry(name))
    own = finding("trials-fail", saving_usd=Decimal("0.25"), bucket="lost")
    rollup = entry(
        "sweep",
        rollup=True,
        rollup_rules=["trials-fail"],
        findings=[finding(saving_usd=Decimal(3)), own],
        avoidable_usd=Decimal(3),
        lost_usd=Decimal("0.25"),
    )
    history.record(rollup)
    history.record(replace(rollup, force_new_version=True))
    sums = sums_by_name(history)[FAMILY]
    assert (sums.jobs, sums.total_usd) == (2, Decimal("9.09"))
    assert (sums.avoidable_usd, sums.lost_usd) == (Decimal(3), Decimal("0.25"))
    assert sums.rules["trials-fail"] == RuleSums(1, lost_usd=Decimal("0.25"))
