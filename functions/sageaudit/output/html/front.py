"""The first screen of an account's report: headline, what to change, amounts, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from sageaudit.domain.advice.advice import STATUS_LABELS, FamilyRecommendation
from sageaudit.domain.advice.comparison import Comparison
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.job.family import shared_name
from sageaudit.domain.money import CENT
from sageaudit.output.html.cards import change_cards
from sageaudit.output.html.contents import AccountReport, PreviousPeriod
from sageaudit.output.html.job_table import family_name
from sageaudit.output.html.legend import legend
from sageaudit.output.html.markup import Child, Markup, breakable_path, join, table, tag
from sageaudit.output.html.page import section, tiles
from sageaudit.output.text.amounts import sums_amounts
from sageaudit.output.text.headline import (
    account_headline,
    coverage_headline,
    judged_figure,
    judged_jobs,
    outside_text,
    part_of_judged,
    period_text,
)
from sageaudit.output.text.money import (
    ROUND_NEAREST,
    Figure,
    format_signed_usd,
    percent_change_text,
    percent_text,
    sum_figures,
)
from sageaudit.output.text.notes import price_dates, recommendations_text
from sageaudit.output.text.words import count_text

_MAX_CHANGES = 10
_MONTH_DAYS = 30
_ZERO = Decimal(0)
_NOT_IN_TOTALS = "not in the totals"
_RESULTS_TITLE = "Results of recommendations"
_MONTH_TITLE = "In 30 days"
_RESULTS_NOTE = (
    f"From all runs of the last 180 days. The column “{_MONTH_TITLE}” has what recommendations that"
    " nobody has followed yet would have saved. Predicted and measured: savings of all runs since"
    " the change, or until it was undone (Undone). Do not add the rows: some dollars are in several"
    " of them."
)
_MAX_COMPARED_DAYS = 366
"""A longer period is a whole history, which nobody expects to be compared. Our choice."""
_NOT_COMPARED_NOTE = "No comparison: the history does not cover the {days} before this period."


def first_screen(report: AccountReport) -> Markup:
    """Returns the first screen's sections."""
    doubts, results = _doubts(report.total), _recommendation_results(report)
    figures = [_tiles(report), doubts, legend()]
    return join([_lead(report), change_cards(report), figures, _changes(report), results])


def _lead(report: AccountReport) -> Markup:
    dates = price_dates([job.document for job in report.details.values()])
    unreadable_text = None
    if report.unreadable_items:
        items_text = count_text(report.unreadable_items, "stored item")
        unreadable_text = f"All figures lack {items_text} that cannot be read"
    notes = ["A job counts on the day (UTC) on which it ended", dates, unreadable_text]
    days_text = period_text(report.since, report.until)
    coverage = report.coverage
    coverage_text = ""
    if coverage:
        coverage_text = f"{coverage_headline(coverage)}. {outside_text(coverage)}"
    return join(
        [
            tag("p", f"{report.scope} · SageMaker jobs, {days_text}", class_="eyebrow"),
            tag("h1", f"{account_headline(report.total)}.", class_="headline"),
            tag("p", coverage_text) if coverage_text else None,
            tag("p", " · ".join(note for note in notes if note), class_="note"),
        ]
    )


def _tiles(report: AccountReport) -> Markup:
    total, previous = report.total, report.previous_period
    amounts = sums_amounts(total)
    previous_amounts = sums_amounts(previous.total) if previous else None
    judged_share_text = (
        f"{percent_text(total.judged_usd, total.total_usd)} of spend; " if total.total_usd else ""
    )
    idle_note = _NOT_IN_TOTALS
    if total.idle_counted_usd:
        counted = Figure(total.idle_counted_usd, rounding=ROUND_NEAREST)
        idle_note = f"{counted} of it is already in the totals"
    lost_share_text = ""
    if amounts.lost.upper_end and total.total_usd:
        lost_share_text = f"{percent_text(amounts.lost.upper_end, total.total_usd)} of spend"

    def note(text: str, name: str) -> str:
        previous_figure = getattr(previous_amounts, name) if previous_amounts else None
        change_text = _change_text(getattr(amounts, name), previous_figure)
        return "; ".join(filter(None, (text, change_text)))

    avoidable_share_text = part_of_judged(amounts.avoidable, total)
    jobs_text = count_text(total.jobs, "job")
    judged_text = str(judged_figure(total))
    has_more_possible = (amounts.possible.usd or _ZERO) > (amounts.waste.usd or _ZERO)
    possible_note = f"worth a trial; {_NOT_IN_TOTALS}"
    if has_more_possible:
        possible_note = f"{possible_note}; more than what is counted"
    return tiles(
        ("avoidable", "Avoidable", str(amounts.avoidable), note(avoidable_share_text, "avoidable")),
        ("spent", "Spend", str(amounts.spend), note(jobs_text, "spend")),
        ("judged", "Judged", judged_text, f"{judged_share_text}{judged_jobs(total)}"),
        ("lost", "Lost", str(amounts.lost), note(lost_share_text, "lost")),
        (
            "possible larger" if has_more_possible else "possible",
            "Possible",
            str(amounts.possible),
            possible_note,
        ),
        ("idle", "Idle capacity", str(amounts.idle), idle_note),
    )


def _change_text(current: Figure, previous: Figure | None) -> str | None:
    """Returns `$4.20 before (+12%)`, or None if the previous amount is unknown or under a cent."""
    if previous is None or (previous.usd or _ZERO) < CENT:
        return None
    change_percent_text = percent_change_text(current, previous, places=0) if current.usd else None
    return (
        f"{previous} before ({change_percent_text})"
        if change_percent_text
        else f"{previous} before"
    )


def _doubts(total: Sums) -> Markup | None:
    doubts = [
        (total.unpriced, "has", "have", "no known cost and {} not in the totals"),
        (total.incomplete, "lacks", "lack", "a part of the bill: totals are at least this much"),
        (total.upper_bounds, "has", "have", "no billable seconds: totals are at most this much"),
        (total.estimated, "is", "are", "billed at an estimated rate: totals are estimates"),
        (
            total.unauditable,
            "was",
            "were",
            "deleted or could not be described, and {} not in the totals",
        ),
    ]
    lines = [
        tag(
            "li",
            f"{count_text(count, 'job')} {singular if count == 1 else plural}"
            f" {text.format('is' if count == 1 else 'are')}.",
        )
        for count, singular, plural, text in doubts
        if count
    ]
    return tag("ul", lines, class_="doubts") if lines else None


def _changes(report: AccountReport) -> Markup | None:
    previous = report.previous_period
    if previous is None:
        days = (report.until - report.since).days + 1
        if not report.total.jobs or days > _MAX_COMPARED_DAYS:
            return None
        text = _NOT_COMPARED_NOTE.format(days=count_text(days, "day"))
        return tag("p", text, class_="note")
    rows = [[*_change_cells(report, change)] for change in previous.changes[:_MAX_CHANGES]]
    amount_titles = ("Spend", "Before", "Difference", "Jobs", "Jobs before")
    titles = ("Family", "Change", *amount_titles, "Recommendations")
    return section(
        "What changed",
        table(titles, rows, "What changed", numbers=amount_titles) if rows else None,
        note=_changes_note(previous),
    )


def _change_cells(report: AccountReport, change: ChangedFamily) -> Iterator[Child]:
    yield breakable_path(family_name(change.family))
    yield change.change
    yield str(sums_amounts(change.sums).spend)
    yield str(sums_amounts(change.previous_sums).spend)
    yield format_signed_usd(change.change_usd, change.qualifier)
    yield f"{change.sums.jobs:,}"
    yield f"{change.previous_sums.jobs:,}"
    yield recommendations_text(
        recommendation
        for recommendation in report.recommendations
        if shared_name(recommendation.family) == change.family
    )


def _changes_note(previous: PreviousPeriod) -> str:
    counts = Counter(family.change for family in previous.changes)
    counts_text = ", ".join(f"{count:,} {change}" for change, count in counts.most_common())
    days_text = period_text(previous.since, previous.until)
    changes_text = f"Families: {counts_text or 'no change'}."
    note = f"{changes_text} Compared with {days_text}, the same number of days before."
    if len(previous.changes) > _MAX_CHANGES:
        return f"{note} The {_MAX_CHANGES} largest changes:"
    return note


def _recommendation_results(report: AccountReport) -> Markup | None:
    rows: list[Sequence[Child]] = []
    for label in STATUS_LABELS:
        group = [
            recommendation
            for recommendation in report.recommendations
            if recommendation.status_label == label
        ]
        if group:
            cells = _result_cells(group, report.recommendations_at)
            rows.append([label.capitalize(), f"{len(group):,}", *cells])
    ended_comparisons = [
        comparison
        for recommendation in report.recommendations
        for comparison in recommendation.earlier_comparisons
    ]
    if ended_comparisons:
        rows.append(
            ["Undone", f"{len(ended_comparisons):,}", "-", *_measured_cells(ended_comparisons)]
        )
    titles = ("State", "Recommendations", _MONTH_TITLE, "Predicted", "Measured")
    if not rows:
        return None
    results = table(titles, rows, _RESULTS_TITLE, numbers=titles[1:])
    return section(_RESULTS_TITLE, results, note=_RESULTS_NOTE)


def _result_cells(recommendations: Sequence[FamilyRecommendation], at: datetime) -> Iterator[str]:
    """Yields the cells of one state's recommendations.

    The first cell sums recommendations that nobody has followed. The others sum followed ones.
    """
    not_followed = [
        recommendation
        for recommendation in recommendations
        if recommendation.comparison is None and recommendation.amount_kind is AmountKind.COUNTED
    ]
    yield _sum_of_known(
        sum_figures(map(Figure, recommendation.recent_amounts(at, _MONTH_DAYS))).usd
        for recommendation in not_followed
    )
    yield from _measured_cells(
        [
            recommendation.comparison
            for recommendation in recommendations
            if recommendation.comparison
        ]
    )


def _measured_cells(comparisons: Sequence[Comparison]) -> Iterator[str]:
    yield _sum_of_known(comparison.all_predicted_usd for comparison in comparisons)
    yield _sum_of_known(comparison.all_saved_usd for comparison in comparisons)


def _sum_of_known(amounts: Iterable[Decimal | None]) -> str:
    """Returns the sum of the known amounts, or "-" if none is known."""
    known_amounts = [usd for usd in amounts if usd is not None]
    return str(Figure(sum(known_amounts, _ZERO))) if known_amounts else "-"
