"""The report of an account: the headline, the spend over time, sums, a row for every job, and the
most expensive jobs in detail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums, add_sums
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.html.contents import AccountReport, JobReport, SumsBy
from sageaudit.output.html.front import first_screen
from sageaudit.output.html.job import short_job
from sageaudit.output.html.job_table import (
    family_name,
    job_count_text,
    job_table,
    owner_name,
    tag_value,
    type_name,
)
from sageaudit.output.html.markup import (
    BarPiece,
    BarRow,
    Child,
    Markup,
    bar_table,
    breakable_path,
    chart_with_axes,
    data_table,
    figure,
    spend_pieces,
    svg_chart,
    tag,
    waterfall,
    width_percent,
)
from sageaudit.output.html.page import section, section_pieces
from sageaudit.output.text.amounts import (
    COLUMN_TITLES,
    document_amounts,
    rule_amounts,
    sums_amounts,
)
from sageaudit.output.text.headline import account_headline, period_text
from sageaudit.output.text.money import Figure, format_usd
from sageaudit.output.text.words import count_text

_NAMES = 15
"""Rows of a table of sums; the others are one row, so that it adds up."""
_STEPS = 8
_ZERO = Decimal(0)
_BEFORE_TITLE = "Before"
_DETAILS = (
    "The most avoidable and lost dollars first, then the highest cost. Beside each name: the"
    " avoidable and lost dollars, of the cost."
)
_ROLLUPS = "What {} cost is in the rows of its {}: rows add up."
_RULES_NOTE = "Each dollar is counted once: where fixes overlap, by the rule that comes first."
Step = Literal["day", "week", "month"]
_HEIGHT = 190
"""Pixels of the chart of the spend."""
_MAX_DAYS = 45
_MAX_WEEKS = 53
_LABELS = 5
_NICE = tuple(map(Decimal, ("1", "1.5", "2", "3", "4", "5", "6", "8", "10")))


def account_body(report: AccountReport) -> Iterator[Child]:
    """The main part of an account's page, in pieces."""
    total = report.total
    yield first_screen(report)
    if total.jobs:
        spend = _spend_over_time(report.days, report.since, report.until)
        yield section("Spend over time", spend)
    yield section("From spend to what was needed", _waterfall(total))
    yield section("By rule", _rules(report), note=_RULES_NOTE)
    yield tag("div", map(_sums_by, report.by), class_="columns")
    if report.summaries:
        yield section_pieces("Every job", job_table(report), id_="jobs", note=_note(report))
    if report.details:
        details = (
            _detail(at, report.summaries[at], job) for at, job in sorted(report.details.items())
        )
        yield section_pieces("The most wasteful jobs in detail", details, note=_DETAILS)


def _note(report: AccountReport) -> str:
    """What to know of the rows of jobs."""
    sentences = []
    if report.left_out:
        sentences.append(
            f"The {job_count_text(report.summaries)} with the most avoidable and lost dollars,"
            " then the"
            f" highest cost. {report.left_out:,} more are in the sums alone."
        )
    shown = {head.kind for head in report.summaries if head.rollup}
    sentences += [
        _ROLLUPS.format(kind.spec.label_with_article, kind.spec.rollup.children_label)
        for kind in JobKind
        if kind.spec.rollup and kind.value in shown
    ]
    return " ".join(sentences)


def account_title(report: AccountReport) -> str:
    """The page's title: the headline, then the period."""
    return f"{account_headline(report.total)} - {period_text(report.since, report.until)}"


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
    spend = ("Spend", sums_amounts(total).spend)
    title = "From spend to what was needed"
    return waterfall(title, spend, steps, "Needed, or not judged") if steps else None


def _rules(report: AccountReport) -> Markup | None:
    total, before = report.total, report.period_before
    rows = []
    for name, rule in ranked_rules(total):
        avoidable, *others = map(str, rule_amounts(rule))
        cells = [avoidable, *others, f"{rule.findings:,}"]
        if before:
            then = before.total.rules.get(name, RuleSums())
            cells.insert(1, _before_cell(rule_amounts(then)[0]))
        pieces = (BarPiece(rule.lost_usd, "lost"), BarPiece(rule.avoidable_usd, "avoidable"))
        rows.append(BarRow(_pick("Findings", name), pieces, cells))
    titles = ["Rule", "Avoidable", "Lost", "Possible", "Findings"]
    if before:
        titles.insert(2, _BEFORE_TITLE)
    return bar_table("By rule", titles, rows) if rows else None


def _before_cell(figure: Figure) -> Markup:
    return tag("span", str(figure), class_="dim")


def _sums_by(sums_by: SumsBy) -> Markup | None:
    """Sums by name, the most avoidable and lost dollars first, then the highest spend."""
    sums, before = (
        _rename_keys(_DISPLAY_NAMES.get(sums_by.column, tag_value), one or {})
        for one in (sums_by.sums, sums_by.before)
    )
    none = Sums()

    def order(name: str) -> tuple[Decimal, Decimal, str]:
        now = sums.get(name, none)
        return -now.waste_usd, -now.total_usd, name

    def row(name: Child, names: Sequence[str]) -> BarRow:
        now, then = (add_sums([by.get(one, none) for one in names]) for by in (sums, before))
        cells: list[Child] = [*map(str, sums_amounts(now)[:3]), f"{now.jobs:,}"]
        if sums_by.before is not None:
            cells.insert(1, _before_cell(sums_amounts(then).spend))
        return BarRow(name, spend_pieces(now) if len(names) == 1 else (), cells)

    known = {name for by in (sums, before) for name, one in by.items() if one != none}
    names = sorted(known, key=order)
    rows = [row(_pick(sums_by.column, name), [name]) for name in names[:_NAMES]]
    if rest := names[_NAMES:]:
        rows.append(row(f"{len(rest):,} more", rest))
    titles = [sums_by.column, "Spend", "Avoidable", "Lost", "Jobs"]
    if sums_by.before is not None:
        titles.insert(2, _BEFORE_TITLE)
    title = f"By {sums_by.column.lower()}"
    return section(title, bar_table(title, titles, rows) if rows else None)


_DISPLAY_NAMES: dict[str, Callable[[str | None], str]] = {
    "Family": family_name,
    "Owner": owner_name,
    "Instance type": type_name,
}
"""What a value is called in the table of jobs; any other column's as that of a cost tag."""


def _rename_keys(
    display_name: Callable[[str | None], str], sums: Mapping[str | None, Sums]
) -> dict[str, Sums]:
    """The sums by what a name is called in the table of jobs."""
    named: dict[str, list[Sums]] = {}
    for name, one in sums.items():
        named.setdefault(display_name(name), []).append(one)
    return {name: add_sums(parts) for name, parts in named.items()}


def _pick(column: str, name: str) -> Markup:
    """A name that, pressed, leaves only its jobs in the table; plain text without the script."""
    return tag("span", breakable_path(name), class_="pick", data_c=column)


def _detail(number: int, head: AuditSummary, detail: JobReport) -> Markup:
    found = document_amounts(detail.document)
    cost = "" if found.spend.usd is None else f" of {found.spend}"
    summary = tag(
        "summary", tag("h3", tag("bdi", head.job)), tag("span", f"{found.waste}{cost}", class_="n")
    )
    return tag("details", summary, short_job(detail), id=f"j{number}", class_="job")


def _spend_over_time(days: Mapping[date, Sums], since: date, until: date) -> Markup:
    """The chart with its table; days up to 45 of them, weeks up to a year, else months.

    It begins with the first day and ends with the last day on which a job ended.
    """
    since, until = max(since, min(days, default=since)), min(until, max(days, default=until))
    step = _step(since, until)
    begins = list(_begins(since, until, step))
    sums = {begin: Sums() for begin in begins}
    for day, of_day in days.items():
        sums[_begin(day, step)] += of_day
    top = _ceiling(max((one.total_usd for one in sums.values()), default=Decimal(0)))
    bars = [_bar(at, len(begins), pair, top, step) for at, pair in enumerate(sums.items())]
    label = f"Spend by {step} from {since} to {until}, with its avoidable and lost part"
    grid = [tag("line", x1=0, x2="100%", y1=y, y2=y, class_="grid") for y in (1, _HEIGHT // 2)]
    svg = svg_chart(label, _HEIGHT, grid, bars)
    names = [_period_label(begin, step) for begin in begins]
    rows = (
        (name, f"{one.jobs:,}", *map(str, sums_amounts(one)[:3]))
        for name, one in zip(names, sums.values(), strict=True)
    )
    return figure(
        (f"Spend by {step} ", _legend()),
        chart_with_axes((_axis(top), _axis(top / 2), "$0"), _some_labels(names), svg),
        data_table((step.capitalize(), "Jobs", *COLUMN_TITLES[:3]), rows, f"spend by {step}"),
    )


def _step(since: date, until: date) -> Step:
    days = (until - since).days + 1
    return "day" if days <= _MAX_DAYS else "week" if days <= _MAX_WEEKS * 7 else "month"


def _begin(day: date, step: Step) -> date:
    """The day on which a week (from Monday) or a month begins."""
    if step == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if step == "month" else day


def _begins(since: date, until: date, step: Step) -> Iterator[date]:
    begin = _begin(since, step)
    while begin <= until:
        yield begin
        begin = _begin(begin + timedelta(days={"day": 1, "week": 7, "month": 31}[step]), step)


def _bar(at: int, count: int, pair: tuple[date, Sums], top: Decimal, step: Step) -> Markup:
    begin, sums = pair
    width = 100 / count
    place = {"x": f"{at * width + width * 0.1:.2f}%", "width": f"{width * 0.8:.2f}%"}
    rects, bottom = [], Decimal(_HEIGHT)
    for piece in spend_pieces(sums):
        if piece.usd > 0 and top > 0:
            height = Decimal(width_percent(piece.usd, top)) * _HEIGHT / 100
            bottom -= height
            drawn = {"y": float(bottom), "height": float(height)}
            rects.append(tag("rect", **place, **drawn, class_=piece.css_class))
    spend, avoidable, lost, *_ = sums_amounts(sums)
    title = f"{_period_label(begin, step)}: {spend} of {count_text(sums.jobs, 'job')}"
    return tag("g", tag("title", f"{title}, {avoidable} avoidable, {lost} lost"), rects)


def _legend() -> Markup:
    return tag(
        "span", (tag("span", tag("i", class_=kind), word) for word, kind in _KINDS), class_="legend"
    )


_KINDS = (("needed or not judged", "spent"), ("avoidable", "avoidable"), ("lost", "lost"))


def _ceiling(amount: Decimal) -> Decimal:
    """The end of the axis: a round number not far above the amount."""
    if amount <= 0:
        return Decimal(0)
    power = Decimal(1).scaleb(amount.adjusted())
    return next(power * nice for nice in _NICE if power * nice >= amount)


def _axis(amount: Decimal) -> str:
    return format_usd(amount).removesuffix(".00")


def _period_label(begin: date, step: Step) -> str:
    if step == "month":
        return f"{begin:%b %Y}"
    return f"{'week of ' if step == 'week' else ''}{begin.day} {begin:%b}"


def _some_labels(names: list[str]) -> list[str]:
    """The first, the last and some between them."""
    if len(names) <= _LABELS:
        return names
    return [names[(len(names) - 1) * at // (_LABELS - 1)] for at in range(_LABELS)]
