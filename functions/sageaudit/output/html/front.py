"""The first screen of an account's report: headline, what to change, figures, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from sageaudit.domain.advice.advice import STATUS_LABELS, FamilyRecommendation
from sageaudit.domain.advice.comparison import Comparison
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.sums import ChangedFamily, RuleSums, Sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.html.contents import AccountReport, PeriodBefore, TopChange
from sageaudit.output.html.job_table import family_name
from sageaudit.output.html.markup import Child, Markup, breakable_path, join, table, tag
from sageaudit.output.html.page import code_blocks, section, tiles
from sageaudit.output.text.amounts import rule_amounts, sums_amounts
from sageaudit.output.text.finding import make_finding_parts
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
    ROUND_DOWN,
    ROUND_NEAREST,
    Figure,
    format_signed_usd,
    percent_change_text,
    percent_text,
    sum_figures,
)
from sageaudit.output.text.notes import price_dates, recommendations_text
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

_CHANGES = 10
_MONTH_DAYS = 30
_MIN_DAYS = 7
"""One run, fewer days than a week, and less than a dollar say nothing about a month."""
_ZERO = Decimal(0)
_CENT = Decimal("0.01")
_NOT_IN_TOTALS = "not in the totals"
_RECOMMENDATIONS_NOTE = (
    "By the runs of 180 days. 30 days: the avoidable and lost dollars of what nobody followed yet."
    " Predicted and measured: of all runs since it was followed; until it was undone, if ended."
    " Each row stands alone."
)
_NOT_COMPARED_NOTE = "Nothing is compared: the history does not cover the {days} before."


def first_screen(report: AccountReport) -> Markup:
    """From the headline to what changed."""
    cards = tag("div", (_card(report, one) for one in report.top_changes), class_="cards")
    to_do = section("What to change first", cards, id_="to-do") if report.top_changes else None
    doubts, advised = _doubts(report.total), _recommendations_table(report)
    return join([_lead(report), to_do, _tiles(report), doubts, _changes(report), advised])


def _lead(report: AccountReport) -> Markup:
    dates = price_dates([one.document for one in report.details.values()])
    facts = ["Days in UTC, by the end of the job", dates]
    period = period_text(report.since, report.until)
    bill = report.coverage
    return join(
        [
            tag("p", f"{report.scope} · SageMaker jobs, {period}", class_="eyebrow"),
            tag("h1", f"{account_headline(report.total)}.", class_="headline"),
            tag("p", f"{coverage_headline(bill)}. {outside_text(bill)}") if bill else None,
            tag("p", " · ".join(fact for fact in facts if fact), class_="note"),
        ]
    )


def _card(report: AccountReport, change: TopChange) -> Markup:
    """What to change in a family: dollars, the fix to paste, the run to look at."""
    finding = make_finding_parts(change.fix.finding)
    ways = finding.alternatives[:1]
    kind = report.summaries[change.summary_index].kind
    sums = next(of.sums for of in report.by if of.column == "Family")[change.family]
    rule = sums.rules.get(finding.rule, RuleSums())
    runs = f"{finding.rule} in {rule.findings:,} of {count_text(sums.jobs, 'job')}; look at "
    return tag(
        "article",
        tag("h3", tag("bdi", breakable_path(family_name(change.family)))),
        tag("p", _amount_text(report, rule, Bucket(change.fix.finding["bucket"])), class_="amount"),
        tag("p", finding.summary),
        tag("div", (code_blocks(kind, way) for _, way in ways if way), class_="fix"),
        [tag("p", title) for title, way in ways if not way],
        tag("p", runs, tag("a", change.fix.job, href=f"#j{change.summary_index}"), class_="note"),
        class_="card",
    )


def _amount_text(report: AccountReport, rule: RuleSums, bucket: Bucket) -> Markup:
    """`about $220 a month, avoidable`; `$10.38, lost` of one run, or of less than a week."""
    avoidable, lost, possible = rule_amounts(rule)
    figure = sum_figures((avoidable, lost)) if bucket.is_counted else possible
    days = (report.until - max(report.since, min(report.days, default=report.since))).days + 1
    ends = (figure.usd or _ZERO, figure.upper_end or _ZERO)
    usd, most_usd = (end * _MONTH_DAYS / days for end in ends)
    known = rule.findings > 1 and days >= _MIN_DAYS and usd >= 1
    if known:
        figure = replace(figure, usd=usd, upper_usd=most_usd, rounding=ROUND_DOWN)
    word = bucket.value if bucket.is_counted else "worth a trial"
    return join([tag("strong", str(figure)), f"{' a month' if known else ''}, {word}"])


def _tiles(report: AccountReport) -> Markup:
    total, before = report.total, report.period_before
    found, then = sums_amounts(total), sums_amounts(before.total) if before else None
    judged = judged_figure(total)
    of_spend = (
        f"{percent_text(total.judged_usd, total.total_usd)} of spend; " if total.total_usd else ""
    )
    idle = _NOT_IN_TOTALS
    if total.idle_counted_usd:
        idle = f"{Figure(total.idle_counted_usd, rounding=ROUND_NEAREST)} of it is counted already"
    lost = ""
    if found.lost.upper_end and total.total_usd:
        lost = f"{percent_text(found.lost.upper_end, total.total_usd)} of spend"

    def note(words: str, name: str) -> str:
        earlier = getattr(then, name) if then else None
        return "; ".join(filter(None, (words, _change_text(getattr(found, name), earlier))))

    judged_part = part_of_judged(found.avoidable, total)
    return tiles(
        ("avoidable", "Avoidable", str(found.avoidable), note(judged_part, "avoidable")),
        ("spent", "Spend", str(found.spend), note(count_text(total.jobs, "job"), "spend")),
        ("judged", "Judged", str(judged), f"{of_spend}{judged_jobs(total)}"),
        ("lost", "Lost", str(found.lost), note(lost, "lost")),
        ("possible", "Possible", str(found.possible), f"worth a trial; {_NOT_IN_TOTALS}"),
        ("idle", "Idle capacity", str(found.idle), idle),
    )


def _change_text(now: Figure, before: Figure | None) -> str | None:
    """`$54,000.00 before (+12%)`."""
    if before is None or (before.usd or _ZERO) < _CENT:
        return None
    change = percent_change_text(now, before, places=0) if now.usd else None
    return f"{before} before ({change})" if change else f"{before} before"


def _doubts(total: Sums) -> Markup | None:
    """Why the sums may be less than the whole, one sentence each."""
    known = [
        (total.unpriced, "has", "have", "no known cost: they are not in the sums"),
        (total.incomplete, "lacks", "lack", "a part of the bill: sums are at least this much"),
        (total.upper_bounds, "has", "have", "no billable seconds: sums are at most this much"),
        (total.estimated, "is", "are", "billed at an estimated rate: sums are estimates"),
        (total.unauditable, "was", "were", "deleted or could not be described: not in the sums"),
    ]
    lines = [
        tag("li", f"{count_text(count, 'job')} {one if count == 1 else many} {rest}.")
        for count, one, many, rest in known
        if count
    ]
    return tag("ul", lines, class_="doubts") if lines else None


def _changes(report: AccountReport) -> Markup | None:
    """The families whose spend changed most, against as many days before."""
    before = report.period_before
    if before is None:
        days = count_text((report.until - report.since).days + 1, "day")
        return (
            tag("p", _NOT_COMPARED_NOTE.format(days=days), class_="note")
            if report.total.jobs
            else None
        )
    rows = [[*_change(report, one)] for one in before.changes[:_CHANGES]]
    titles = ("Family", "Change", "Spend", "Before", "Difference", "Jobs", "Jobs before", "Advice")
    numbers = titles[2:-1]
    return section(
        "What changed",
        table(titles, rows, "What changed", numbers=numbers) if rows else None,
        note=_changes_note(before),
    )


def _change(report: AccountReport, change: ChangedFamily) -> Iterator[Child]:
    families = next(one for one in report.by if one.column == "Family")
    now = families.sums.get(change.family, Sums())
    then = (families.before or {}).get(change.family, Sums())
    yield breakable_path(family_name(change.family))
    yield change.change
    yield str(sums_amounts(now).spend)
    yield str(sums_amounts(then).spend)
    yield format_signed_usd(change.change_usd, change.qualifier)
    yield f"{change.jobs:,}"
    yield f"{change.jobs_before:,}"
    yield recommendations_text(one for one in report.recommendations if one.family == change.family)


def _changes_note(before: PeriodBefore) -> str:
    """`Families: 2 increased, 1 new. Compared with 2026-09-23 to 2026-10-23.`"""
    counts = Counter(one.change for one in before.changes)
    words = ", ".join(f"{count:,} {word}" for word, count in counts.most_common())
    more = f" The {_CHANGES} largest changes:" if len(before.changes) > _CHANGES else ""
    days = period_text(before.since, before.until)
    return f"Families: {words or 'no change'}. Compared with {days}, as many days before.{more}"


def _recommendations_table(report: AccountReport) -> Markup | None:
    """What came of advices: a row of each state, whose dollars are in no sum with another's."""
    end = datetime.combine(report.until, time(), UTC) + timedelta(days=1)
    rows: list[Sequence[Child]] = []
    for word in STATUS_LABELS:
        found = [one for one in report.recommendations if one.status_label == word]
        if found:
            rows.append([word.capitalize(), f"{len(found):,}", *_outcome_cells(found, end)])
    if ended := [part for one in report.recommendations for part in one.earlier_comparisons]:
        rows.append(["Ended", f"{len(ended):,}", "-", *_measured_cells(ended)])
    titles = ("State", "Recommendations", "30 days", "Predicted", "Measured")
    if not rows:
        return None
    cells = table(titles, rows, "What came of advice", numbers=titles[1:])
    return section("What came of advice", cells, note=_RECOMMENDATIONS_NOTE)


def _outcome_cells(recommendations: Sequence[FamilyRecommendation], end: datetime) -> Iterator[str]:
    """Avoidable and lost dollars of 30 days of what nobody followed yet; what was followed has what
    it was to save, and what it did.
    """
    untaken = [
        one
        for one in recommendations
        if one.comparison is None and one.amount_kind is AmountKind.COUNTED
    ]
    yield _sum_of_known(
        sum_figures(map(Figure, one.recent_amounts(end, _MONTH_DAYS))).usd for one in untaken
    )
    yield from _measured_cells([one.comparison for one in recommendations if one.comparison])


def _measured_cells(parts: Sequence[Comparison]) -> Iterator[str]:
    yield _sum_of_known(part.all_predicted_usd for part in parts)
    yield _sum_of_known(part.all_saved_usd for part in parts)


def _sum_of_known(amounts: Iterable[Decimal | None]) -> str:
    """The sum of what is known; "-" where nothing is."""
    known = [usd for usd in amounts if usd is not None]
    return str(Figure(sum(known, _ZERO))) if known else "-"
