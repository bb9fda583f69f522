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
from sageaudit.domain.advice.advice import (
    MEASURED,
    NOT_COMPARABLE,
    WITHDRAWN,
    FamilyRecommendation,
    State,
)
from sageaudit.domain.advice.totals import (
    LOOK_BACK_DAYS,
    MONTH_DAYS,
    SAGEAUDIT_JOB_USD,
    SAGEAUDIT_MONTH_USD,
)
from sageaudit.domain.audit.sums import Scope
from sageaudit.output.text.money import Figure, sum_figures
from sageaudit.queries.answer import recommendations
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.names import resolve
from sageaudit.queries.question import Question
from sageaudit.queries.window import parse_window
from sageaudit.structs import replace

DEFAULT_SINCE = f"{LOOK_BACK_DAYS}d"
_ZERO = Decimal(0)


class RecommendationFilters(Struct, frozen=True):
    """Which advices to list. `since`: by the runs from then on."""

    since: str = DEFAULT_SINCE
    family: str | None = None
    owner: str | None = None
    account: str | None = None
    region: str | None = None

    @property
    def days_text(self) -> str:
        """The days whose runs are read, in words."""
        return asking.period_text(parse_window(self.since, None, asking.utc_now()))

    def find_recommendations(
        self, history_source: HistorySource, now: datetime
    ) -> list[FamilyRecommendation]:
        """Those that fit, what is counted first, the most dollars first. Raises BadUsage."""
        window_of_runs = parse_window(self.since, None, now)
        question = Question.with_filters(window_of_runs, account=self.account, family=self.family)
        found = recommendations(
            *resolve(history_source.history, question), history_source.decisions.decisions(), now
        )
        return [one for one in found if self._fits(one)]

    def own_cost_usd(self, opened: HistorySource, now: datetime) -> Decimal | None:
        """What a deployment cost from its first job of these days on; None of a file."""
        days = parse_window(self.since, None, now)
        rows = (
            [*HistoryLists(opened.history, days).daily_sums(Scope.ACCOUNT)]
            if opened.session
            else []
        )
        if not rows:
            return None
        count = (now.date() - min(row.day for row in rows)).days + 1
        jobs = sum(row.sums.jobs for row in rows)
        return SAGEAUDIT_MONTH_USD * count / MONTH_DAYS + SAGEAUDIT_JOB_USD * jobs

    def _fits(self, recommendation: FamilyRecommendation) -> bool:
        filters = (
            (self.owner, recommendation.owner),
            (self.account, recommendation.account),
            (self.region, recommendation.region),
        )
        return all(wanted is None or wanted == value for wanted, value in filters)


FILTERS = options.option_group(
    "filters",
    RecommendationFilters,
    asking.since_option(DEFAULT_SINCE),
    click.option("--family", help="Recommendations for this family; its last part is enough."),
    click.option("--owner", help="Recommendations for families whose newest job has this owner."),
    asking.ACCOUNT_OPTION,
    asking.REGION_OPTION,
)


def change_text(recommendation: FamilyRecommendation) -> str:
    """The parameter to set; the rule where there is none."""
    return (
        f"{recommendation.parameter} = {recommendation.new}"
        if recommendation.parameter
        else recommendation.rule
    )


def _run(recommendation: FamilyRecommendation) -> Figure:
    return Figure(recommendation.amount)


def _month(recommendation: FamilyRecommendation) -> Figure:
    return sum_figures(map(Figure, recommendation.recent_amounts(asking.utc_now(), MONTH_DAYS)))


def _total(recommendation: FamilyRecommendation) -> Figure:
    return sum_figures(map(Figure, recommendation.all_amounts))


def _reason(recommendation: FamilyRecommendation) -> str | None:
    return recommendation.decision.reason if recommendation.decision else recommendation.exempt


def _silenced_by(recommendation: FamilyRecommendation) -> str | None:
    """How it is silenced: accepted, snoozed or exempt; None of any other."""
    return recommendation.silence.label if recommendation.silence else None


def _decision_field(name: str) -> Callable[[FamilyRecommendation], object]:
    """A field of what somebody decided; None where nobody has."""
    return lambda recommendation: (
        getattr(recommendation.decision, name) if recommendation.decision else None
    )


def _comparison_field(name: str) -> Callable[[FamilyRecommendation], Any]:
    """A field of the runs before and after it was taken; None where it is not claimed."""
    return lambda recommendation: (
        getattr(recommendation.comparison, name) if recommendation.comparison else None
    )


_predicted_usd = _comparison_field("all_predicted_usd")
_measured_usd = _comparison_field("all_saved_usd")


def _measured_text(recommendation: FamilyRecommendation) -> Figure:
    return Figure(_measured_usd(recommendation), absent="-")


def _outcome(recommendation: FamilyRecommendation) -> str | None:
    """What came of it, by the bills; `ended` of what was measured until the change was undone."""
    is_ended = recommendation.state is State.CLOSED and recommendation.outcome == MEASURED
    return ENDED if is_ended else recommendation.outcome


_FIELDS = (
    Field("id"),
    Field("state"),
    Field("silenced", get_value=_silenced_by),
    Field("outcome", get_value=_outcome),
    Field("family", min_width=20),
    Field("owner", min_width=12),
    Field("account"),
    Field("region"),
    Field("rule"),
    Field("parameter", min_width=20),
    Field("old"),
    Field("new"),
    Field("change", min_width=20, get_value=change_text),
    Field("severity"),
    Field("amount_kind"),
    Field("amount", "usd", "A run", _run),
    Field("month", "usd", "30 days", _month, get_value=lambda row: _month(row).usd),
    Field("total", "usd", "So far", _total, get_value=lambda row: _total(row).usd),
    Field("runs", "count"),
    Field("appearances", "count"),
    Field("first_at", "time", "First (UTC)"),
    Field("last_at", "time", "Last (UTC)"),
    Field("by", get_value=_decision_field("by")),
    Field("until", "day", get_value=_decision_field("until")),
    Field("reason", min_width=12, is_sentence=True, get_value=_reason),
    Field("runs_since", "count", "Runs since", get_value=_comparison_field("runs")),
    Field("before_usd", "usd", "Before", get_value=_comparison_field("before_usd")),
    Field("after_usd", "usd", "After", get_value=_comparison_field("after_usd")),
    Field("predicted_usd", "usd", "Predicted", get_value=_predicted_usd),
    Field("measured_usd", "usd", "Measured", _measured_text, get_value=_measured_usd),
    Field("evidence", min_width=20, is_sentence=True, get_value=_comparison_field("evidence")),
)
RECOMMENDATIONS = ListLayout(
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
_PENDING = State.FOLLOWED.value
"""The word for what was followed, and whose runs do not say enough yet."""


def followed_with_outcomes(found: Sequence[FamilyRecommendation]) -> list[FamilyRecommendation]:
    """The advices that were followed, each beside what was measured of earlier times: these are
    closed, as the change was undone, and what they saved until then stays.
    """
    rows: list[FamilyRecommendation] = []
    for recommendation in found:
        if recommendation.was_followed:
            rows.append(replace(recommendation, earlier_comparisons=()))
        rows += (
            replace(recommendation, state=State.CLOSED, comparison=part, earlier_comparisons=())
            for part in reversed(recommendation.earlier_comparisons)
        )
    return rows


class SavingSums(Struct, frozen=True):
    """Of one outcome: USD that were predicted, and measured, while the advice was followed."""

    recommendations: int
    predicted_usd: Decimal
    measured_usd: Decimal


def sum_savings(rows: Sequence[FamilyRecommendation]) -> dict[str, SavingSums]:
    """By the word for the outcome; what one of them has is never added to another."""
    words = (MEASURED, NOT_COMPARABLE, _PENDING, WITHDRAWN, ENDED)
    by_state = {
        word: [row for row in rows if (_outcome(row) or _PENDING) == word] for word in words
    }
    return {
        state: SavingSums(
            len(found),
            sum((_predicted_usd(row) or _ZERO for row in found), _ZERO),
            sum((_measured_usd(row) or _ZERO for row in found), _ZERO),
        )
        for state, found in by_state.items()
    }
