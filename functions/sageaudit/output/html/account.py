"""The report of an account: headline, spend over time, sums, every job, the most wasteful jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.sums import RuleSums, Sums, add_sums
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.money import format_usd
from sageaudit.output.html.contents import AccountReport, ColumnSums, JobReport
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
from sageaudit.output.html.legend import rules_details
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
    join,
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
from sageaudit.output.text.money import Figure
from sageaudit.output.text.words import count_text

_MAX_SUM_ROWS = 15
"""The maximum number of names in a table. One more row sums all other names."""
_MAX_STEPS = 8
_ZERO = Decimal(0)
_BEFORE_TITLE = "Before"
_NEEDED_TITLE = "How much of the spend was needed"
_DETAILS_NOTE = (
    "Jobs with the most avoidable and lost dollars come first. After each name: avoidable and lost"
    " dollars, then cost."
)
_ROLLUP_NOTE = "The cost of {} is in the rows of its {}, so that rows add up."
_RULES_NOTE = (
    "Each dollar is counted once. If fixes overlap, it is counted for the rule that is applied"
    " first."
)
Step = Literal["day", "week", "month"]
_HEIGHT = 190
"""The chart's height in pixels."""
_MAX_DAYS = 45
_MAX_WEEKS = 53
_MAX_LABELS = 5
_AXIS_ENDS = tuple(map(Decimal, ("1", "1.5", "2", "3", "4", "5", "6", "8", "10")))
"""The spend chart's axis ends at one of these numbers, multiplied by a power of ten."""


def account_body(report: AccountReport) -> Iterator[Child]:
    """Yields the main part of an account's page."""
    total = report.total
    yield first_screen(report)
    if total.jobs:
        spend = _spend_over_time(report.days, report.since, report.until)
        yield section("Spend over time", spend)
    yield section(_NEEDED_TITLE, _waterfall(total))
    yield section("By rule", _rules(report), note=_RULES_NOTE)
    yield tag("div", map(_sums_section, report.column_sums), class_="columns")
    if report.summaries:
        yield section_pieces("Every job", job_table(report), id_="jobs", note=_jobs_note(report))
    if report.details:
        details = (_detail(report, index, job) for index, job in sorted(report.details.items()))
        yield section_pieces("The most wasteful jobs in detail", details, note=_DETAILS_NOTE)


def _jobs_note(report: AccountReport) -> str:
    sentences = []
    if report.omitted_jobs:
        sentences.append(
            f"The {job_count_text(report.summaries)} with the most avoidable and lost dollars, then"
            f" those with the highest cost. {report.omitted_jobs:,} more are only in the totals."
        )
    rollup_kinds = {summary.kind for summary in report.summaries if summary.rollup}
    sentences += [
        _ROLLUP_NOTE.format(kind.spec.label_with_article, kind.spec.rollup.children_label)
        for kind in JobKind
        if kind.spec.rollup and kind.value in rollup_kinds
    ]
    return " ".join(sentences)


def account_title(report: AccountReport) -> str:
    """Returns the page's title."""
    return f"{account_headline(report.total)} - {period_text(report.since, report.until)}"


def _waterfall(total: Sums) -> Markup | None:
    ranked = [(name, rule_sums) for name, rule_sums in ranked_rules(total) if rule_sums.waste_usd]
    steps: list[tuple[Child, Figure, str]] = [
        (
            name,
            Figure(rule_sums.waste_usd, estimated=bool(rule_sums.estimated)),
            "avoidable" if rule_sums.avoidable_usd >= rule_sums.lost_usd else "lost",
        )
        for name, rule_sums in ranked[:_MAX_STEPS]
    ]
    shown_usd = sum((rule_sums.waste_usd for _, rule_sums in ranked[:_MAX_STEPS]), _ZERO)
    if others_usd := total.waste_usd - shown_usd:
        others = Figure(others_usd, estimated=bool(total.estimated))
        steps.append(("other rules", others, "avoidable"))
    spend = ("Spend", sums_amounts(total).spend)
    return waterfall(_NEEDED_TITLE, spend, steps, "Needed, or not judged") if steps else None


def _rules(report: AccountReport) -> Markup | None:
    total, previous = report.total, report.previous_period
    rows = []
    for name, rule_sums in ranked_rules(total):
        cells = [*map(str, rule_amounts(rule_sums)), f"{rule_sums.findings:,}"]
        if previous:
            previous_rule = previous.total.rules.get(name, RuleSums())
            cells.insert(1, _before_cell(rule_amounts(previous_rule)[0]))
        pieces = (
            BarPiece(rule_sums.lost_usd, "lost"),
            BarPiece(rule_sums.avoidable_usd, "avoidable"),
        )
        rows.append(BarRow(_rule_name(report, name), pieces, cells))
    titles = ["Rule", "Avoidable", "Lost", "Possible", "Findings"]
    if previous:
        titles.insert(2, _BEFORE_TITLE)
    if not rows:
        return None
    explanations = rules_details((name for name, _ in ranked_rules(total)), report.rules)
    return join([bar_table("By rule", titles, rows), explanations])


def _rule_name(report: AccountReport, name: str) -> Child:
    title = report.rules[name].title if name in report.rules else None
    return _filter_name("Findings", name), tag("p", title, class_="dim") if title else None


def _before_cell(figure: Figure) -> Markup:
    return tag("span", str(figure), class_="dim")


def _sums_section(column_sums: ColumnSums) -> Markup | None:
    display_name = _DISPLAY_NAMES.get(column_sums.column, tag_value)
    sums = _rename_keys(display_name, column_sums.sums)
    previous = _rename_keys(display_name, column_sums.previous or {})
    no_jobs = Sums()

    def order(name: str) -> tuple[Decimal, Decimal, str]:
        name_sums = sums.get(name, no_jobs)
        return -name_sums.waste_usd, -name_sums.total_usd, name

    def row(title: Child, names: Sequence[str]) -> BarRow:
        row_sums = add_sums([sums.get(name, no_jobs) for name in names])
        previous_sums = add_sums([previous.get(name, no_jobs) for name in names])
        cells: list[Child] = [*map(str, sums_amounts(row_sums)[:3]), f"{row_sums.jobs:,}"]
        if column_sums.previous is not None:
            cells.insert(1, _before_cell(sums_amounts(previous_sums).spend))
        return BarRow(title, spend_pieces(row_sums) if len(names) == 1 else (), cells)

    with_jobs = {
        name
        for period in (sums, previous)
        for name, name_sums in period.items()
        if name_sums != no_jobs
    }
    names = sorted(with_jobs, key=order)
    rows = [row(_filter_name(column_sums.column, name), [name]) for name in names[:_MAX_SUM_ROWS]]
    if other_names := names[_MAX_SUM_ROWS:]:
        rows.append(row(f"{len(other_names):,} more", other_names))
    titles = [column_sums.column, "Spend", "Avoidable", "Lost", "Jobs"]
    if column_sums.previous is not None:
        titles.insert(2, _BEFORE_TITLE)
    title = f"By {column_sums.column.lower()}"
    return section(title, bar_table(title, titles, rows) if rows else None)


_DISPLAY_NAMES: dict[str, Callable[[str | None], str]] = {
    "Family": family_name,
    "Owner": owner_name,
    "Instance type": type_name,
}
"""The functions that format a column's names. Any other column is a cost tag."""


def _rename_keys(
    display_name: Callable[[str | None], str], sums: Mapping[str | None, Sums]
) -> dict[str, Sums]:
    sums_by_name: dict[str, list[Sums]] = {}
    for name, name_sums in sums.items():
        sums_by_name.setdefault(display_name(name), []).append(name_sums)
    return {name: add_sums(same_name) for name, same_name in sums_by_name.items()}


def _filter_name(column: str, name: str) -> Markup:
    return tag("span", breakable_path(name), class_="pick", data_c=column)


def _detail(report: AccountReport, index: int, job: JobReport) -> Markup:
    amounts = document_amounts(job.document)
    cost_text = "" if amounts.spend.usd is None else f" of {amounts.spend}"
    heading = tag("h3", tag("bdi", report.summaries[index].job))
    waste = tag("span", f"{amounts.waste}{cost_text}", class_="n")
    return tag(
        "details",
        tag("summary", heading, waste),
        short_job(job, report.rules),
        id=f"j{index}",
        class_="job",
    )


def _spend_over_time(days: Mapping[date, Sums], since: date, until: date) -> Markup:
    """Returns the chart of spend, from the first to the last day on which a job ended."""
    since, until = max(since, min(days, default=since)), min(until, max(days, default=until))
    step = _step(since, until)
    starts = list(_step_starts(since, until, step))
    sums = {start: Sums() for start in starts}
    for day, day_sums in days.items():
        sums[_step_start(day, step)] += day_sums
    top = _axis_end(max((step_sums.total_usd for step_sums in sums.values()), default=Decimal(0)))
    bars = [
        _bar(index, len(starts), step_item, top, step)
        for index, step_item in enumerate(sums.items())
    ]
    label = f"Spend by {step} from {since} to {until}, with its avoidable and lost part"
    grid = [tag("line", x1=0, x2="100%", y1=y, y2=y, class_="grid") for y in (1, _HEIGHT // 2)]
    svg = svg_chart(label, _HEIGHT, grid, bars)
    names = [_step_label(start, step) for start in starts]
    rows = (
        (name, f"{step_sums.jobs:,}", *map(str, sums_amounts(step_sums)[:3]))
        for name, step_sums in zip(names, sums.values(), strict=True)
    )
    axis_labels = (_axis_label(top), _axis_label(top / 2), "$0")
    return figure(
        (f"Spend by {step} ", _legend()),
        chart_with_axes(axis_labels, _thin_labels(names), svg),
        data_table((step.capitalize(), "Jobs", *COLUMN_TITLES[:3]), rows, f"spend by {step}"),
    )


def _step(since: date, until: date) -> Step:
    days = (until - since).days + 1
    return "day" if days <= _MAX_DAYS else "week" if days <= _MAX_WEEKS * 7 else "month"


def _step_start(day: date, step: Step) -> date:
    if step == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if step == "month" else day


def _step_starts(since: date, until: date, step: Step) -> Iterator[date]:
    start = _step_start(since, step)
    while start <= until:
        yield start
        start = _step_start(start + timedelta(days={"day": 1, "week": 7, "month": 31}[step]), step)


def _bar(index: int, count: int, step_item: tuple[date, Sums], top: Decimal, step: Step) -> Markup:
    start, sums = step_item
    width = 100 / count
    horizontal = {"x": f"{index * width + width * 0.1:.2f}%", "width": f"{width * 0.8:.2f}%"}
    rects, bottom = [], Decimal(_HEIGHT)
    for piece in spend_pieces(sums):
        if piece.usd > 0 and top > 0:
            height = Decimal(width_percent(piece.usd, top)) * _HEIGHT / 100
            bottom -= height
            vertical = {"y": float(bottom), "height": float(height)}
            rects.append(tag("rect", **horizontal, **vertical, class_=piece.css_class))
    spend, avoidable, lost, *_ = sums_amounts(sums)
    title = f"{_step_label(start, step)}: {spend} for {count_text(sums.jobs, 'job')}"
    return tag("g", tag("title", f"{title}, {avoidable} avoidable, {lost} lost"), rects)


def _legend() -> Markup:
    entries = (tag("span", tag("i", class_=css_class), label) for label, css_class in _LEGEND)
    return tag("span", entries, class_="legend")


_LEGEND = (("needed or not judged", "spent"), ("avoidable", "avoidable"), ("lost", "lost"))


def _axis_end(amount: Decimal) -> Decimal:
    if amount <= 0:
        return Decimal(0)
    power = Decimal(1).scaleb(amount.adjusted())
    return next(power * end for end in _AXIS_ENDS if power * end >= amount)


def _axis_label(amount: Decimal) -> str:
    return format_usd(amount).removesuffix(".00")


def _step_label(start: date, step: Step) -> str:
    if step == "month":
        return f"{start:%b %Y}"
    return f"{'week of ' if step == 'week' else ''}{start.day} {start:%b}"


def _thin_labels(names: list[str]) -> list[str]:
    if len(names) <= _MAX_LABELS:
        return names
    last_index = len(names) - 1
    return [names[last_index * index // (_MAX_LABELS - 1)] for index in range(_MAX_LABELS)]
