"""The report of an account: the headline, sums, a row for every job, the dearest jobs in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Sums
from sageaudit.output.html.bars import BarRow, Piece, bar_table, waterfall
from sageaudit.output.html.contents import AccountReport, JobReport
from sageaudit.output.html.job import short_job
from sageaudit.output.html.job_table import COLUMNS, family_name, job_table, owner_name, type_name
from sageaudit.output.html.markup import Child, Markup, join, tag
from sageaudit.output.html.page import section, tiles
from sageaudit.output.html.spend_chart import spend_over_time
from sageaudit.output.text.account_words import (
    account_headline,
    avoidable_of,
    judged_words,
    lost_of,
    period_words,
    price_dates,
    spend_of,
    summed,
)
from sageaudit.output.text.idle_capacity import IDLE_LABEL
from sageaudit.output.text.money import cents, rough_low, roughly, share
from sageaudit.output.text.words import counted

_NAMES = 15
"""Rows of a table of sums; the others are one row, so that it adds up."""
_STEPS = 8
_BEGIN, _CENT = 3, Decimal("0.01")
_NO_SUM = "not in the totals"
_DETAILS = (
    "The most avoidable and lost dollars first, then the highest cost. Beside each name: the"
    " avoidable and lost dollars, of the cost."
)
_OF_RULES = "Each dollar is counted once: where fixes overlap, by the rule that comes first."


def account_body(report: AccountReport) -> Markup:
    """The main part of an account's page."""
    total = report.total
    return join(
        [
            _lead(report),
            tiles(list(_figures(total))),
            _where_to_begin(report),
            _doubts(report),
            section(
                "Spend over time",
                spend_over_time(report.days, report.since, report.until) if total.jobs else None,
            ),
            section("From spend to what was needed", _waterfall(total)),
            section("By rule", _rules(total), note=_OF_RULES),
            tag(
                "div",
                _named("By family", "Family", _by(family_name, report.families)),
                _named("By owner", "Owner", _by(owner_name, report.owners)),
                _named("By instance type", "Instance type", _by(type_name, report.types)),
                class_="columns",
            ),
            section("Every job", job_table(report), id_="jobs", note=_rollups(report)),
            section(
                "The most wasteful jobs in detail",
                _details(report),
                note=_DETAILS,
            ),
        ]
    )


def account_title(report: AccountReport) -> str:
    """The page's title: the news, then the period."""
    return f"{account_headline(report.total)} - {period_words(report.since, report.until)}"


def _lead(report: AccountReport) -> Markup:
    dates = price_dates([one.document for one in report.details if one])
    facts = [judged_words(report.total), "days in UTC, by the end of the job", dates]
    return join(
        [
            tag("p", report.scope, class_="eyebrow"),
            tag("h1", f"SageMaker jobs, {period_words(report.since, report.until)}"),
            tag("p", f"{account_headline(report.total)}.", class_="news"),
            tag("p", " · ".join(fact for fact in facts if fact), class_="note"),
        ]
    )


def _figures(total: Sums) -> Iterator[tuple[str, str, str, str]]:
    def part(amount: Decimal) -> str:
        return f"{share(amount, total.total_usd)} of spend" if amount and total.total_usd else ""

    yield "spent", "Spend", spend_of(total), counted(total.jobs, "job")
    yield "avoidable", "Avoidable", avoidable_of(total), part(total.avoidable_usd)
    more = total.lost_up_to_usd - total.lost_usd
    upper = f"and up to {cents(more)} more" if more > 0 else part(total.lost_usd)
    yield "lost", "Lost", lost_of(total), upper
    yield "possible", "Possible", rough_low(total.possible_usd), f"worth a trial; {_NO_SUM}"
    counted_idle = roughly(total.idle_counted_usd)
    said = f"{counted_idle} of it is counted already" if total.idle_counted_usd else _NO_SUM
    yield "idle", IDLE_LABEL, roughly(total.idle_usd), said


def _where_to_begin(report: AccountReport) -> Markup | None:
    """The families that wasted most, each with the job in which to look first."""
    first: dict[str | None, tuple[int, Head]] = {}
    for number, (head, detail) in enumerate(zip(report.heads, report.details, strict=False)):
        if detail and head.top_rule and not head.rollup:
            first.setdefault(head.family, (number, head))
    ranked = sorted(report.families.items(), key=lambda row: -row[1].waste_usd)
    lines = [
        tag(
            "li",
            tag("bdi", family_name(name)),
            f": {_wasted(sums)} in {counted(sums.jobs, 'job')}; look at ",
            tag("a", tag("bdi", first[name][1].name), href=f"#j{first[name][0]}"),
            f" ({first[name][1].top_rule})",
        )
        for name, sums in ranked
        if sums.waste_usd >= _CENT and name in first
    ]
    if not lines:
        return None
    return tag("div", "Begin with these families:", tag("ol", lines[:_BEGIN]), class_="begin")


def _wasted(sums: Sums) -> str:
    """`$387.82 avoidable and $107.89 lost`; what is 0 is left out."""
    named = ((sums.avoidable_usd, "avoidable"), (sums.lost_usd, "lost"))
    return " and ".join(f"{summed(usd, sums.estimated)} {word}" for usd, word in named if usd)


def _doubts(report: AccountReport) -> Markup | None:
    """Why the sums may be less than the whole, one sentence each."""
    total = report.total
    old = sum(head.sums is None for head in report.heads)
    said = [
        (total.unpriced, "has", "have", "no known cost: they are not in the sums"),
        (total.incomplete, "lacks", "lack", "a part of the bill: sums are at least this much"),
        (total.estimated, "is", "are", "billed at an estimated rate: sums are estimates"),
        (total.unauditable, "was", "were", "deleted or could not be described: not in the sums"),
        (old, "was", "were", "audited before there were daily sums: not in the sums"),
    ]
    lines = [
        tag("li", f"{counted(count, 'job')} {one if count == 1 else many} {rest}.")
        for count, one, many, rest in said
        if count
    ]
    return tag("ul", lines, class_="doubts") if lines else None


def _waterfall(total: Sums) -> Markup | None:
    """By rule, the largest first; what rules beyond the first take is one step."""
    ranked = sorted(
        ((name, rule.avoidable_usd, rule.lost_usd) for name, rule in total.rules.items()),
        key=lambda row: (-(row[1] + row[2]), row[0]),
    )
    ranked = [row for row in ranked if row[1] + row[2]]
    if not ranked:
        return None
    steps: list[tuple[Child, Decimal, str]] = [
        (name, avoidable + lost, "avoidable" if avoidable >= lost else "lost")
        for name, avoidable, lost in ranked[:_STEPS]
    ]
    others = total.waste_usd - sum((usd_ for _, usd_, _ in steps), Decimal(0))
    if others:
        steps.append(("other rules", others, "avoidable"))
    return waterfall(
        "From spend to what was needed",
        ("Spend", total.total_usd),
        steps,
        "Needed, or not judged",
    )


def _rules(total: Sums) -> Markup | None:
    rows = [
        BarRow(
            _pick("Findings", name),
            (Piece(rule.lost_usd, "lost"), Piece(rule.avoidable_usd, "avoidable")),
            (
                summed(rule.avoidable_usd, total.estimated),
                summed(rule.lost_usd, total.estimated),
                rough_low(rule.possible_usd),
                f"{rule.findings:,}",
            ),
        )
        for name, rule in ranked_rules(total)
    ]
    if not rows:
        return None
    titles = ("Rule", "Avoidable", "Lost", "Possible", "Findings")
    return bar_table("By rule", titles, rows)


def _named(title: str, word: str, sums: Mapping[str, Sums]) -> Markup | None:
    """Sums by name, the most avoidable and lost dollars first, then the highest spend."""
    ranked = sorted(sums.items(), key=lambda row: (-row[1].waste_usd, -row[1].total_usd, row[0]))
    shown, rest = ranked[:_NAMES], ranked[_NAMES:]
    rows = [_sums_row(_pick(word, name), one) for name, one in shown]
    if rest:
        rows.append(_sums_row(f"{len(rest):,} more", sum((one for _, one in rest), Sums())))
    titles = (word, "Spend", "Avoidable", "Lost", "Jobs")
    return section(title, bar_table(title, titles, rows) if rows else None)


def _sums_row(name: Child, sums: Sums) -> BarRow:
    wasted = min(sums.waste_usd, sums.total_usd)
    lost = min(sums.lost_usd, wasted)
    pieces = (
        Piece(lost, "lost"),
        Piece(wasted - lost, "avoidable"),
        Piece(sums.total_usd - wasted, "spent"),
    )
    words = (spend_of(sums), avoidable_of(sums), lost_of(sums), f"{sums.jobs:,}")
    return BarRow(name, pieces, words)


def _by(said: Callable[[str | None], str], sums: Mapping[str | None, Sums]) -> dict[str, Sums]:
    """The sums by what a name is called in the table of jobs."""
    named: dict[str, Sums] = {}
    for name, one in sums.items():
        named[said(name)] = named.get(said(name), Sums()) + one
    return named


def _pick(column: str, name: str) -> Markup:
    """A name that, pressed, leaves only its jobs in the table; plain text without the script."""
    return tag("span", name, class_="pick", data_c=COLUMNS.index(column))


def _rollups(report: AccountReport) -> str | None:
    """How many rows are of tuning jobs: the headline counts their training jobs alone."""
    count = sum(head.rollup for head in report.heads)
    if not count:
        return None
    rows = "One row is of a tuning job" if count == 1 else f"{count:,} rows are of tuning jobs"
    return (
        f"{rows}: what it cost is in the rows of its training jobs."
        if count == 1
        else (f"{rows}: what they cost is in the rows of their training jobs.")
    )


def _details(report: AccountReport) -> Markup | None:
    shown = zip(report.heads, report.details, strict=False)
    return join(
        _detail(number, head, detail) for number, (head, detail) in enumerate(shown) if detail
    )


def _detail(number: int, head: Head, detail: JobReport) -> Markup:
    news = cents((head.avoidable_usd or Decimal(0)) + (head.lost_usd or Decimal(0)))
    cost = "" if head.total_usd is None else f" of {cents(head.total_usd)}"
    summary = tag(
        "summary",
        tag("h3", tag("bdi", head.name)),
        tag("span", f"{news}{cost}", class_="n"),
    )
    return tag("details", summary, short_job(detail), id=f"j{number}", class_="job")
