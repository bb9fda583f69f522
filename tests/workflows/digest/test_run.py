"""The digest beside its report: what people answered counts in both, and the report may fail."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, cast

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.advice.advice import Decision, DecisionAction
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route, Routes
from sageaudit.errors import Unavailable
from sageaudit.output.text import plain
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.digest import digest_card
from sageaudit.structs import replace
from sageaudit.workflows.digest import (
    DigestDependencies,
    DigestWritten,
    make_digests,
    read_digests,
    write_digest,
)
from sageaudit.workflows.digest_report import store_report
from sageaudit.workflows.report import ReportSource
from tests.fakes.entries import record_run

ON = Policy()
NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
WEEK = (date(2026, 11, 16), date(2026, 11, 22))


class Kept:
    """Ledger, decisions and pages; `done` has what was asked of them, in its order."""

    def __init__(self, *decided: Decision) -> None:
        self.decided = decided
        self.pages: list[str] = []
        self.done: list[str] = []

    def decisions(self) -> Sequence[Decision]:
        return self.decided

    def alerts(self, subject: str) -> tuple[()]:
        self.done.append(f"alerts {subject.rpartition('/')[2]}")
        return ()

    def unreadable_items(self) -> tuple[()]:
        return ()

    def has_digest(self, last_day: date) -> bool:
        return False

    def write_digest(self, last_day: date, bodies: object, now: datetime) -> bool:
        self.done.append("written")
        return True

    def put(self, name: str, page: str) -> str:
        self.done.append(name)
        self.pages.append(page)
        return f"https://pages/{name}"


@pytest.fixture
def history() -> Iterator[SqliteHistory]:
    """A family with an open advice of six weeks."""
    with SqliteHistory() as history_file:
        for day in range(1, 40, 2):
            record_run(
                history_file,
                "ranker",
                NOW - timedelta(days=day),
                cost_usd=10,
                avoidable_usd=4,
                tags={"team": "search"},
            )
        yield history_file


def asked(
    history: SqliteHistory,
    kept: Kept,
    source: SqliteHistory | None = None,
    policy: Policy = ON,
    *,
    has_bucket: bool = True,
) -> DigestWritten | str:
    """What became of the week's digest."""

    def write(card: MessageCard, _: object) -> dict[str, Any]:
        return dict(plain.make_payload(card))

    deps = DigestDependencies(
        history,
        kept,
        cast("Any", kept),
        policy,
        {"sns": write},
        write_report=partial(store_report, ReportSource(source or history, {}), kept)
        if has_bucket
        else None,
    )
    return write_digest(deps, now=NOW)


def sent(history: SqliteHistory, kept: Kept, source: SqliteHistory | None = None) -> DigestWritten:
    """The digest of the week was written."""
    outcome = asked(history, kept, source)
    assert isinstance(outcome, DigestWritten)
    return outcome


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"mode": "observe"}, "observe mode"), ({"digest": None}, "the policy has switched it off")],
)
def test_a_policy_may_have_none(history: SqliteHistory, changes: dict[str, Any], why: str) -> None:
    """Nothing is asked, and it says why."""
    kept = Kept()
    assert asked(history, kept, policy=replace(ON, **changes)) == why
    assert kept.done == []


def test_without_a_bucket_the_digest_is_sent_and_no_page_is_written(
    history: SqliteHistory,
) -> None:
    kept = Kept()
    assert isinstance(asked(history, kept, has_bucket=False), DigestWritten)
    assert "written" in kept.done
    assert kept.pages == []


def test_the_report_knows_what_people_answered(history: SqliteHistory) -> None:
    """As that of the command: a snoozed advice is not open."""
    [digest] = make_digests(history, WEEK, [None], (), lambda _: (), NOW)
    snoozed = Decision(
        digest.recommendations[0].id,
        DecisionAction.SNOOZE,
        "ana",
        NOW - timedelta(days=2),
        date(2027, 1, 1),
    )
    pages = []
    for kept in (Kept(), Kept(snoozed)):
        sent(history, kept)
        pages += kept.pages
    assert ["Snoozed" in page for page in pages] == [False, True]


class Broken(SqliteHistory):
    """A history that has no time left."""

    def daily_sums(self, *_: Any, **__: Any) -> Any:
        raise Unavailable("no time was left to ask Query")


def test_a_report_without_time_takes_none_of_the_digest(history: SqliteHistory) -> None:
    """All that the digest says was read before."""
    kept = Kept()
    with Broken() as broken:
        assert sent(history, kept, broken).report_error is not None
    assert kept.done == ["alerts ranker", "written"]
    kept = Kept()
    assert sent(history, kept).report_error is None
    assert kept.done == ["alerts ranker", "2026-11-22.html", "written"]


def test_a_history_without_jobs_has_a_digest_and_a_report() -> None:
    """The stack is new, or nobody ran a job for a month."""
    kept = Kept()
    with SqliteHistory() as empty:
        assert sent(empty, kept).report_error is None
    assert kept.done == ["2026-11-22.html", "written"]


def test_only_the_digest_of_all_jobs_has_the_budgets(history: SqliteHistory) -> None:
    """In the month of the week's last day, with what was spent until now."""
    budgets = (Budget("all jobs", Decimal(100)), Budget("bo", Decimal(5), owner="bo"))
    routes = Routes(("sns",), (Route(owner="ana", channels=("sns",)),))
    policy = replace(ON, budgets=budgets, routes=routes)
    deps = DigestDependencies(history, Kept(), cast("Any", Kept()), policy, {})
    digests = read_digests(deps, WEEK, (), NOW)
    texts = {
        number: [line.labelled_text for line in digest_card(digest).lines if "Budget" in line.label]
        for number, digest in digests.items()
    }
    assert texts == {
        0: [
            "Budget all jobs: $110.00 of $100.00 (110%) in 2026-11, about $150.00 projected",
            "Budget bo: $0.00 of $5.00 (0%) in 2026-11",
        ],
        1: [],
    }


def test_a_deployment_knows_what_was_spent_since_its_installation() -> None:
    """No job has ended for months: nothing was spent."""
    policy = replace(ON, budgets=(Budget("all jobs", Decimal(100)),))
    with SqliteHistory() as quiet:
        deps = DigestDependencies(quiet, Kept(), cast("Any", Kept()), policy, {})
        deps = replace(deps, installed_at=lambda: NOW - timedelta(days=200))
        [line] = digest_card(read_digests(deps, WEEK, (), NOW)[0]).lines
    assert line.text == "$0.00 of $100.00 (0%) in 2026-11"


def test_a_file_has_the_jobs_up_to_the_last_scan(history: SqliteHistory) -> None:
    """Days after its newest job are not days of $0."""
    policy = replace(ON, budgets=(Budget("all jobs", Decimal(1000)),))
    deps = DigestDependencies(history, Kept(), cast("Any", Kept()), policy, {})
    later = NOW + timedelta(days=5)
    [exact, bound] = [
        read_digests(replace(deps, is_deployment=is_deployment), WEEK, (), later)[0].budgets[0]
        for is_deployment in (True, False)
    ]
    assert (exact.is_lower_bound, bound.is_lower_bound) == (False, True)
    assert bound.covered_until == date(2026, 11, 22)


def test_a_week_without_jobs_still_shows_the_budgets() -> None:
    """The month has spend from before."""
    policy = replace(ON, budgets=(Budget("all jobs", Decimal(100)),))
    with SqliteHistory() as quiet:
        record_run(quiet, "ranker", NOW - timedelta(days=20), cost_usd=90)
        deps = DigestDependencies(quiet, Kept(), cast("Any", Kept()), policy, {})
        card = digest_card(read_digests(deps, WEEK, (), NOW)[0])
    assert card.headline == "Week to 2026-11-22: no job was audited"
    [line] = card.lines
    assert (
        line.text
        == "$90.00 or more of $100.00 (at least 90%) in 2026-11, about $126.00 or more projected"
    )
