"""Reads what the weekly digest says: of all jobs, and of those that a route is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache

from sageaudit.domain.advice.advice import MOST_RUNS, Advice, Decision, dearest_first
from sageaudit.domain.advice.digest import LOOK_BACK_DAYS, Digest
from sageaudit.domain.advice.month import month_of
from sageaudit.domain.alert.alert import Alert, group_key
from sageaudit.domain.audit.sums import ChangedFamily
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.routes import Route
from sageaudit.ports import History
from sageaudit.queries.advices import by_family, of_question
from sageaudit.queries.by import sums_of
from sageaudit.queries.changes import changed_families, changes, covers_before, window_before
from sageaudit.queries.columns import SUMMED
from sageaudit.queries.lists import Lists
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, window_of
from sageaudit.structs import replace


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
    return Question(
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
