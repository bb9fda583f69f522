"""The lists of recommendations: filters, fields, and sums of savings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import click
from msgspec import Struct

from sageaudit.adapters.history.opened import HistorySource
from sageaudit.cli import clock, options, query_options, query_output
from sageaudit.cli.completion import complete_names
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
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.sums import Scope
from sageaudit.output.text.card import clear_name, line_to_paste
from sageaudit.output.text.money import Figure, sum_figures
from sageaudit.output.text.notes import family_text
from sageaudit.output.text.words import count_text
from sageaudit.queries.answer import find_recommendations
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.names import resolve_question
from sageaudit.queries.question import Question
from sageaudit.queries.window import parse_window
from sageaudit.structs import replace

DEFAULT_SINCE = f"{LOOK_BACK_DAYS}d"
_ZERO = Decimal(0)


class RecommendationFilters(Struct, frozen=True):
    """The options that select recommendations, from the runs that ended since `since`."""

    since: str = DEFAULT_SINCE
    family: str | None = None
    owner: str | None = None
    account: str | None = None
    region: str | None = None

    @property
    def days_text(self) -> str:
        """The period whose runs are read, as text."""
        return query_output.period_text(parse_window(self.since, None, clock.utc_now()))

    def find_recommendations(
        self, source: HistorySource, now: datetime
    ) -> list[FamilyRecommendation]:
        """Returns the matching recommendations: counted ones first, then by dollars.

        Raises BadUsage.
        """
        window = parse_window(self.since, None, now)
        question = Question.with_filters(window, account=self.account, family=self.family)
        recommendations = find_recommendations(
            *resolve_question(source.history, question), source.decisions.decisions(), now
        )
        return [row for row in recommendations if self._is_match(row)]

    def own_cost_usd(self, source: HistorySource, now: datetime) -> Decimal | None:
        """Returns what a deployment cost since its first job in this period, in USD; None for a
        file.
        """
        window = parse_window(self.since, None, now)
        rows = (
            [*HistoryLists(source.history, window).daily_sums(Scope.ACCOUNT)]
            if source.session
            else []
        )
        if not rows:
            return None
        day_count = (now.date() - min(row.day for row in rows)).days + 1
        jobs = sum(row.sums.jobs for row in rows)
        return SAGEAUDIT_MONTH_USD * day_count / MONTH_DAYS + SAGEAUDIT_JOB_USD * jobs

    def _is_match(self, recommendation: FamilyRecommendation) -> bool:
        filters = (
            (self.owner, recommendation.owner),
            (self.account, recommendation.account),
            (self.region, recommendation.region),
        )
        return all(expected is None or expected == value for expected, value in filters)


ANY_STATE = "all"
"""The choice of recommendations in every state."""
DEFAULT_LIMIT = 20
"""The number of rows that lists of recommendations print."""
RECOMMENDATION_FILTER_OPTIONS = options.option_group(
    "filters",
    RecommendationFilters,
    query_options.since_option(DEFAULT_SINCE),
    click.option(
        "--family",
        help="Recommendations for this family; its last part is enough.",
        shell_complete=complete_names("family"),
    ),
    click.option(
        "--owner",
        help="Recommendations for families whose newest job has this owner.",
        shell_complete=complete_names("owner"),
    ),
    query_options.ACCOUNT_OPTION,
    query_options.REGION_OPTION,
)


def change_text(recommendation: FamilyRecommendation) -> str:
    """Returns the parameter to change with its new value; the rule if no parameter changes."""
    return (
        f"{recommendation.parameter} = {recommendation.new}"
        if recommendation.parameter
        else recommendation.rule
    )


def _change_cell(recommendation: FamilyRecommendation) -> str:
    # A placeholder such as `s3://<bucket>/<prefix>` does not say what the change is.
    if not recommendation.parameter or "<" in recommendation.new:
        return f"see {recommendation.rule}"
    return line_to_paste(clear_name(recommendation.parameter), recommendation.new)


def _run_figure(recommendation: FamilyRecommendation) -> Figure:
    return Figure(recommendation.amount)


def _month_figure(recommendation: FamilyRecommendation) -> Figure:
    return sum_figures(map(Figure, recommendation.recent_amounts(clock.utc_now(), MONTH_DAYS)))


def _month_cell(recommendation: FamilyRecommendation) -> str:
    return _amount_text(_month_figure(recommendation), recommendation.amount_kind)


def _amount_text(figure: Figure, amount_kind: AmountKind) -> str:
    # Amounts that are only possible are marked.
    is_marked = amount_kind is AmountKind.POSSIBLE and figure.usd is not None
    return f"maybe {str(figure).removeprefix('about ')}" if is_marked else str(figure)


def open_sums_lines(rows: Iterable[FamilyRecommendation]) -> Iterator[str]:
    """Yields the number of open rows with their counted dollars of 30 days, and the possible ones.

    No dollar is in two rows: the findings of a run share its bill.
    """
    open_rows = [row for row in rows if row.is_open]
    rows_by_kind = {
        kind: [row for row in open_rows if row.amount_kind is kind] for kind in AmountKind
    }
    counted, possible = (
        _amount_text(sum_figures(map(_month_figure, kind_rows)), kind)
        for kind, kind_rows in rows_by_kind.items()
    )
    if open_rows:
        yield f"{count_text(len(open_rows), 'open recommendation')}: {counted} in 30 days"
    if rows_by_kind[AmountKind.POSSIBLE]:
        yield f"Possible savings, not included: {possible}"


def _total_figure(recommendation: FamilyRecommendation) -> Figure:
    return sum_figures(map(Figure, recommendation.all_amounts))


def _reason(recommendation: FamilyRecommendation) -> str | None:
    return recommendation.decision.reason if recommendation.decision else recommendation.exempt


def _silenced_by(recommendation: FamilyRecommendation) -> str | None:
    return recommendation.silence.label if recommendation.silence else None


def _decision_field(name: str) -> Callable[[FamilyRecommendation], object]:
    return lambda recommendation: (
        getattr(recommendation.decision, name) if recommendation.decision else None
    )


def _comparison_field(name: str) -> Callable[[FamilyRecommendation], Any]:
    return lambda recommendation: (
        getattr(recommendation.comparison, name) if recommendation.comparison else None
    )


_predicted_usd = _comparison_field("all_predicted_usd")
_measured_usd = _comparison_field("all_saved_usd")


def _measured_text(recommendation: FamilyRecommendation) -> Figure:
    return Figure(_measured_usd(recommendation), absent="-")


def _outcome(recommendation: FamilyRecommendation) -> str | None:
    """Returns the outcome; UNDONE if savings were measured until the change was undone."""
    is_undone = recommendation.state is State.CLOSED and recommendation.outcome == MEASURED
    return UNDONE if is_undone else recommendation.outcome


UNDONE = "undone"
"""The outcome if the change was undone after its saving was measured."""
_CHANGE_WIDTH = 29
"""The width of `InstanceType = ml.g5.12xlarge`."""
_FIELDS = (
    Field("id"),
    Field("state"),
    Field("silenced", get_value=_silenced_by),
    Field("outcome", get_value=_outcome),
    Field("family", min_width=16, cut="start", format_cell=lambda row: family_text(row.family)),
    Field("owner", min_width=12),
    Field("account"),
    Field("region"),
    Field("rule"),
    Field("parameter", min_width=20),
    Field("old"),
    Field("new"),
    Field("change", min_width=_CHANGE_WIDTH, get_value=change_text, format_cell=_change_cell),
    Field("severity"),
    Field("amount_kind"),
    Field("amount", "usd", "Per run", _run_figure),
    Field("month", "usd", "In 30 days", _month_cell, get_value=lambda row: _month_figure(row).usd),
    Field("total", "usd", "So far", _total_figure, get_value=lambda row: _total_figure(row).usd),
    Field("runs", "count"),
    Field("appearances", "count"),
    Field("first_at", "time", "First (UTC)"),
    Field("last_at", "time", "Last (UTC)"),
    Field("by", get_value=_decision_field("by")),
    Field("until", "day", get_value=_decision_field("until")),
    Field("reason", min_width=12, cut="end", get_value=_reason),
    Field("runs_since", "count", "Runs since", get_value=_comparison_field("runs")),
    Field("before_usd", "usd", "Before", get_value=_comparison_field("before_usd")),
    Field("after_usd", "usd", "After", get_value=_comparison_field("after_usd")),
    Field("predicted_usd", "usd", "Predicted", get_value=_predicted_usd),
    Field("measured_usd", "usd", "Measured", _measured_text, get_value=_measured_usd),
    Field("evidence", min_width=20, cut="end", get_value=_comparison_field("evidence")),
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
    ("evidence", "runs_since", "id"),
)
_PENDING = State.FOLLOWED.value
"""The outcome of a followed recommendation that too few runs have measured yet."""


def followed_with_outcomes(
    recommendations: Sequence[FamilyRecommendation],
) -> list[FamilyRecommendation]:
    """Returns a row for each recommendation that was followed.

    If a followed change was undone, the time until then is a closed row of its own. That row has
    what was saved in this time.
    """
    rows: list[FamilyRecommendation] = []
    for recommendation in recommendations:
        if recommendation.was_followed:
            rows.append(replace(recommendation, earlier_comparisons=()))
        rows += (
            replace(
                recommendation, state=State.CLOSED, comparison=comparison, earlier_comparisons=()
            )
            for comparison in reversed(recommendation.earlier_comparisons)
        )
    return rows


class SavingSums(Struct, frozen=True):
    """The predicted and measured USD of one outcome, while the recommendations were followed."""

    recommendations: int
    predicted_usd: Decimal
    measured_usd: Decimal


def sum_savings(rows: Sequence[FamilyRecommendation]) -> dict[str, SavingSums]:
    """Returns the sums by outcome. Sums of different outcomes are never added."""
    outcomes = (MEASURED, NOT_COMPARABLE, _PENDING, WITHDRAWN, UNDONE)
    by_outcome = {
        outcome: [row for row in rows if (_outcome(row) or _PENDING) == outcome]
        for outcome in outcomes
    }
    return {
        outcome: SavingSums(
            len(recommendations),
            sum((_predicted_usd(row) or _ZERO for row in recommendations), _ZERO),
            sum((_measured_usd(row) or _ZERO for row in recommendations), _ZERO),
        )
        for outcome, recommendations in by_outcome.items()
    }
