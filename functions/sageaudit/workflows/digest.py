"""Writes the digest of the newest week that is over, once, with a notice for each channel.

was it written? -> the week's figures -> report -> cards -> one transaction

The transaction creates the week's item on condition that there is none, so only one of two starts
writes. The table's stream then has the notices, like those of audits
(docs/decisions/0024-transactional-outbox.md). The report is named after the week, so that a second
start writes the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache

from msgspec import Struct

from sageaudit import __version__
from sageaudit.domain.advice.advice import (
    MAX_FAMILY_RUNS,
    Decision,
    FamilyRecommendation,
    sort_by_amount,
)
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS, Digest, estimate_month
from sageaudit.domain.alert.alert import Alert, alert_subject_key
from sageaudit.domain.audit.sums import ChangedFamily
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route
from sageaudit.domain.policy.scope import DigestSchedule
from sageaudit.domain.sweep import Period
from sageaudit.errors import AwsError
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.page import page
from sageaudit.output.text.card import NO_OWNER_IDS, Notice, Writer, to_json
from sageaudit.output.text.digest import NO_REPORT, DigestReport, digest_card
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation, Link
from sageaudit.ports import Decisions, DigestLedger, History, ReportStore
from sageaudit.queries.answer import matching_recommendations, recommendations_by_family
from sageaudit.queries.by import sum_all
from sageaudit.queries.changes import (
    changed_families,
    find_changes,
    is_covered_before,
    window_before,
)
from sageaudit.queries.columns import GROUPABLE
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, make_window
from sageaudit.structs import replace
from sageaudit.workflows.report import ReportSource, assemble_account_report, read_report_summaries

REPORT_DAYS = 30
_REPORT_NOT_WRITTEN = "it could not be written: the log of digest says why"


class DigestDependencies(Struct, frozen=True):
    """What the digest reads and writes.

    `writers` are by channel. `report_source` and `report_store`: where the report is read and
    stored; None for no report. `history_location`: the history that the digest's commands read.
    """

    history: History
    ledger: DigestLedger
    decisions: Decisions
    policy: Policy
    writers: Mapping[str, Writer]
    report_store: ReportStore | None = None
    report_source: ReportSource | None = None
    history_location: HistoryLocation = DEFAULT_HISTORY


class DigestWritten(Struct, frozen=True):
    """A digest was written.

    `report_error`: why its report was not. `routes_without_digest`: those routes, with the reason.
    """

    last_day: date
    report_error: AwsError | None
    routes_without_digest: tuple[str, ...]


def send_digest(deps: DigestDependencies, *, now: datetime) -> DigestWritten | str:
    """Writes the digest of the newest full week, or returns why there is none.

    Raises AwsError, BadHistory or MalformedData.
    """
    if never := no_digest_reason(deps.policy):
        return never
    week = last_finished_week(deps.policy, now)
    _, last_day = week
    written = f"the digest of the week to {last_day} was written before"
    if deps.ledger.has_digest(last_day):
        return written
    decided = deps.decisions.decisions()
    digests = read_digests(deps, week, decided, now)
    report, unwritten = NO_REPORT, None
    try:
        report = _report(deps, last_day, decided, now)
    except AwsError as error:  # a digest without its report is better than none
        report, unwritten = DigestReport(missing_reason=_REPORT_NOT_WRITTEN), error
    routes, left_out = routes_with_digest(deps.policy)
    bodies = {}
    for number, digest in digests.items():
        route, card = routes[number], digest_card(digest, report, deps.history_location)
        for channel in route.channels if route else deps.policy.routes.default:
            payload = deps.writers[channel](card, NO_OWNER_IDS)
            notice = Notice(f"digest to {last_day}|{number}|{channel}", channel, payload)
            bodies[number, channel] = to_json(notice)
    done = deps.ledger.write_digest(last_day, bodies, now)
    return DigestWritten(last_day, unwritten, left_out) if done else written


def no_digest_reason(policy: Policy) -> str | None:
    """Why the policy sends no digest; None if it does."""
    if policy.mode == "observe":
        return "observe mode"
    return "the policy has switched it off" if policy.digest is None else None


def last_finished_week(policy: Policy, now: datetime) -> tuple[date, date]:
    """The newest full week, by the policy or, if it has no digest, by the default schedule."""
    return (policy.digest or DigestSchedule()).last_full_week(now)


def routes_with_digest(policy: Policy) -> tuple[dict[int, Route | None], tuple[str, ...]]:
    """The routes with a digest by number, 0 for all jobs; and why each other route has none.

    The history has only the tags of `tags.show`. A route that selects recommendations alone would
    show the spend of all jobs.
    """
    routes: dict[int, Route | None] = {0: None}
    left_out = []
    for number, route in enumerate(policy.routes.rows, 1):
        if route.tag and route.tag[0] not in policy.cost_tag_names:
            left_out.append(f"{route}: none, as tags.show does not have its tag")
        elif not route.has_job_conditions:
            left_out.append(f"{route}: none, as it selects no jobs")
        else:
            routes[number] = route
    return routes, tuple(left_out)


def read_digests(
    deps: DigestDependencies, week: tuple[date, date], decisions: Sequence[Decision], now: datetime
) -> dict[int, Digest]:
    """The digests, by the numbers of their routes."""
    routes, _ = routes_with_digest(deps.policy)
    digests = make_digests(deps.history, week, routes.values(), decisions, deps.ledger.alerts, now)
    return dict(zip(routes, digests, strict=True))


def _report(
    deps: DigestDependencies, last_day: date, decided: Sequence[Decision], now: datetime
) -> DigestReport:
    """Stores the report of the last 30 days and returns its link. Raises AwsError."""
    if deps.report_store is None or deps.report_source is None:
        return NO_REPORT
    period = Period(last_day - timedelta(days=REPORT_DAYS - 1), last_day)
    heads, left_out = read_report_summaries(deps.report_source, period, None)
    contents = assemble_account_report(
        deps.report_source, period, None, heads, left_out, last_day, decided
    )
    text = page(
        account_title(contents), account_body(contents), generated_at=now, version=__version__
    )
    url = deps.report_store.put(f"{last_day}.html", "".join(text))
    return DigestReport(Link(f"Report of {REPORT_DAYS} days", url))


def make_digests(
    history: History,
    week: tuple[date, date],
    routes: Iterable[Route | None],
    decisions: Sequence[Decision],
    read_alerts: Callable[[str], Iterable[Alert]],
    now: datetime,
) -> Iterator[Digest]:
    """The digest of a week for each route; None is all jobs.

    `read_alerts` returns the alerts of a subject, by its key of account, region and name. Each
    family is read once.
    """
    since, until = week
    lists = HistoryLists(history, make_window(since, until + ONE_DAY))
    days = make_window(until - timedelta(days=LOOK_BACK_DAYS), now.astimezone(UTC).date() + ONE_DAY)
    read = recommendations_by_family(
        lists.in_window(days), Question(days), decisions, now, most_runs=MAX_FAMILY_RUNS
    )
    families, sent_to = [*read], cache(read_alerts)
    for route in routes:
        question = _question(lists, route)
        recommendations = sort_by_amount(matching_recommendations(families, question), now)
        recommendations = [
            item for item in recommendations if route is None or _matches(route, item, now)
        ]
        unsent = _unsent(recommendations, question, sent_to)
        spend = _spend_digest(lists, question, now)
        yield replace(
            spend, recommendations=recommendations, unsent_recommendations=unsent, route=route
        )


def _question(lists: HistoryLists, route: Route | None) -> Question:
    """The jobs of a route. Its rules, severity and dollars select recommendations, not jobs."""
    if route is None:
        return Question(lists.window)
    return Question.with_filters(
        lists.window,
        account=route.account,
        family=route.family,
        owner=route.owner,
        kind=JobKind(route.kind) if route.kind else None,
        tag=dict([route.tag]) if route.tag else {},
    )


def _matches(route: Route, item: FamilyRecommendation, now: datetime) -> bool:
    month = estimate_month([item], item.amount_kind, now)
    return route.matches_recommendation(item.rule, month.severity, month.usd)


def _spend_digest(lists: HistoryLists, question: Question, now: datetime) -> Digest:
    """The week's sums beside those of the week before."""
    before = lists.in_window(window_before(lists.window))
    covered = is_covered_before(lists, question)
    first, last = lists.window.first_day, lists.window.last_day
    changed: Sequence[ChangedFamily] = ()
    if covered:
        known_since = last - timedelta(days=LOOK_BACK_DAYS)
        rows = find_changes(
            lists, question, GROUPABLE["family"], today=last, history_since=known_since
        )
        changed = changed_families(rows)
    return Digest(
        since=first,
        until=last,
        now=now,
        total=sum_all(lists, question),
        previous_total=sum_all(before, question) if covered else None,
        changed_families=changed,
        recommendations=(),
        unsent_recommendations=(),
    )


def _unsent(
    recommendations: Iterable[FamilyRecommendation],
    question: Question,
    alerts: Callable[[str], Iterable[Alert]],
) -> list[FamilyRecommendation]:
    """The week's open recommendations whose subjects have had no message since it began."""
    since, until = question.window.since, question.window.until
    due = [
        one
        for one in recommendations
        if one.is_open and any(since <= at < until for at, _ in one.occurrences)
    ]
    subjects = {alert_subject_key(one.account, one.region, one.family) for one in due}
    sent = {subject for subject in subjects if any(one.at >= since for one in alerts(subject))}
    return [
        one for one in due if alert_subject_key(one.account, one.region, one.family) not in sent
    ]
