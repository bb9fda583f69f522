"""What families were advised: their runs are read one family after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from sageaudit.domain.advice.advice import Advice, Decision, advices_of, dearest_first
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope
from sageaudit.queries.columns import fitting
from sageaudit.queries.lists import Lists, listed
from sageaudit.queries.question import Question

Advised = tuple[AuditSummary, list[Advice]]
"""The newest run of a family, and the family's advices."""


def by_family(
    lists: Lists,
    question: Question,
    decisions: Sequence[Decision],
    now: datetime,
    *,
    most_runs: int | None = None,
) -> Iterator[Advised]:
    """The families of the question's account, region and family.

    `most_runs`: of a family, the newest; None for all of the window.
    """
    rows = lists.sums(
        Scope.FAMILY, account=question.account, region=question.region, name=question.family
    )
    for account, region, family in sorted({(row.account, row.region, row.name) for row in rows}):
        of_family = lists.family(account, region, family or "", lists.window.until)
        if runs := [*islice(of_family, most_runs)]:
            yield listed(runs[0]), advices_of(runs, decisions, now)


def of_question(found: Iterator[Advised] | list[Advised], question: Question) -> Iterator[Advice]:
    """The advices of the families whose newest run fits."""
    fits = fitting(question)
    return (one for newest, advices in found if fits(newest) for one in advices)


def advices(
    lists: Lists, question: Question, decisions: Sequence[Decision], now: datetime
) -> list[Advice]:
    """Those of a question, what counts first, the most dollars first."""
    found = by_family(lists, question, decisions, now)
    return dearest_first(of_question(found, question), now)
