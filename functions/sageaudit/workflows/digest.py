"""Writes the digest of the last finished week, once, with a notice for each channel.

was it written? -> the week's figures -> report -> cards -> one transaction

The transaction requires that the week has no item, so only one of two invocations writes. The
notify function reads the notices from the table's stream
(docs/decisions/0024-transactional-outbox.md). The report's name has the week, so a second
invocation overwrites it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache

from msgspec import Struct

from sageaudit.domain.advice.advice import (
    MAX_FAMILY_RUNS,
    Decision,
    FamilyRecommendation,
    sort_by_amount,
)
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS, Digest, estimate_month
from sageaudit.domain.alert.alert import Alert, alert_subject_key
from sageaudit.domain.audit.sums import ChangedFamily
from sageaudit.domain.budget import BudgetMonth
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import unreadable_members
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route
from sageaudit.domain.policy.scope import DigestSchedule
from sageaudit.errors import AwsError
from sageaudit.output.text.card import NO_OWNER_IDS, Notice, Writer, to_json
from sageaudit.output.text.digest import NO_REPORT, DigestReport, digest_card
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation
from sageaudit.ports import Decisions, DigestLedger, History, MemberRegistry
from sageaudit.queries.answer import matching_recommendations, read_family_recommendations
from sageaudit.queries.budgets import covered_days, read_budget_months
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

WriteReport = Callable[[date, Sequence[Decision], datetime], DigestReport]
"""Stores the report up to a day, with people's decisions as of a time, and returns its link. Raises
AwsError."""
_REPORT_NOT_WRITTEN = "it could not be written; the log of the digest function has the reason"


class DigestDependencies(Struct, frozen=True):
    """What the digest reads and writes. `writers` has the channel's name as key.

    `registry` is None for a history without members; `is_audited` says whether the policy includes
    one. `write_report` is None for no report. `history_location` is the history that the digest's
    commands read. `installed_at` returns the time of the installation; None if unknown.
    `is_deployment` is False for a history file, which has the jobs up to the last scan.
    """

    history: History
    ledger: DigestLedger
    decisions: Decisions
    policy: Policy
    writers: Mapping[str, Writer]
    registry: MemberRegistry | None = None
    is_audited: Callable[[AccountRegion], bool] = lambda _: True
    write_report: WriteReport | None = None
    history_location: HistoryLocation = DEFAULT_HISTORY
    installed_at: Callable[[], datetime | None] = lambda: None
    is_deployment: bool = True


class DigestWritten(Struct, frozen=True):
    """The digest was written. `report_error` says why it has no report.

    `routes_without_digest`: for each route without a digest, a sentence with the reason.
    """

    last_day: date
    report_error: AwsError | None
    routes_without_digest: tuple[str, ...]


def write_digest(deps: DigestDependencies, *, now: datetime) -> DigestWritten | str:
    """Writes the digest of the newest full week, or returns why it was not written.

    Raises AwsError or MalformedData.
    """
    if suppression_reason := no_digest_reason(deps.policy):
        return suppression_reason
    week = last_finished_week(deps.policy, now)
    _, last_day = week
    already_written_text = f"the digest of the week to {last_day} was written before"
    if deps.ledger.has_digest(last_day):
        return already_written_text
    decisions = deps.decisions.decisions()
    digests = read_digests(deps, week, decisions, now)
    report, report_error = NO_REPORT, None
    if deps.write_report is not None:
        try:
            report = deps.write_report(last_day, decisions, now)
        except AwsError as error:  # a digest without its report is better than none
            report, report_error = DigestReport(missing_reason=_REPORT_NOT_WRITTEN), error
    routes, routes_without_digest = routes_with_digest(deps.policy)
    bodies = {}
    for number, digest in digests.items():
        route, card = routes[number], digest_card(digest, report, deps.history_location)
        for channel in route.channels if route else deps.policy.routes.default:
            payload = deps.writers[channel](card, NO_OWNER_IDS)
            notice = Notice(f"digest to {last_day}|{number}|{channel}", channel, payload)
            bodies[number, channel] = to_json(notice)
    is_written = deps.ledger.write_digest(last_day, bodies, now)
    return (
        DigestWritten(last_day, report_error, routes_without_digest)
        if is_written
        else already_written_text
    )


def no_digest_reason(policy: Policy) -> str | None:
    """Returns why the policy sends no digest; None if it sends digests."""
    if policy.mode == "observe":
        return "observe mode"
    return "the policy has switched it off" if policy.digest is None else None


def last_finished_week(policy: Policy, now: datetime) -> tuple[date, date]:
    """Returns the first and last day of the newest full week.

    The policy's schedule determines the week, or else the default schedule.
    """
    return (policy.digest or DigestSchedule()).last_full_week(now)


def routes_with_digest(policy: Policy) -> tuple[dict[int, Route | None], tuple[str, ...]]:
    """Returns the routes with a digest by number, and why each other route has none.

    The number 0 with the route None means all jobs. A route by tag needs its tag in `tags.show`, as
    the history has no other tags. A route that selects only recommendations has no digest, since it
    would show all jobs' spend.
    """
    routes: dict[int, Route | None] = {0: None}
    routes_without_digest = []
    for number, route in enumerate(policy.routes.rows, 1):
        if route.tag and route.tag[0] not in policy.cost_tag_names:
            routes_without_digest.append(f"{route}: no digest, as tags.show lacks its tag")
        elif not route.has_job_conditions:
            routes_without_digest.append(f"{route}: no digest, as it selects no jobs")
        else:
            routes[number] = route
    return routes, tuple(routes_without_digest)


def read_digests(
    deps: DigestDependencies, week: tuple[date, date], decisions: Sequence[Decision], now: datetime
) -> dict[int, Digest]:
    """Returns the digest of each route, by the route's number."""
    routes, _ = routes_with_digest(deps.policy)
    digests = make_digests(deps.history, week, routes.values(), decisions, deps.ledger.alerts, now)
    digest_by_number = dict(zip(routes, digests, strict=True))
    months = _read_budgets(deps, week[1], now.astimezone(UTC).date())
    unreadable_items = (*deps.history.unreadable_items(), *deps.ledger.unreadable_items())
    members = deps.registry.members() if deps.registry else {}
    denying_members = tuple(unreadable_members(members, deps.is_audited))
    # Only the digest of all jobs has budgets and members: a route may be about other jobs and
    # accounts.
    return {
        number: replace(
            digest,
            unreadable_items=unreadable_items,
            unreadable_members=() if number else denying_members,
            budgets=() if number else months,
        )
        for number, digest in digest_by_number.items()
    }


def _read_budgets(deps: DigestDependencies, day: date, today: date) -> tuple[BudgetMonth, ...]:
    if not deps.policy.budgets:
        return ()
    covered = covered_days(
        deps.history, day, today, deps.installed_at(), is_deployment=deps.is_deployment
    )
    return tuple(read_budget_months(deps.history, deps.policy.budgets, day, covered))


def make_digests(
    history: History,
    week: tuple[date, date],
    routes: Iterable[Route | None],
    decisions: Sequence[Decision],
    read_alerts: Callable[[str], Iterable[Alert]],
    now: datetime,
) -> Iterator[Digest]:
    """Yields a week's digest for each route. The route None means all jobs.

    `read_alerts` returns a subject's alerts, by its key of account, region and name.
    """
    first_day, last_day = week
    lists = HistoryLists(history, make_window(first_day, last_day + ONE_DAY))
    recent_window = make_window(
        last_day - timedelta(days=LOOK_BACK_DAYS), now.astimezone(UTC).date() + ONE_DAY
    )
    family_rows = read_family_recommendations(
        lists.in_window(recent_window),
        Question(recent_window),
        decisions,
        now,
        most_runs=MAX_FAMILY_RUNS,
    )
    recommendations_by_family, read_alerts_once = [*family_rows], cache(read_alerts)
    for route in routes:
        question = _route_question(lists, route)
        recommendations = sort_by_amount(
            matching_recommendations(recommendations_by_family, question), now
        )
        recommendations = [
            recommendation
            for recommendation in recommendations
            if route is None or _is_selected(route, recommendation, now)
        ]
        unsent_recommendations = _unsent_recommendations(
            recommendations, question, read_alerts_once
        )
        digest = _spend_digest(lists, question, now)
        yield replace(
            digest,
            recommendations=recommendations,
            unsent_recommendations=unsent_recommendations,
            route=route,
        )


def _route_question(lists: HistoryLists, route: Route | None) -> Question:
    # The route's rules, severity and dollars are left out, as they select recommendations.
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


def _is_selected(route: Route, recommendation: FamilyRecommendation, now: datetime) -> bool:
    month = estimate_month([recommendation], recommendation.amount_kind, now)
    return route.matches_recommendation(recommendation.rule, month.severity, month.usd)


def _spend_digest(lists: HistoryLists, question: Question, now: datetime) -> Digest:
    earlier_lists = lists.in_window(window_before(lists.window))
    is_covered = is_covered_before(lists, question)
    first_day, last_day = lists.window.first_day, lists.window.last_day
    changed_rows: Sequence[ChangedFamily] = ()
    if is_covered:
        history_since = last_day - timedelta(days=LOOK_BACK_DAYS)
        changes = find_changes(
            lists, question, GROUPABLE["family"], today=last_day, history_since=history_since
        )
        changed_rows = changed_families(changes)
    return Digest(
        since=first_day,
        until=last_day,
        now=now,
        total=sum_all(lists, question),
        previous_total=sum_all(earlier_lists, question) if is_covered else None,
        changed_families=changed_rows,
        recommendations=(),
        unsent_recommendations=(),
    )


def _unsent_recommendations(
    recommendations: Iterable[FamilyRecommendation],
    question: Question,
    read_alerts: Callable[[str], Iterable[Alert]],
) -> list[FamilyRecommendation]:
    """Returns open recommendations that occurred in the week, but whose subject got no message in
    it.
    """
    since, until = question.window.since, question.window.until
    open_recommendations = [
        recommendation
        for recommendation in recommendations
        if recommendation.is_open
        and any(since <= at < until for at, _ in recommendation.occurrences)
    ]
    subject_keys = {_subject_key(recommendation) for recommendation in open_recommendations}
    subjects_with_message = {
        subject
        for subject in subject_keys
        if any(alert.at >= since for alert in read_alerts(subject))
    }
    return [
        recommendation
        for recommendation in open_recommendations
        if _subject_key(recommendation) not in subjects_with_message
    ]


def _subject_key(recommendation: FamilyRecommendation) -> str:
    return alert_subject_key(recommendation.account, recommendation.region, recommendation.family)
