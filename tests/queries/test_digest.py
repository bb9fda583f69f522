"""The digest of a week: what it reads from the history, and what each route gets."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.advice.advice import Decision, DecisionAction
from sageaudit.domain.advice.totals import Digest
from sageaudit.domain.alert.alert import Alert, AlertKind
from sageaudit.domain.alert.audit_figures import AlertFigures
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.routes import Route
from sageaudit.output.text.digest import digest_card
from sageaudit.workflows.digest import make_digests
from tests.fakes.entries import record_run
from tests.fakes.messages import alert

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
WEEK = (date(2026, 11, 16), date(2026, 11, 22))
ALL: Sequence[Route | None] = (None,)


def ago(days: int) -> datetime:
    """Returns noon, this many days before Sunday, the last day of the week."""
    return datetime(2026, 11, 22, 12, tzinfo=UTC) - timedelta(days=days)


@pytest.fixture
def history() -> Iterator[SqliteHistory]:
    """Yields a family with an open recommendation, one that followed it, and a job that failed."""
    with SqliteHistory() as made:
        for day in range(0, 70, 2):
            record_run(
                made, "ranker", ago(day), cost_usd=10, avoidable_usd=4, tags={"team": "search"}
            )
        for day in (30, 33, 36):
            record_run(made, "summariser", ago(day), cost_usd=30, avoidable_usd=14, owner="bo")
        for day in (20, 13, 6, 2):
            record_run(made, "summariser", ago(day), cost_usd=16, owner="bo")
        record_run(made, "crash", ago(3), cost_usd=50, lost_usd=50, owner="bo")
        record_run(made, "gone", ago(1), cost_usd=0, unauditable="job_not_found")
        record_run(made, "today", ago(-1), cost_usd=1_000, avoidable_usd=900)
        yield made


def alerts_at(*moments: datetime, kind: AlertKind = AlertKind.FIRST) -> tuple[Alert, ...]:
    """Returns alerts about both families with open recommendations."""
    figures = AlertFigures(Severity.LOW, Decimal(4), Decimal(0))
    return tuple(
        alert(figures, at=at, family=family, kind=kind, amount_kind=AmountKind.COUNTED)
        for at in moments
        for family in (f"training/pytorch/train.py/{name}" for name in ("crash", "ranker"))
    )


def read_digests(
    history: SqliteHistory,
    routes: Sequence[Route | None] = ALL,
    decisions: Sequence[Decision] = (),
    alerts: tuple[Alert, ...] = (),
) -> list[Digest]:
    """Returns the digests of the week; `alerts` are the earlier messages about every family."""

    def sent_to(subject: str) -> list[Alert]:
        return [
            recommendation for recommendation in alerts if subject.endswith(recommendation.family)
        ]

    return [*make_digests(history, WEEK, routes, decisions, sent_to, NOW)]


def test_only_the_week_is_summed(history: SqliteHistory) -> None:
    """The day of sending and the week before are left out; the week before is compared with it."""
    [read_digest] = read_digests(history)
    assert (read_digest.total.jobs, read_digest.total.unauditable) == (8, 1)
    assert (
        read_digest.total.total_usd,
        read_digest.total.avoidable_usd,
        read_digest.total.lost_usd,
    ) == (122, 16, 50)
    assert read_digest.previous_total is not None
    assert read_digest.previous_total.total_usd == 46
    assert [
        (recommendation.family, recommendation.change)
        for recommendation in read_digest.changed_families
    ][:1] == [("training/pytorch/train.py/crash", "new")]


def test_a_first_week_is_compared_with_nothing() -> None:
    """The history begins in the week."""
    with SqliteHistory() as history:
        record_run(history, "ranker", ago(2), cost_usd=10, avoidable_usd=4)
        [read_digest] = read_digests(history)
    assert (read_digest.previous_total, read_digest.changed_families) == (None, ())
    assert "no data for the week before" in digest_card(read_digest).lines[0].text


@pytest.mark.parametrize(
    ("alerts", "unsent"),
    [
        ((), ["crash", "ranker"]),
        (alerts_at(ago(8)), ["crash", "ranker"]),
        (alerts_at(ago(8), ago(3)), []),
        (alerts_at(ago(3))[:1], ["ranker"]),
        (alerts_at(datetime(2026, 11, 23, 7, tzinfo=UTC)), []),
    ],
)
def test_a_family_without_a_message_since_the_week_began_is_counted_as_quiet(
    alerts: tuple[Alert, ...], unsent: list[str], history: SqliteHistory
) -> None:
    """It must have run in the week with an open recommendation."""
    [read_digest] = read_digests(history, alerts=alerts)
    assert (
        sorted(
            {
                recommendation.family.rpartition("/")[2]
                for recommendation in read_digest.unsent_recommendations
            }
        )
        == unsent
    )


def test_decided_recommendations_are_counted_separately(history: SqliteHistory) -> None:
    """A snoozed one is neither in the list nor counted as without a message."""
    [read_digest] = read_digests(history)
    [ranker] = [
        recommendation
        for recommendation in read_digest.recommendations
        if recommendation.family.endswith("/ranker")
    ]
    snoozed = Decision(ranker.id, DecisionAction.SNOOZE, "ana", ago(1), date(2026, 12, 31))
    [read_digest] = read_digests(history, decisions=[snoozed])
    card = digest_card(read_digest)
    printed_text = {line.label: line.text for line in card.lines}
    assert printed_text["Snoozed"] == "1, $60.00 in 30 days"
    assert "Open for 60 days" not in printed_text
    assert ranker.id not in str(card)


ROUTES = {
    "owner bo": (Route(owner="bo"), Decimal(82), 1),
    "tag team=search": (Route(tag=("team", "search")), Decimal(40), 1),
    "another account": (Route(account="222233334444"), Decimal(0), 0),
    "a rule": (Route(rule="failed-spend"), Decimal(122), 1),
    "dollars a month": (Route(min_usd_per_month=Decimal(100)), Decimal(122), 1),
    "a kind": (Route(kind="processing"), Decimal(0), 0),
}


@pytest.mark.parametrize("name", ROUTES)
def test_a_route_gets_only_its_own(name: str, history: SqliteHistory) -> None:
    """The spend is that of its jobs; rules and dollars come only from recommendations."""
    route, spend, floor = ROUTES[name]
    everything, read_digest = read_digests(history, routes=[None, route])
    assert everything.total.total_usd == 122
    assert (read_digest.total.total_usd, read_digest.route) == (spend, route)
    open_now = [
        recommendation
        for recommendation in read_digest.recommendations
        if recommendation.state == "open"
    ]
    assert len(open_now) >= floor
    assert route.owner is None or {recommendation.owner for recommendation in open_now} == {
        route.owner
    }
    assert route.rule is None or {recommendation.rule for recommendation in open_now} == {
        route.rule
    }


def test_families_are_read_once_for_any_number_of_routes(history: SqliteHistory) -> None:
    """The alerts of a route do not read them again."""
    arguments: list[str] = []

    def alerts(family: str) -> tuple[Alert, ...]:
        arguments.append(family)
        return ()

    routes = [None, Route(owner="ana"), Route(rule="gpu-underused")]
    assert len([*make_digests(history, WEEK, routes, (), alerts, NOW)]) == 3
    assert len(arguments) == len(set(arguments))
