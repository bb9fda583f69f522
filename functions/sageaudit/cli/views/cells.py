"""The text of list cells. Amounts look as in the audit's own view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.record import FindingRow
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.money import UNKNOWN
from sageaudit.output.text.amounts import (
    COUNTED_IN_JOBS,
    UNKNOWN_AMOUNTS,
    Amounts,
    Uncertainty,
    make_amounts,
    rule_amounts,
    sums_doubts,
)
from sageaudit.output.text.money import ROUND_DOWN, Figure, difference_text, percent_change_text
from sageaudit.queries.changes import SpendChange
from sageaudit.queries.total import SumsRow
from sageaudit.structs import replace


def row_amounts(row: AuditSummary | SumsRow) -> Amounts:
    """Returns the figures of a row."""
    uncertainty = _uncertainty(row) if isinstance(row, AuditSummary) else sums_doubts(row.sums)
    amounts = make_amounts(
        uncertainty,
        total_usd=row.total_usd,
        avoidable_usd=row.avoidable_usd,
        lost_usd=row.lost_usd,
        lost_up_to_usd=row.lost_up_to_usd,
        possible_usd=row.possible_usd,
        idle_usd=row.idle_usd,
    )
    if isinstance(row, AuditSummary):
        return amounts._replace(spend=COUNTED_IN_JOBS) if row.rollup else amounts
    return _with_rules(row, amounts) if row.has_rule_dollars else amounts


def _uncertainty(row: AuditSummary) -> Uncertainty:
    return Uncertainty(
        is_lower_bound=row.incomplete,
        is_upper_bound=row.upper_bound,
        estimated=row.estimated,
        nothing_judged=row.judged is Judged.NO,
        possible=row.possible_incomplete,
    )


def _with_rules(row: SumsRow, amounts: Amounts) -> Amounts:
    avoidable, lost, possible = rule_amounts(sum(row.sums.rules.values(), RuleSums()))
    return amounts._replace(
        avoidable=replace(avoidable, usd=row.avoidable_usd, absent=UNKNOWN),
        lost=replace(lost, usd=row.lost_usd),
        possible=replace(possible, usd=row.possible_usd),
    )


def amount_figure(name: str) -> Callable[[Any], Figure]:
    """Returns a function that makes a row's figure with this name in `Amounts`."""
    return lambda row: getattr(row_amounts(row), name)


def saving_figure(name: str, max_name: str = "") -> Callable[[FindingRow], Figure]:
    """Returns a function that makes a figure of the finding's field `name`; "-" without dollars.

    `max_name`: the field with the upper end of the range.
    """

    def figure(row: FindingRow) -> Figure:
        return Figure(
            getattr(row, name),
            getattr(row, max_name) if max_name else None,
            estimated=row.estimated,
            rounding=ROUND_DOWN if row.bucket is Bucket.POSSIBLE else None,
            absent="-" if row.bucket is Bucket.NONE else UNKNOWN,
        )

    return figure


def amount_figure_before(name: str) -> Callable[[SumsRow], Figure]:
    """Returns a function that makes the previous period's figure with this name in `Amounts`."""
    return lambda row: getattr(row_amounts(row.before) if row.before else UNKNOWN_AMOUNTS, name)


def percent_change(name: str) -> Callable[[SumsRow], str]:
    """Returns a function that makes the text of an amount's change, such as `+12.5%`.

    Inexact changes have "about". If the previous period had no dollars, the change is in dollars.
    """

    def cell(row: SumsRow) -> str:
        current, previous = amount_figure(name)(row), amount_figure_before(name)(row)
        return (
            percent_change_text(current, previous)
            or (current.upper_end and difference_text(current, previous))
            or "-"
        )

    return cell


def projected_figure(row: SumsRow) -> Figure:
    """Returns the projected spend of the current period, as exact as the spend so far."""
    return replace(row_amounts(row).spend, usd=row.projected_usd)


def usd_per_hour_figure(row: SumsRow) -> Figure:
    """Returns the cost of an instance hour, as exact as the spend."""
    return replace(row_amounts(row).spend, usd=row.usd_per_hour)


def waste_percent_text(row: AuditSummary | SumsRow) -> str:
    """Returns the waste in percent of the bill, or of a sum's judged spend: `12.5%`,
    `up to 81.8%`.
    """
    waste, min_percent = row_amounts(row).waste, row.waste_percent
    if min_percent is None:
        return UNKNOWN
    base_usd = row.total_usd if isinstance(row, AuditSummary) else row.judged_usd
    max_percent = 100 * (waste.upper_end or 0) / base_usd if base_usd else min_percent
    low_text, high_text = (f"{percent:,.1f}%" for percent in (min_percent, max_percent))
    if low_text == high_text:
        return low_text
    return f"{low_text} to {high_text}" if min_percent else f"up to {high_text}"


def jobs_text(row: SpendChange) -> str:
    """Returns the previous and current number of jobs, `12 to 15`. An unknown number
    is left out.
    """
    return f"{row.jobs:,}" if row.jobs_before is None else f"{row.jobs_before:,} to {row.jobs:,}"


def difference(name: str) -> Callable[[SpendChange], str]:
    """Returns a function that makes the text of an amount's change from the previous days."""

    def cell(row: SpendChange) -> str:
        return difference_text(amount_figure(name)(row), amount_figure_before(name)(row)) or "-"

    return cell


def spend_change_text(row: SpendChange) -> str:
    """Returns the change of the spend: `+12.5%`, or `unknown`."""
    return (
        percent_change_text(amount_figure("spend")(row), amount_figure_before("spend")(row))
        or "unknown"
    )


def period_label(row: SumsRow) -> str:
    """Returns a period's name, such as `2026-W46`. It says if the period is still in progress."""
    if row.over:
        return row.period or ""
    is_first_day = row.days == 1 and row.first_day != row.last_day
    return f"{row.period} {'today only' if is_first_day else 'so far'}"
