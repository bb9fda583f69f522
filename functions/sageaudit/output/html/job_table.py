"""The table of all jobs. Its rows are also the data that the script sorts and filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.job.job import round_half_up
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.html.contents import AccountReport
from sageaudit.output.html.markup import Child, Markup, scroll_box, tag, tag_pieces
from sageaudit.output.text.amounts import Amounts, summary_amounts, sums_amounts, sums_doubts
from sageaudit.output.text.money import Figure
from sageaudit.output.text.notes import family_text
from sageaudit.output.text.untrusted import cut_middle
from sageaudit.output.text.words import NO_OWNER_LABEL, NO_TYPE_LABEL, PURCHASE_LABELS, count_text

_MAX_NAME_LENGTH = 90
_MILLION = 1_000_000
FIRST_ROWS = 100
"""The number of rows that are shown until the reader asks for more."""
_EMPTY_TEXTS = frozenset({"$0.00", "-"})
_JUDGED_LABELS = {Judged.YES: "yes", Judged.PARTLY: "partly", Judged.NO: "no", None: "unknown"}


class TableColumn(Struct, frozen=True):
    """A column of the jobs table. A column with `figure` has a sum in the foot.

    `is_shown_first`: the column is shown until the reader chooses others. `is_number`: sorted by
    value. `only_if_varying`: omitted if all jobs have the same value.
    """

    title: str
    text: Callable[[AuditSummary], str] | None = None
    figure: Callable[[Amounts], Figure] | None = None
    is_shown_first: bool = False
    is_number: bool = False
    is_wide: bool = False
    only_if_varying: bool = False

    def cell_text(self, summary: AuditSummary, amounts: Amounts) -> str:
        """Returns the text of a job's cell."""
        if self.figure:
            return str(self.figure(amounts))
        return self.text(summary) if self.text else ""


def _rules(summary: AuditSummary) -> list[str]:
    costliest = [summary.costliest_rule] if summary.costliest_rule else []
    return list(dict.fromkeys([*costliest, *sorted(summary.sums.rules)]))


def _field_text(name: str) -> Callable[[AuditSummary], str]:
    def text(summary: AuditSummary) -> str:
        value = getattr(summary, name)
        return "-" if value is None else f"{value}"

    return text


def _minutes_text(name: str) -> Callable[[AuditSummary], str]:
    """Returns a function that formats the field `name`, in seconds, as minutes."""

    def text(summary: AuditSummary) -> str:
        seconds = getattr(summary, name)
        return "-" if seconds is None else f"{round_half_up(Decimal(seconds) / 60):,}"

    return text


def _hours_text(summary: AuditSummary) -> str:
    return "-" if summary.instance_s is None else f"{summary.instance_s / 3600:,.1f}"


def _usd_text(name: str) -> Callable[[AuditSummary], str]:
    return lambda summary: str(Figure(getattr(summary, name), absent="-"))


def _purchase_text(summary: AuditSummary) -> str:
    return PURCHASE_LABELS[summary.purchase] if summary.purchase else "-"


def family_name(name: str | None) -> str:
    """Returns a family's display name. A long name is cut."""
    return cut_middle(family_text(name or "unknown"), _MAX_NAME_LENGTH)


def owner_name(name: str | None) -> str:
    """Returns an owner's display name. A long name is cut."""
    return cut_middle(name, _MAX_NAME_LENGTH) if name else NO_OWNER_LABEL


def tag_title(name: str) -> str:
    """Returns the column title of a cost tag. No other title has its suffix."""
    return f"{name} (tag)"


def tag_value(value: str | None) -> str:
    """Returns the display name of a cost tag's value. A long name is cut."""
    return cut_middle(value, _MAX_NAME_LENGTH) if value else "(none)"


def type_name(name: str | None) -> str:
    """Returns an instance type's display name."""
    return name or NO_TYPE_LABEL


COLUMNS = (
    TableColumn(
        "Job", lambda summary: cut_middle(summary.job, _MAX_NAME_LENGTH), is_shown_first=True
    ),
    TableColumn("Spend", figure=lambda amounts: amounts.spend, is_shown_first=True),
    TableColumn("Avoidable", figure=lambda amounts: amounts.avoidable, is_shown_first=True),
    TableColumn("Lost", figure=lambda amounts: amounts.lost, is_shown_first=True),
    TableColumn(
        "Findings",
        lambda summary: ", ".join(_rules(summary)) or "-",
        is_shown_first=True,
        is_wide=True,
    ),
    TableColumn(
        "Instance type", lambda summary: type_name(summary.instance_type), is_shown_first=True
    ),
    TableColumn("Owner", lambda summary: owner_name(summary.owner), is_shown_first=True),
    TableColumn(
        "Ended (UTC)", lambda summary: f"{summary.ended_at:%Y-%m-%d %H:%M}", is_shown_first=True
    ),
    TableColumn("Possible", figure=lambda amounts: amounts.possible),
    TableColumn("Idle", figure=lambda amounts: amounts.idle),
    TableColumn("Instances", _field_text("instance_count"), is_number=True),
    TableColumn("Minutes", _minutes_text("duration_s"), is_number=True),
    TableColumn("Waiting (min)", _minutes_text("waiting_s"), is_number=True, only_if_varying=True),
    TableColumn("Instance hours", _hours_text, is_number=True),
    TableColumn("Storage", _usd_text("storage_usd"), is_number=True, only_if_varying=True),
    TableColumn("Warm pool", _usd_text("warm_pool_usd"), is_number=True, only_if_varying=True),
    TableColumn("Saved by spot", _usd_text("spot_saved_usd"), is_number=True, only_if_varying=True),
    TableColumn("Purchase", _purchase_text),
    TableColumn("Kind", lambda summary: summary.kind),
    TableColumn("Status", lambda summary: summary.status),
    TableColumn("Family", lambda summary: family_name(summary.family), is_wide=True),
    TableColumn("Judged", lambda summary: _JUDGED_LABELS[summary.judged]),
    TableColumn(
        "Image",
        lambda summary: cut_middle(summary.image or "-", _MAX_NAME_LENGTH),
        is_wide=True,
        only_if_varying=True,
    ),
    TableColumn("Account", lambda summary: summary.account, only_if_varying=True),
    TableColumn("Region", lambda summary: summary.region, only_if_varying=True),
)
"""All columns, the most useful for decisions first. To show a new field, add it here."""


def job_table(report: AccountReport) -> Child:
    """Returns the table of jobs with its filters. Its pieces are made while they are written."""
    tag_names = sorted({name for summary in report.summaries for name in summary.tags})
    tag_columns = (
        TableColumn(tag_title(name), _tag_text(name), only_if_varying=True) for name in tag_names
    )
    columns = [
        column
        for column in (*COLUMNS, *tag_columns)
        if not column.only_if_varying or _is_varying(column, report.summaries)
    ]
    rows = (
        _row(columns, summary, index, index in report.details)
        for index, summary in enumerate(report.summaries)
    )
    table = tag_pieces(
        "table",
        tag("thead", tag("tr", map(_head, columns))),
        tag_pieces("tbody", islice(rows, FIRST_ROWS)),
        tag_pieces("tbody", rows, class_="rest"),
        tag("tfoot", _foot(columns, report.total)),
        id="all",
        class_="all",
    )
    return _filters(report), scroll_box("Every job", table)


def _tag_text(name: str) -> Callable[[AuditSummary], str]:
    return lambda summary: tag_value(summary.tags.get(name))


def _is_varying(column: TableColumn, summaries: Sequence[AuditSummary]) -> bool:
    texts = map(column.text or str, summaries)
    first_text = next(texts)
    return any(text != first_text for text in texts)


def _head(column: TableColumn) -> Markup:
    is_number = column.figure or column.is_number
    return tag(
        "th",
        column.title,
        scope="col",
        class_="n" if is_number else None,
        data_more=not column.is_shown_first,
    )


def _filters(report: AccountReport) -> Markup:
    search = tag("label", "Find ", tag("input", type="search", id="find", autocomplete="off"))
    kinds = sorted({summary.kind for summary in report.summaries})
    statuses = sorted({summary.status for summary in report.summaries})
    selects = (
        _select("Kind", kinds),
        _select("Status", statuses),
        _select("Judged", list(_JUDGED_LABELS.values())),
    )
    count = tag("p", job_count_text(report.summaries), id="job-count", role="status")
    clear = tag("button", "Clear", type="button", id="clear")
    return tag(
        "form",
        tag("div", search, selects, clear, class_="filters"),
        count,
        id="filters",
        role="search",
        aria_label="Filter the jobs",
        hidden=True,
    )


def job_count_text(summaries: Iterable[AuditSummary]) -> str:
    """Returns a text such as `26 jobs and 1 tuning job`. Roll-ups are not counted as jobs."""
    counts = Counter(JobKind(summary.kind) if summary.rollup else None for summary in summaries)
    jobs_text = count_text(counts[None], "job")
    rollup_texts = [count_text(counts[kind], kind.spec.label) for kind in JobKind if counts[kind]]
    return " and ".join((jobs_text, *rollup_texts))


def _select(title: str, values: list[str]) -> Markup:
    options = (tag("option", value, value=value) for value in values)
    all_option = tag("option", "all", value="")
    return tag("label", f"{title} ", tag("select", all_option, options, data_column=title))


def _row(
    columns: Sequence[TableColumn], summary: AuditSummary, index: int, has_details: bool
) -> Markup:
    amounts = summary_amounts(summary)
    name_column, *other_columns = columns
    name = name_column.cell_text(summary, amounts)
    heading: Child = tag("a", name, href=f"#j{index}") if has_details else name
    cells = (_cell(column, column.cell_text(summary, amounts), summary) for column in other_columns)
    return tag("tr", tag("th", heading, scope="row"), cells, data_r=summary.rollup)


def _cell(column: TableColumn, text: str, summary: AuditSummary) -> Markup:
    css_class = "w" if column.is_wide else None
    if column.figure or column.is_number:
        css_class = "n z" if text in _EMPTY_TEXTS else "n"
    if column is _SPEND_COLUMN:
        micros, doubts = _spend_micros(summary), _doubt_letters(summary)
        return tag("td", text, class_=css_class, data_u=micros, data_q=doubts)
    return _cached_cell(text, css_class)


@lru_cache(5_000)
def _cached_cell(text: str, css_class: str | None) -> Markup:
    return tag("td", text, class_=css_class)


_SPEND_COLUMN = COLUMNS[1]


def _spend_micros(summary: AuditSummary) -> int | None:
    """Returns millionths of a dollar, which the script adds exactly.

    None for an unknown spend, and for a roll-up, whose jobs have rows of their own.
    """
    has_spend = not summary.rollup and summary.total_usd is not None
    return int(summary.sums.total_usd * _MILLION) if has_spend else None


def _doubt_letters(summary: AuditSummary) -> str | None:
    """Returns letters for the script: `l` lower bound, `u` upper bound, `e` estimate."""
    if summary.rollup:
        return None
    doubts = sums_doubts(summary.sums)
    letters = ((doubts.is_lower_bound, "l"), (doubts.is_upper_bound, "u"), (doubts.estimated, "e"))
    return "".join(letter for has_doubt, letter in letters if has_doubt) or None


def _foot(columns: Sequence[TableColumn], total: Sums) -> Markup:
    amounts = sums_amounts(total)
    sums = (str(column.figure(amounts)) if column.figure else "" for column in columns[1:])
    return tag(
        "tr", tag("th", "All jobs", scope="row"), (tag("td", text, class_="n") for text in sums)
    )
