"""Writes the digest of the newest week that is over, once, with a notice for each channel.

was it written? -> the week's figures -> report -> cards -> one transaction

The transaction has an item of the week, on condition that there is none: of two starts one writes.
The table's stream has the notices afterwards, as those of audits
(docs/decisions/0024-transactional-outbox.md). The report's name is that of the week, so that a
second start writes the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache

from msgspec import Struct

from sageaudit import __version__
from sageaudit.domain.advice.advice import MOST_RUNS, Advice, Decision, dearest_first
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS, Digest, month_of
from sageaudit.domain.alert.alert import Alert, group_key
from sageaudit.domain.audit.sums import ChangedFamily
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route
from sageaudit.domain.policy.scope import DigestTimes
from sageaudit.domain.sweep import Period
from sageaudit.errors import AwsError
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.page import page
from sageaudit.output.text.card import NOBODY, Notice, Writer, to_body
from sageaudit.output.text.digest import NO_REPORT, DigestReport, digest_card
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace, Link
from sageaudit.ports import Decisions, DigestLedger, History, ReportStore
from sageaudit.queries.answer import by_family, of_question
from sageaudit.queries.by import sums_of
from sageaudit.queries.changes import changed_families, changes, covers_before, window_before
from sageaudit.queries.columns import SUMMED
from sageaudit.queries.lists import Lists
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, window_of
from sageaudit.structs import replace
from sageaudit.workflows.report import ReportSource, account_report, heads_of

REPORT_DAYS = 30
_NOT_WRITTEN = "it could not be written: the log of digest says why"


class DigestDependencies(Struct, frozen=True):
    """What the digest reads, writes and is written by.

    `writers`: of each channel of the policy. `source`: what the report is read from, and `pages`
    where it goes; None for no report. `place`: the history that the commands of the digest ask.
    """

    history: History
    ledger: DigestLedger
    decisions: Decisions
    policy: Policy
    writers: Mapping[str, Writer]
    reports: ReportStore | None = None
    source: ReportSource | None = None
    place: HistoryPlace = OWN_HISTORY


class Digested(Struct, frozen=True):
    """A digest was written; `unwritten`: why its report was not. `left_out`: routes without
    a digest, and why.
    """

    last_day: date
    unwritten: AwsError | None
    left_out: tuple[str, ...]


def send_digest(deps: DigestDependencies, *, now: datetime) -> Digested | str:
    """Writes the digest of the newest week, or says why there is none.

    Raises AwsError, BadHistory or Malformed.
    """
    if never := why_no_digest(deps.policy):
        return never
    week = week_of(deps.policy, now)
    _, last_day = week
    written = f"the digest of the week to {last_day} was written before"
    if deps.ledger.has_digest(last_day):
        return written
    decided = deps.decisions.decisions()
    found = read_digests(deps, week, decided, now)
    report, unwritten = NO_REPORT, None
    try:
        report = _report(deps, last_day, decided, now)
    except AwsError as error:  # a digest without its report is better than none
        report, unwritten = DigestReport(missing=_NOT_WRITTEN), error
    routes, left_out = digest_routes(deps.policy)
    bodies = {}
    for number, digest in found.items():
        route, card = routes[number], digest_card(digest, report, deps.place)
        for channel in route.to if route else deps.policy.routes.default:
            payload = deps.writers[channel](card, NOBODY)
            notice = Notice(f"digest to {last_day}|{number}|{channel}", channel, payload)
            bodies[number, channel] = to_body(notice)
    done = deps.ledger.write_digest(last_day, bodies, now)
    return Digested(last_day, unwritten, left_out) if done else written


def why_no_digest(policy: Policy) -> str | None:
    """Why the policy has none sent."""
    if policy.mode == "observe":
        return "observe mode"
    return "the policy has switched it off" if policy.digest is None else None


def week_of(policy: Policy, now: datetime) -> tuple[date, date]:
    """The newest week that is over, by the policy or, where it has no digest, the usual one."""
    return (policy.digest or DigestTimes()).week(now)


def digest_routes(policy: Policy) -> tuple[dict[int, Route | None], tuple[str, ...]]:
    """By its number each route with a digest, 0 for all jobs; and of the others why they have none.

    The history knows only the tags that it shows. The spend of a route that selects advices alone
    would be that of all jobs.
    """
    routes: dict[int, Route | None] = {0: None}
    left_out = []
    for number, route in enumerate(policy.routes.rows, 1):
        if route.tag and route.tag[0] not in policy.tags_shown:
            left_out.append(f"{route}: none, as tags.show does not have its tag")
        elif not route.of_jobs:
            left_out.append(f"{route}: none, as it selects no jobs")
        else:
            routes[number] = route
    return routes, tuple(left_out)


def read_digests(
    deps: DigestDependencies, week: tuple[date, date], decided: Sequence[Decision], now: datetime
) -> dict[int, Digest]:
    """What the digests say, by the numbers of their routes."""
    routes, _ = digest_routes(deps.policy)
    found = digests(deps.history, week, routes.values(), decided, deps.ledger.alerts, now)
    return dict(zip(routes, found, strict=True))


def _report(
    deps: DigestDependencies, last_day: date, decided: Sequence[Decision], now: datetime
) -> DigestReport:
    """Stores the page of the last 30 days, and links it. Raises AwsError."""
    if deps.reports is None or deps.source is None:
        return NO_REPORT
    period = Period(last_day - timedelta(days=REPORT_DAYS - 1), last_day)
    heads, left_out = heads_of(deps.source, period, None)
    contents = account_report(deps.source, period, None, heads, left_out, last_day, decided)
    text = page(
        account_title(contents), account_body(contents), generated_at=now, version=__version__
    )
    url = deps.reports.put(f"{last_day}.html", "".join(text))
    return DigestReport(Link(f"Report of {REPORT_DAYS} days", url))


def digests(
    history: History,
    week: tuple[date, date],
    routes: Iterable[Route | None],
    decisions: Sequence[Decision],
    alerts: Callable[[str], Iterable[Alert]],
    now: datetime,
) -> Iterator[Digest]:
    """The digest of a week for each route; None is all jobs.

    `alerts`: those of a subject, by account, region and name. Each family is read
    once.
    """
    since, until = week
    lists = Lists(history, window_of(since, until + ONE_DAY))
    back = window_of(until - timedelta(days=LOOK_BACK_DAYS), now.astimezone(UTC).date() + ONE_DAY)
    read = by_family(lists.within(back), Question(back), decisions, now, most_runs=MOST_RUNS)
    families, sent_to = [*read], cache(alerts)
    for route in routes:
        question = _question(lists, route)
        found = dearest_first(of_question(families, question), now)
        found = [one for one in found if route is None or _matches(route, one, now)]
        unsent = _unsent(found, question, sent_to)
        spend = _of_spend(lists, question, now)
        yield replace(spend, advices=found, unsent=unsent, route=route)


def _question(lists: Lists, route: Route | None) -> Question:
    """The jobs of a route: what it says of rules, severity and dollars is about advices."""
    if route is None:
        return Question(lists.window)
    return Question.of(
        lists.window,
        account=route.account,
        family=route.family,
        owner=route.owner,
        kind=JobKind(route.kind) if route.kind else None,
        tag=dict([route.tag]) if route.tag else {},
    )


def _matches(route: Route, one: Advice, now: datetime) -> bool:
    month = month_of([one], one.worth, now)
    return route.matches_advice(one.rule, month.severity, month.usd)


def _of_spend(lists: Lists, question: Question, now: datetime) -> Digest:
    """The week's sums beside those of the week before."""
    before = lists.within(window_before(lists.window))
    covered = covers_before(lists, question)
    first, last = lists.window.first_day, lists.window.last_day
    changed: Sequence[ChangedFamily] = ()
    if covered:
        known_since = last - timedelta(days=LOOK_BACK_DAYS)
        rows = changes(lists, question, SUMMED["family"], today=last, known_since=known_since)
        changed = changed_families(rows)
    return Digest(
        since=first,
        until=last,
        now=now,
        total=sums_of(lists, question),
        before=sums_of(before, question) if covered else None,
        changed=changed,
        advices=(),
        unsent=(),
    )


def _unsent(
    found: Iterable[Advice], question: Question, alerts: Callable[[str], Iterable[Alert]]
) -> list[Advice]:
    """The open advices that runs of the week had, of subjects without a message since then."""
    since, until = question.window.since, question.window.until
    due = [one for one in found if one.is_open and any(since <= at < until for at, _ in one.hits)]
    subjects = {group_key(one.account, one.region, one.family) for one in due}
    sent = {subject for subject in subjects if any(one.at >= since for one in alerts(subject))}
    return [one for one in due if group_key(one.account, one.region, one.family) not in sent]
