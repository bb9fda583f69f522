"""What families were advised: their runs are read one family after the other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from sageaudit.domain.alert.advice import Advice, Decision, advices_of, dearest_first
from sageaudit.domain.audit.sums import Scope
from sageaudit.queries.columns import fits
from sageaudit.queries.lists import Lists
from sageaudit.queries.question import Question
from sageaudit.queries.rows import audit_row


def advices(
    lists: Lists,
    question: Question,
    decisions: Sequence[Decision],
    now: datetime,
    *,
    most_runs: int | None = None,
) -> list[Advice]:
    """Those of the families whose newest run fits, what counts first, the most dollars first.

    `most_runs`: of a family, the newest; None for all of the window.
    """
    rows = lists.sums(
        Scope.FAMILY, account=question.account, region=question.region, name=question.family
    )
    found: list[Advice] = []
    for account, region, family in sorted({(row.account, row.region, row.name) for row in rows}):
        of_family = lists.family(account, region, family or "", lists.window.until)
        runs = [*islice(of_family, most_runs)]
        if runs and fits(audit_row(runs[0]), question):
            found += advices_of(runs, decisions, now)
    return dearest_first(found, now)
