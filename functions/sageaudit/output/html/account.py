"""The report of an account: the headline, sums, a row for every job, the dearest jobs in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums, added
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.html.account import spend_over_time
from sageaudit.output.html.contents import AccountReport, JobReport, SumsBy
from sageaudit.output.html.front import first_screen
from sageaudit.output.html.job import short_job
from sageaudit.output.html.job_table import (
    family_name,
    job_table,
    job_words,
    owner_name,
    tag_value,
    type_name,
)
from sageaudit.output.html.markup import (
    BarRow,
    Child,
    Markup,
    Piece,
    bar_table,
    path,
    pieces_of,
    tag,
    waterfall,
)
from sageaudit.output.html.page import section, titled
from sageaudit.output.text.amounts import of_document, of_rule, of_sums
from sageaudit.output.text.headline import account_headline, period_words
from sageaudit.output.text.money import Figure

_NAMES = 15
"""Rows of a table of sums; the others are one row, so that it adds up."""
_STEPS = 8
_ZERO = Decimal(0)
_BEFORE = "Before"
_DETAILS = (
    "The most avoidable and lost dollars first, then the highest cost. Beside each name: the"
    " avoidable and lost dollars, of the cost."
)
_ROLLUPS = "What {} cost is in the rows of its {}: rows add up."
_OF_RULES = "Each dollar is counted once: where fixes overlap, by the rule that comes first."


def account_body(report: AccountReport) -> Iterator[Child]:
    """The main part of an account's page, in pieces."""
    total = report.total
    yield first_screen(report)
    if total.jobs:
        spend = spend_over_time(report.days, report.since, report.until)
        yield section("Spend over time", spend)
    yield section("From spend to what was needed", _waterfall(total))
    yield section("By rule", _rules(report), note=_OF_RULES)
    yield tag("div", map(_sums_by, report.by), class_="columns")
    if report.heads:
        yield titled("Every job", job_table(report), id_="jobs", note=_note(report))
    if report.details:
        details = (_detail(at, report.heads[at], job) for at, job in sorted(report.details.items()))
        yield titled("The most wasteful jobs in detail", details, note=_DETAILS)


def _note(report: AccountReport) -> str:
    """What to know of the rows of jobs."""
    sentences = []
    if report.left_out:
        sentences.append(
            f"The {job_words(report.heads)} with the most avoidable and lost dollars, then the"
            f" highest cost. {report.left_out:,} more are in the sums alone."
        )
    shown = {head.kind for head in report.heads if head.rollup}
    sentences += [
        _ROLLUPS.format(kind.row.with_article, kind.row.rollup.children)
        for kind in JobKind
        if kind.row.rollup and kind.value in shown
    ]
    return " ".join(sentences)


def account_title(report: AccountReport) -> str:
    """The page's title: the headline, then the period."""
    return f"{account_headline(report.total)} - {period_words(report.since, report.until)}"


def _waterfall(total: Sums) -> Markup | None:
    """By rule, the largest first; what rules beyond the first take is one step."""
    ranked = [(name, rule) for name, rule in ranked_rules(total) if rule.waste_usd]
    steps: list[tuple[Child, Figure, str]] = [
        (
            name,
            Figure(rule.waste_usd, estimated=bool(rule.estimated)),
            "avoidable" if rule.avoidable_usd >= rule.lost_usd else "lost",
        )
        for name, rule in ranked[:_STEPS]
    ]
    if others := total.waste_usd - sum((rule.waste_usd for _, rule in ranked[:_STEPS]), _ZERO):
        steps.append(("other rules", Figure(others, estimated=bool(total.estimated)), "avoidable"))
    spend = ("Spend", of_sums(total).spend)
    title = "From spend to what was needed"
    return waterfall(title, spend, steps, "Needed, or not judged") if steps else None


def _rules(report: AccountReport) -> Markup | None:
    total, before = report.total, report.before
    rows = []
    for name, rule in ranked_rules(total):
        avoidable, *others = map(str, of_rule(rule))
        cells = [avoidable, *others, f"{rule.findings:,}"]
        if before:
            then = before.total.rules.get(name, RuleSums())
            cells.insert(1, _before(of_rule(then)[0]))
        pieces = (Piece(rule.lost_usd, "lost"), Piece(rule.avoidable_usd, "avoidable"))
        rows.append(BarRow(_pick("Findings", name), pieces, cells))
    titles = ["Rule", "Avoidable", "Lost", "Possible", "Findings"]
    if before:
        titles.insert(2, _BEFORE)
    return bar_table("By rule", titles, rows) if rows else None


def _before(figure: Figure) -> Markup:
    return tag("span", str(figure), class_="dim")


def _sums_by(of: SumsBy) -> Markup | None:
    """Sums by name, the most avoidable and lost dollars first, then the highest spend."""
    sums, before = (
        _by(_NAMED.get(of.column, tag_value), one or {}) for one in (of.sums, of.before)
    )
    none = Sums()

    def order(name: str) -> tuple[Decimal, Decimal, str]:
        now = sums.get(name, none)
        return -now.waste_usd, -now.total_usd, name

    def row(name: Child, names: Sequence[str]) -> BarRow:
        now, then = (added([by.get(one, none) for one in names]) for by in (sums, before))
        cells: list[Child] = [*map(str, of_sums(now)[:3]), f"{now.jobs:,}"]
        if of.before is not None:
            cells.insert(1, _before(of_sums(then).spend))
        return BarRow(name, pieces_of(now) if len(names) == 1 else (), cells)

    known = {name for by in (sums, before) for name, one in by.items() if one != none}
    names = sorted(known, key=order)
    rows = [row(_pick(of.column, name), [name]) for name in names[:_NAMES]]
    if rest := names[_NAMES:]:
        rows.append(row(f"{len(rest):,} more", rest))
    titles = [of.column, "Spend", "Avoidable", "Lost", "Jobs"]
    if of.before is not None:
        titles.insert(2, _BEFORE)
    title = f"By {of.column.lower()}"
    return section(title, bar_table(title, titles, rows) if rows else None)


_NAMED: dict[str, Callable[[str | None], str]] = {
    "Family": family_name,
    "Owner": owner_name,
    "Instance type": type_name,
}
"""What a value is called in the table of jobs; any other column's as that of a cost tag."""


def _by(named_as: Callable[[str | None], str], sums: Mapping[str | None, Sums]) -> dict[str, Sums]:
    """The sums by what a name is called in the table of jobs."""
    named: dict[str, list[Sums]] = {}
    for name, one in sums.items():
        named.setdefault(named_as(name), []).append(one)
    return {name: added(parts) for name, parts in named.items()}


def _pick(column: str, name: str) -> Markup:
    """A name that, pressed, leaves only its jobs in the table; plain text without the script."""
    return tag("span", path(name), class_="pick", data_c=column)


def _detail(number: int, head: AuditSummary, detail: JobReport) -> Markup:
    found = of_document(detail.document)
    cost = "" if found.spend.usd is None else f" of {found.spend}"
    summary = tag(
        "summary", tag("h3", tag("bdi", head.job)), tag("span", f"{found.waste}{cost}", class_="n")
    )
    return tag("details", summary, short_job(detail), id=f"j{number}", class_="job")
