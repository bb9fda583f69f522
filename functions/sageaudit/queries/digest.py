"""Reads what the weekly digest says, of all jobs or of those that a question is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from sageaudit.domain.alert.advice import Advice, Decision, State
from sageaudit.domain.alert.alert import Told
from sageaudit.domain.alert.digest import LOOK_BACK_DAYS, Digest
from sageaudit.ports import History
from sageaudit.queries.advices import advices
from sageaudit.queries.by import sums_of
from sageaudit.queries.changes import changed_families, changes, covers_before, window_before
from sageaudit.queries.columns import SUMMED
from sageaudit.queries.lists import Lists
from sageaudit.queries.periods import ONE_DAY, window_of
from sageaudit.queries.question import Question

MOST_RUNS = 1_000
"""Of a family, the newest, as its messages are decided by them."""


def digest(
    history: History,
    week: tuple[date, date],
    decisions: Sequence[Decision],
    told: Callable[[str], Iterable[Told]],
    now: datetime,
) -> Digest:
    """The digest of a week. `told`: the messages about a family, by account, region and name."""
    since, until = week
    question = Question(window_of(since, until + ONE_DAY))
    lists = Lists(history, question.window)
    before = lists.within(window_before(question.window))
    covered = covers_before(lists, question)
    back = window_of(until - timedelta(days=LOOK_BACK_DAYS), now.astimezone(UTC).date() + ONE_DAY)
    found = advices(
        lists.within(back), replace(question, window=back), decisions, now, most_runs=MOST_RUNS
    )
    changed = changes(lists, question, SUMMED["family"], today=until) if covered else ()
    return Digest(
        since=since,
        until=until,
        now=now,
        total=sums_of(lists, question),
        before=sums_of(before, question) if covered else None,
        changed=changed_families(changed),
        advices=found,
        unsent=_unsent(found, question, told),
    )


def _unsent(
    found: Iterable[Advice], question: Question, told: Callable[[str], Iterable[Told]]
) -> list[Advice]:
    """The open advices that runs of the week had, of families without a message since then."""
    since, until = question.window.since, question.window.until
    due = [
        one
        for one in found
        if one.state is State.OPEN and any(since <= at < until for at, _ in one.hits)
    ]
    families = {f"{one.account}/{one.region}/{one.family}" for one in due}
    silent = {of for of in families if all(one.alert.at < since for one in told(of))}
    return [one for one in due if f"{one.account}/{one.region}/{one.family}" in silent]
