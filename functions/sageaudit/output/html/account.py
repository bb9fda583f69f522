"""The report of an account: the headline, sums, a row for every job, the dearest jobs in detail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Sums
from sageaudit.output.html.contents import AccountReport, JobReport
from sageaudit.output.html.figure import BarRow, Piece, bar_table, pieces_of, waterfall
from sageaudit.output.html.job import short_job
from sageaudit.output.html.job_table import COLUMNS, family_name, job_table, owner_name, type_name
from sageaudit.output.html.markup import Child, Markup, join, tag
from sageaudit.output.html.page import section, tiles
from sageaudit.output.html.spend_chart import spend_over_time
from sageaudit.output.text.amounts import of_document, of_rule, of_sums
from sageaudit.output.text.headline import (
    account_headline,
    judged_words,
    part_of_judged,
    period_words,
)
from sageaudit.output.text.money import NEAREST, Figure, share
from sageaudit.output.text.notes import price_dates
from sageaudit.output.text.words import counted

_NAMES = 15
"""Rows of a table of sums; the others are one row, so that it adds up."""
_STEPS = 8
_BEGIN = 3
_ZERO, _CENT = Decimal(0), Decimal("0.01")
_NO_SUM = "not in the totals"
_DETAILS = (
    "The most avoidable and lost dollars first, then the highest cost. Beside each name: the"
    " avoidable and lost dollars, of the cost."
)
_ROLLUPS = "What a tuning job cost is in the rows of its training jobs: rows add up."
_OF_RULES = "Each dollar is counted once: where fixes overlap, by the rule that comes first."


def account_body(report: AccountReport) -> Markup:
    """The main part of an account's page."""
    total = report.total
    shown = enumerate(zip(report.heads, report.details, strict=False))
    details = join(_detail(number, head, detail) for number, (head, detail) in shown if detail)
    return join(
        [
            _lead(report),
            _tiles(total),
            _where_to_begin(report),
            _doubts(total),
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
            section("Every job", job_table(report), id_="jobs", note=_note(report)),
            section("The most wasteful jobs in detail", details, note=_DETAILS),
        ]
    )


def _note(report: AccountReport) -> str:
    """What to know of the rows of jobs."""
    said = []
    if report.left_out:
        said.append(
            f"The {len(report.heads):,} jobs with the most avoidable and lost dollars, then the"
            f" highest cost. {report.left_out:,} more are in the sums alone."
        )
    if any(head.rollup for head in report.heads):
        said.append(_ROLLUPS)
    return " ".join(said)


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


def _tiles(total: Sums) -> Markup:
    found, idle = of_sums(total), _NO_SUM
    if total.idle_counted_usd:
        idle = f"{Figure(total.idle_counted_usd, rough=NEAREST)} of it is counted already"

    def part(figure: Figure) -> str:
        known = figure.most and total.total_usd
        return f"{share(figure.most or _ZERO, total.total_usd)} of spend" if known else ""

    parts = part_of_judged(found.avoidable, total), part(found.lost)
    jobs, trial = counted(total.jobs, "job"), f"worth a trial; {_NO_SUM}"
    return tiles("Spend", found, jobs, *parts, trial, idle)


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
    named = zip(of_sums(sums)[1:3], ("avoidable", "lost"), strict=True)
    return " and ".join(f"{figure} {word}" for figure, word in named if figure.most)


def _doubts(total: Sums) -> Markup | None:
    """Why the sums may be less than the whole, one sentence each."""
    said = [
        (total.unpriced, "has", "have", "no known cost: they are not in the sums"),
        (total.incomplete, "lacks", "lack", "a part of the bill: sums are at least this much"),
        (total.estimated, "is", "are", "billed at an estimated rate: sums are estimates"),
        (total.unauditable, "was", "were", "deleted or could not be described: not in the sums"),
    ]
    lines = [
        tag("li", f"{counted(count, 'job')} {one if count == 1 else many} {rest}.")
        for count, one, many, rest in said
        if count
    ]
    return tag("ul", lines, class_="doubts") if lines else None


def _waterfall(total: Sums) -> Markup | None:
    """By rule, the largest first; what rules beyond the first take is one step."""
    ranked = [(name, rule) for name, rule in ranked_rules(total) if rule.waste_usd]
    steps: list[tuple[Child, Decimal, str]] = [
        (name, rule.waste_usd, "avoidable" if rule.avoidable_usd >= rule.lost_usd else "lost")
        for name, rule in ranked[:_STEPS]
    ]
    if others := total.waste_usd - sum((usd for _, usd, _ in steps), _ZERO):
        steps.append(("other rules", others, "avoidable"))
    spend = ("Spend", of_sums(total).spend)
    title = "From spend to what was needed"
    return waterfall(title, spend, steps, "Needed, or not judged") if steps else None


def _rules(total: Sums) -> Markup | None:
    estimated = bool(total.estimated)
    rows = [
        BarRow(
            _pick("Findings", name),
            (Piece(rule.lost_usd, "lost"), Piece(rule.avoidable_usd, "avoidable")),
            (*map(str, of_rule(rule, estimated=estimated)), f"{rule.findings:,}"),
        )
        for name, rule in ranked_rules(total)
    ]
    titles = ("Rule", "Avoidable", "Lost", "Possible", "Findings")
    return bar_table("By rule", titles, rows) if rows else None


def _named(title: str, word: str, sums: Mapping[str, Sums]) -> Markup | None:
    """Sums by name, the most avoidable and lost dollars first, then the highest spend."""
    ranked = sorted(sums.items(), key=lambda row: (-row[1].waste_usd, -row[1].total_usd, row[0]))
    shown, rest = ranked[:_NAMES], ranked[_NAMES:]
    rows = [_sums_row(_pick(word, name), one) for name, one in shown]
    others = sum((one for _, one in rest), Sums())
    if others.jobs or others.total_usd or others.waste_usd:
        rows.append(_sums_row(f"{len(rest):,} more", others))
    titles = (word, "Spend", "Avoidable", "Lost", "Jobs")
    return section(title, bar_table(title, titles, rows) if rows else None)


def _sums_row(name: Child, sums: Sums) -> BarRow:
    return BarRow(name, pieces_of(sums), (*map(str, of_sums(sums)[:3]), f"{sums.jobs:,}"))


def _by(said: Callable[[str | None], str], sums: Mapping[str | None, Sums]) -> dict[str, Sums]:
    """The sums by what a name is called in the table of jobs."""
    named: dict[str, Sums] = {}
    for name, one in sums.items():
        named[said(name)] = named.get(said(name), Sums()) + one
    return named


def _pick(column: str, name: str) -> Markup:
    """A name that, pressed, leaves only its jobs in the table; plain text without the script."""
    return tag("span", name, class_="pick", data_c=COLUMNS.index(column))


def _detail(number: int, head: Head, detail: JobReport) -> Markup:
    found = of_document(detail.document)
    cost = "" if found.spend.usd is None else f" of {found.spend}"
    summary = tag(
        "summary",
        tag("h3", tag("bdi", head.name)),
        tag("span", f"{found.waste}{cost}", class_="n"),
    )
    return tag("details", summary, short_job(detail), id=f"j{number}", class_="job")
