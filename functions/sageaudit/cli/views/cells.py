"""What the cells of lists say: each amount is a figure as in the audit's own view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.record import FindingRow
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.amounts import (
    COUNTED_IN_JOBS,
    UNKNOWN_AMOUNTS,
    Amounts,
    Uncertainty,
    make_amounts,
    rule_amounts,
    sums_doubts,
)
from sageaudit.output.text.money import (
    ROUND_DOWN,
    UNKNOWN,
    Figure,
    difference_text,
    percent_change_text,
)
from sageaudit.queries.changes import SpendChange
from sageaudit.queries.total import SumsRow
from sageaudit.structs import replace


def row_amounts(row: AuditSummary | SumsRow) -> Amounts:
    """The figures of a row."""
    doubts = _doubts(row) if isinstance(row, AuditSummary) else sums_doubts(row.sums)
    found = make_amounts(
        doubts,
        total_usd=row.total_usd,
        avoidable_usd=row.avoidable_usd,
        lost_usd=row.lost_usd,
        lost_up_to_usd=row.lost_up_to_usd,
        possible_usd=row.possible_usd,
        idle_usd=row.idle_usd,
    )
    if isinstance(row, AuditSummary):
        return found._replace(spend=COUNTED_IN_JOBS) if row.rollup else found
    return _with_rules(row, found) if row.has_rule_dollars else found


def _doubts(row: AuditSummary) -> Uncertainty:
    return Uncertainty(
        is_lower_bound=row.incomplete,
        is_upper_bound=row.upper_bound,
        estimated=row.estimated,
        nothing_judged=row.judged is Judged.NO,
        possible=row.possible_incomplete,
    )


def _with_rules(row: SumsRow, found: Amounts) -> Amounts:
    """With the dollars of the findings of rules, where the row knows them."""
    avoidable, lost, possible = rule_amounts(sum(row.sums.rules.values(), RuleSums()))
    return found._replace(
        avoidable=replace(avoidable, usd=row.avoidable_usd, absent=UNKNOWN),
        lost=replace(lost, usd=row.lost_usd),
        possible=replace(possible, usd=row.possible_usd),
    )


def figure_of(name: str) -> Callable[[Any], Figure]:
    """The figure of this name in `Amounts`."""
    return lambda row: getattr(row_amounts(row), name)


def saving_of(name: str, most: str = "") -> Callable[[FindingRow], Figure]:
    """A finding's dollars; "-" for one without any."""

    def figure(row: FindingRow) -> Figure:
        return Figure(
            getattr(row, name),
            getattr(row, most) if most else None,
            estimated=row.estimated,
            rounding=ROUND_DOWN if row.bucket is Bucket.POSSIBLE else None,
            absent="-" if row.bucket is Bucket.NONE else UNKNOWN,
        )

    return figure


def figure_before(name: str) -> Callable[[SumsRow], Figure]:
    """A figure of the days before."""
    return lambda row: getattr(row_amounts(row.before) if row.before else UNKNOWN_AMOUNTS, name)


def change_of(name: str) -> Callable[[SumsRow], str]:
    """`+12.5%`, "about" unless both are exact; dollars where the period before had none."""

    def cell(row: SumsRow) -> str:
        now, before = figure_of(name)(row), figure_before(name)(row)
        return (
            percent_change_text(now, before)
            or (now.upper_end and difference_text(now, before))
            or "-"
        )

    return cell


def projected_figure(row: SumsRow) -> Figure:
    """The spend of a period that lasts, as exactly as that of its days so far is known."""
    return replace(row_amounts(row).spend, usd=row.projected_usd)


def hour_rate(row: SumsRow) -> Figure:
    """What an hour of an instance cost, as exactly as the spend is known."""
    return replace(row_amounts(row).spend, usd=row.usd_per_hour)


def waste_percent(row: AuditSummary | SumsRow) -> str:
    """`12.5%`, `up to 81.8%`, `unknown`: of the bill, or of the judged spend."""
    waste, least = row_amounts(row).waste, row.waste_percent
    if least is None:
        return UNKNOWN
    base_usd = row.total_usd if isinstance(row, AuditSummary) else row.judged_usd
    most = 100 * (waste.upper_end or 0) / base_usd if base_usd else least
    low, high = (f"{percent:,.1f}%" for percent in (least, most))
    if low == high:
        return low
    return f"{low} to {high}" if least else f"up to {high}"


def jobs_words(row: SpendChange) -> str:
    """`12 to 15`; the jobs now where those before are not known."""
    return f"{row.jobs:,}" if row.jobs_before is None else f"{row.jobs_before:,} to {row.jobs:,}"


def difference_of(name: str) -> Callable[[SpendChange], str]:
    """A figure less that of the days before."""

    def cell(row: SpendChange) -> str:
        return difference_text(figure_of(name)(row), figure_before(name)(row)) or "-"

    return cell


def spend_change(row: SpendChange) -> str:
    """`+12.5%`, or `unknown`."""
    return percent_change_text(figure_of("spend")(row), figure_before("spend")(row)) or "unknown"


def period_label(row: SumsRow) -> str:
    """`2026-W46`, and whether it lasts."""
    if row.over:
        return row.period or ""
    only = row.days == 1 and row.first_day != row.last_day
    return f"{row.period} {'today only' if only else 'so far'}"
