"""The lists of advices: which of them, and their fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import click
from msgspec import Struct

from sageaudit.adapters.history.opened import HistorySource
from sageaudit.cli import asking, options
from sageaudit.cli.views.formats import Field, ListLayout
from sageaudit.domain.advice.advice import MEASURED, NOT_COMPARABLE, WITHDRAWN, Advice, State
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS, MONTH_DAYS, OWN_JOB_USD, OWN_MONTH_USD
from sageaudit.domain.audit.sums import Scope
from sageaudit.output.text.money import Figure, together
from sageaudit.queries.answer import advices
from sageaudit.queries.lists import Lists
from sageaudit.queries.names import resolve
from sageaudit.queries.question import Question
from sageaudit.queries.window import window
from sageaudit.structs import replace

SINCE = f"{LOOK_BACK_DAYS}d"
_ZERO = Decimal(0)


class AdviceFilters(Struct, frozen=True):
    """Which advices to list. `since`: by the runs from then on."""

    since: str = SINCE
    family: str | None = None
    owner: str | None = None
    account: str | None = None
    region: str | None = None

    @property
    def days(self) -> str:
        """The days whose runs are read, in words."""
        return asking.days_of(window(self.since, None, asking.now()))

    def advices(self, opened: HistorySource, now: datetime) -> list[Advice]:
        """Those that fit, what is counted first, the most dollars first. Raises BadUsage."""
        window_of_runs = window(self.since, None, now)
        question = Question.of(window_of_runs, account=self.account, family=self.family)
        found = advices(*resolve(opened.history, question), opened.decisions.decisions(), now)
        return [one for one in found if self._fits(one)]

    def own_cost_usd(self, opened: HistorySource, now: datetime) -> Decimal | None:
        """What a deployment cost from its first job of these days on; None of a file."""
        days = window(self.since, None, now)
        rows = [*Lists(opened.history, days).sums(Scope.ACCOUNT)] if opened.session else []
        if not rows:
            return None
        count = (now.date() - min(row.day for row in rows)).days + 1
        jobs = sum(row.sums.jobs for row in rows)
        return OWN_MONTH_USD * count / MONTH_DAYS + OWN_JOB_USD * jobs

    def _fits(self, advice: Advice) -> bool:
        filters = (
            (self.owner, advice.owner),
            (self.account, advice.account),
            (self.region, advice.region),
        )
        return all(wanted is None or wanted == value for wanted, value in filters)


FILTERS = options.together(
    "filters",
    AdviceFilters,
    asking.since(SINCE),
    click.option("--family", help="Advices to this family; its last part is enough."),
    click.option("--owner", help="Advices to families whose newest job has this owner."),
    asking.ACCOUNT,
    asking.REGION,
)


def change_of(advice: Advice) -> str:
    """The parameter to set; the rule where there is none."""
    return f"{advice.parameter} = {advice.new}" if advice.parameter else advice.rule


def _run(advice: Advice) -> Figure:
    return Figure(advice.amount)


def _month(advice: Advice) -> Figure:
    return together(map(Figure, advice.amounts_of_days(asking.now(), MONTH_DAYS)))


def _total(advice: Advice) -> Figure:
    return together(map(Figure, advice.amounts))


def _reason(advice: Advice) -> str | None:
    return advice.decision.reason if advice.decision else advice.exempt


def _silenced(advice: Advice) -> str | None:
    """How it is silenced: accepted, snoozed or exempt; None of any other."""
    return advice.silence.word if advice.silence else None


def _decided(name: str) -> Callable[[Advice], object]:
    """A field of what somebody decided; None where nobody has."""
    return lambda advice: getattr(advice.decision, name) if advice.decision else None


def _compared(name: str) -> Callable[[Advice], Any]:
    """A field of the runs before and after it was taken; None where it is not claimed."""
    return lambda advice: getattr(advice.comparison, name) if advice.comparison else None


_predicted = _compared("all_predicted_usd")
_measured = _compared("all_saved_usd")


def _claimed(advice: Advice) -> Figure:
    return Figure(_measured(advice), absent="-")


def _outcome(advice: Advice) -> str | None:
    """What came of it, by the bills; `ended` of what was measured until the change was undone."""
    is_ended = advice.state is State.CLOSED and advice.outcome == MEASURED
    return ENDED if is_ended else advice.outcome


_FIELDS = (
    Field("id"),
    Field("state"),
    Field("silenced", get=_silenced),
    Field("outcome", get=_outcome),
    Field("family", least=20),
    Field("owner", least=12),
    Field("account"),
    Field("region"),
    Field("rule"),
    Field("parameter", least=20),
    Field("old"),
    Field("new"),
    Field("change", least=20, get=change_of),
    Field("severity"),
    Field("worth"),
    Field("amount", "usd", "A run", _run),
    Field("month", "usd", "30 days", _month, get=lambda row: _month(row).usd),
    Field("total", "usd", "So far", _total, get=lambda row: _total(row).usd),
    Field("runs", "count"),
    Field("times", "count"),
    Field("first_at", "time", "First (UTC)"),
    Field("last_at", "time", "Last (UTC)"),
    Field("by", get=_decided("by")),
    Field("until", "day", get=_decided("until")),
    Field("reason", least=12, sentence=True, get=_reason),
    Field("runs_since", "count", "Runs since", get=_compared("runs")),
    Field("before_usd", "usd", "Before", get=_compared("before_usd")),
    Field("after_usd", "usd", "After", get=_compared("after_usd")),
    Field("predicted_usd", "usd", "Predicted", get=_predicted),
    Field("measured_usd", "usd", "Measured", _claimed, get=_measured),
    Field("evidence", least=20, sentence=True, get=_compared("evidence")),
)
ADVICES = ListLayout(
    _FIELDS,
    ("id", "state", "month", "runs", "family", "change", "owner"),
    ("owner", "runs"),
)
SAVINGS = ListLayout(
    _FIELDS,
    (
        "id",
        "outcome",
        "family",
        "change",
        "runs_since",
        "predicted_usd",
        "measured_usd",
        "evidence",
    ),
    ("evidence", "runs_since"),
)
ENDED = "ended"
_PENDING = "taken"
"""The word for what was followed, and whose runs do not say enough yet."""


def outcomes_of(found: Sequence[Advice]) -> list[Advice]:
    """The advices that were followed, each beside what was measured of earlier times: these are
    closed, as the change was undone, and what they saved until then stays.
    """
    rows: list[Advice] = []
    for advice in found:
        if advice.was_followed:
            rows.append(replace(advice, ended=()))
        rows += (
            replace(advice, state=State.CLOSED, comparison=part, ended=())
            for part in reversed(advice.ended)
        )
    return rows


class SavingSums(Struct, frozen=True):
    """Of one outcome: USD that were predicted, and measured, while the advice was followed."""

    advices: int
    predicted_usd: Decimal
    measured_usd: Decimal


def savings_of(rows: Sequence[Advice]) -> dict[str, SavingSums]:
    """By the word for the outcome; what one of them has is never added to another."""
    words = (MEASURED, NOT_COMPARABLE, _PENDING, WITHDRAWN, ENDED)
    by_state = {
        word: [row for row in rows if (_outcome(row) or _PENDING) == word] for word in words
    }
    return {
        state: SavingSums(
            len(found),
            sum((_predicted(row) or _ZERO for row in found), _ZERO),
            sum((_measured(row) or _ZERO for row in found), _ZERO),
        )
        for state, found in by_state.items()
    }
