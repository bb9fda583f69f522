"""The runs of one advice: that were advised so, that followed it, and how often it came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.advice.comparison import COMPARED
from sageaudit.domain.audit.finding_document import Advised
from sageaudit.domain.audit.summary import AuditSummary

CLOSED_AFTER = timedelta(days=60)
"""Without a run, or the finding, for so long, it is over: our choice."""
_USED_BEFORE = 5
"""Runs before the first finding: a value that one of them had is taken by several in a row."""


class Episode(Struct):
    """The runs of an advice from when it came to when it comes back."""

    runs: list[AuditSummary] = field(default_factory=list)
    carriers: list[AuditSummary] = field(default_factory=list)
    back: bool = False


def amount_of(run: AuditSummary, one: Advised) -> Decimal | None:
    """What the run was advised of the same line; None where that is not known."""
    advised = run.advised_like(one)
    return advised.amount if advised else None


def episodes_of(runs: Sequence[AuditSummary], one: Advised) -> Iterator[Episode]:
    """A run that is advised so after one that followed it begins anew, and so does one after 60
    days without.
    """
    episode, before = Episode(), list[AuditSummary]()
    used, row = False, list[AuditSummary]()
    for run in runs:
        advised = run.advised_like(one)
        if advised is not None:
            last = episode.runs[-1] if episode.runs else None
            gone = last is not None and run.ended_at - last.ended_at > CLOSED_AFTER
            if not episode.runs:
                used = any(old.value_of(one.parameter) == advised.new for old in before)
            if episode.carriers or gone:
                yield episode
                episode = Episode(back=bool(episode.carriers))
            episode.runs.append(run)
            row = []
        elif not episode.runs:
            before = [*before, run][-_USED_BEFORE:]
        elif _carries(run, episode.runs[-1], one):
            row.append(run)
            if not used or len(row) >= COMPARED:
                episode.carriers[:] = [*episode.carriers, *row]
                row, used = [], False
    yield episode


def _carries(run: AuditSummary, before: AuditSummary, one: Advised) -> bool:
    """Whether it ran with the value; of a number also with one nearer to it than to the old one.

    Where the advice leaves the value open, as `s3://<bucket>/<prefix>`, any value is it.
    """
    own, old = run.value_of(one.parameter), before.value_of(one.parameter)
    if not one.parameter or own is None or own == old:
        return False
    advised = before.advised_like(one)
    if advised is None:
        return False
    numbers = [_number(value) for value in (own, advised.new, old)]
    if None in numbers:
        return own == advised.new or "<" in advised.new
    at, to, since = (number or Decimal(0) for number in numbers)
    return abs(at - to) <= abs(at - since)


def _number(value: str | None) -> Decimal | None:
    return Decimal(value) if value and value.replace(".", "", 1).isdigit() else None
