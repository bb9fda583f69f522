"""Lists and sums of an embedded history: each uses its index, and sums are those of memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sageaudit.adapters.history.in_memory import MemoryHistory
from sageaudit.adapters.history.sqlite import statements
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.audit.record import Entry
from sageaudit.domain.audit.sums import Scope, Sums, grouped, total
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from tests.adapters.history.entries import ACCOUNT, NOON, ended, entry, finding

INDEXES = {
    "HEAD": "sqlite_autoindex_runs_1 (run_key=?",
    "BY_DAY": "runs_by_day (ended_at>?",
    "BY_FAMILY": "runs_by_family (account=? AND region=? AND family=? AND (ended_at,run_key)<",
    "BY_OWNER": "runs_by_owner (owner=? AND (ended_at,run_key)<",
    "BY_ACCOUNT": "runs_by_account (account=? AND ended_at>? AND (ended_at,run_key)<",
    "BY_RULE": "findings_by_rule (rule=? AND ended_at>? AND (ended_at,run_key)<",
    "DUE": "runs_due ((due_at,run_key)>(?,?) AND due_at<?",
    "FAMILY_BEFORE": "runs_by_family (account=? AND region=? AND family=? AND ended_at<?",
    "FAMILY_AFTER": "runs_by_family (account=? AND region=? AND family=? AND ended_at>?",
    "NEWEST_AUDIT": "sqlite_autoindex_audits_1 (run_key=?",
    "DETAIL": "sqlite_autoindex_details_1 (run_key=?",
    "SUMS": "PRIMARY KEY (scope=? AND day>? AND day<?",
    "SUMS_OF_NAME": "daily_sums_by_name (scope=? AND name=? AND day>? AND day<?",
    "RULE_SUMS": "PRIMARY KEY (scope=? AND day>? AND day<?",
    "RULE_SUMS_OF_NAME": "daily_rule_sums_by_name (scope=? AND name=? AND day>? AND day<?",
}
"""What SQLite plans for the statement of this name."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed history of some jobs."""
    made = tmp_path / "history.db"
    with SqliteHistory(made) as history:
        for minute in range(20):
            history.record(ended(f"job-{minute}", NOON + timedelta(minutes=minute)))
    return made


@pytest.fixture
def sql(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, as SQLite plans its queries."""
    with closing(sqlite3.connect(path)) as connection:
        yield connection


@pytest.mark.parametrize("query", INDEXES)
@pytest.mark.parametrize("analyzed", [False, True])
def test_each_list_uses_its_index(sql: sqlite3.Connection, query: str, analyzed: bool) -> None:
    """It reads no other rows, and sorts none."""
    if analyzed:
        sql.execute("ANALYZE")
    statement = getattr(statements, query)
    values = dict.fromkeys(
        [word.strip(",)(") for part in statement.split(":")[1:] for word in part.split()[:1]]
    )
    plan = [row[3] for row in sql.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    assert INDEXES[query] in plan[0]
    assert not [step for step in plan if "SCAN" in step or "TEMP B-TREE" in step]


NAMES = ("a", "b", "c")
audits = st.builds(
    lambda name, day, usd, rules, changes, again, kind: replace(
        ended(
            name,
            NOON + timedelta(days=day),
            modified_s=int(again) * day,
            again=again,
            avoidable_usd=usd,
            findings=[finding(rule, saving_usd=usd) for rule in rules],
            rollup=kind is None,
            own_rules=list(rules),
            job={"family": changes, "owner": changes or None},
        ),
        facts=RunFacts(purchase=Purchase.SPOT, instance_type=kind),
    ),
    st.sampled_from(NAMES),
    st.integers(0, 2),
    st.decimals(0, 1_000, places=6),
    st.sets(st.sampled_from(NAMES)),
    st.sampled_from(["", "x", "y"]),
    st.booleans(),
    st.sampled_from([None, "ml.g5.xlarge", "ml.m5.large"]),
)


def summed(history: History, scope: Scope) -> dict[object, Sums]:
    """Sums by everything that a row tells; what adds nothing is left out."""
    since, until = NOON.date(), NOON.date() + timedelta(days=9)
    rows = history.sums(scope, since, until)
    by_place = grouped(rows, lambda row: (row.account, row.region, row.name, row.day))
    return {place: sums for place, sums in by_place.items() if sums != Sums()}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(audits, max_size=8))
def test_daily_sums_are_those_of_the_newest_versions(
    tmp_path_factory: pytest.TempPathFactory, given_audits: list[Entry]
) -> None:
    """Whatever comes twice, moves to another day or family, or is judged again."""
    memory = MemoryHistory()
    with SqliteHistory(tmp_path_factory.mktemp("sums") / "history.db") as history:
        for one in given_audits:
            assert history.record(one) == memory.record(one)
        for scope in Scope:
            assert summed(history, scope) == summed(memory, scope)


def test_sums_of_one_name_account_or_region(path: Path) -> None:
    """Each filter leaves other rows out; days outside are not read."""
    with SqliteHistory(path) as history:
        history.record(entry("other", job={"family": "f", "account": "4", "region": "eu-west-1"}))
        day = NOON.date()

        def jobs(scope: Scope, **asked: str) -> int:
            return total(history.sums(scope, day, day, **asked)).jobs

        assert jobs(Scope.ACCOUNT) == 21
        assert jobs(Scope.ACCOUNT, account="4") == 1
        assert jobs(Scope.FAMILY, region="eu-west-1") == 1
        assert jobs(Scope.FAMILY, name="f") == 1
        assert jobs(Scope.FAMILY, name="f", account=ACCOUNT) == 0
        assert jobs(Scope.OWNER, name="ana") == 21
        assert not list(history.sums(Scope.ACCOUNT, date(2026, 11, 21), date(2026, 12, 1)))


def test_sums_stay_exact_to_the_sixth_decimal(tmp_path: Path) -> None:
    """A dollar made of millionths, in the sums of its day and rule."""
    tiny = Decimal("0.000001")
    with SqliteHistory(tmp_path / "history.db") as history:
        for number in range(100):
            found = [finding(saving_usd=tiny * 10_000)]
            history.record(entry(f"{number}", bill={"total_usd": tiny}, findings=found))
        day = NOON.date()
        sums = total(history.sums(Scope.OWNER, day, day, name="ana"))
    assert sums.total_usd == tiny * 100
    assert sums.rules["gpu-underused"].avoidable_usd == Decimal(1)
