"""A row for every job. The row itself is the data that the script sorts and filters by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.html.contents import AccountReport
from sageaudit.output.html.markup import Child, Markup, scroll_box, tag, tag_pieces
from sageaudit.output.text.amounts import Amounts, summary_amounts, sums_amounts, sums_doubts
from sageaudit.output.text.money import Figure
from sageaudit.output.text.notes import family_text
from sageaudit.output.text.untrusted import cut_middle
from sageaudit.output.text.words import NO_OWNER_LABEL, NO_TYPE_LABEL, PURCHASE_LABELS, count_text

_NAME = 90
_MILLION = 1_000_000
FIRST_ROWS = 100
"""Rows that are laid out at once; the others are drawn when they are asked for."""
_NOTHING = frozenset({"$0.00", "-"})
_JUDGED_LABELS = {Judged.YES: "yes", Judged.PARTLY: "in part", Judged.NO: "no", None: "unknown"}


class TableColumn(Struct, frozen=True):
    """A column of the table: a figure, which has a sum too, or a text.

    `first`: it is shown to begin with; the others are chosen. `number`: it sorts by its size.
    `varies`: it is left out where all jobs say the same.
    """

    title: str
    text: Callable[[AuditSummary], str] | None = None
    figure: Callable[[Amounts], Figure] | None = None
    is_shown_first: bool = False
    is_number: bool = False
    is_wide: bool = False
    only_if_varying: bool = False

    def cell_text(self, head: AuditSummary, found: Amounts) -> str:
        """What a job's row says."""
        return str(self.figure(found)) if self.figure else self.text(head) if self.text else ""


def _rules(head: AuditSummary) -> list[str]:
    """The rules that found something, the one that matters most first."""
    return list(dict.fromkeys([*filter(None, (head.costliest_rule,)), *sorted(head.sums.rules)]))


def _fact(name: str) -> Callable[[AuditSummary], str]:
    """What the row of a job tells of its run, or a dash."""

    def text(head: AuditSummary) -> str:
        value = getattr(head, name)
        return "-" if value is None else f"{value}"

    return text


def _minutes(name: str) -> Callable[[AuditSummary], str]:
    """A time of a job in minutes, or a dash."""
    return lambda head: "-" if (time_s := getattr(head, name)) is None else f"{time_s / 60:,.0f}"


def _hours(head: AuditSummary) -> str:
    return "-" if head.instance_s is None else f"{head.instance_s / 3600:,.1f}"


def _part(name: str) -> Callable[[AuditSummary], str]:
    """A part of a job's bill, or a dash."""
    return lambda head: str(Figure(getattr(head, name), absent="-"))


def family_name(name: str | None) -> str:
    """A family as rows and sums name it."""
    return cut_middle(family_text(name or "unknown"), _NAME)


def owner_name(name: str | None) -> str:
    """An owner, or that there is none."""
    return cut_middle(name, _NAME) if name else NO_OWNER_LABEL


def tag_title(name: str) -> str:
    """The title of a cost tag's column: no other column has it."""
    return f"{name} (tag)"


def tag_value(value: str | None) -> str:
    """The value of a cost tag, or that there is none."""
    return cut_middle(value, _NAME) if value else "(none)"


def type_name(name: str | None) -> str:
    """An instance type, or that there is not one."""
    return name or NO_TYPE_LABEL


COLUMNS = (
    TableColumn("Job", lambda head: cut_middle(head.job, _NAME), is_shown_first=True),
    TableColumn("Spend", figure=lambda found: found.spend, is_shown_first=True),
    TableColumn("Avoidable", figure=lambda found: found.avoidable, is_shown_first=True),
    TableColumn("Lost", figure=lambda found: found.lost, is_shown_first=True),
    TableColumn(
        "Findings", lambda head: ", ".join(_rules(head)) or "-", is_shown_first=True, is_wide=True
    ),
    TableColumn("Instance type", lambda head: type_name(head.instance_type), is_shown_first=True),
    TableColumn("Owner", lambda head: owner_name(head.owner), is_shown_first=True),
    TableColumn("Ended (UTC)", lambda head: f"{head.ended_at:%Y-%m-%d %H:%M}", is_shown_first=True),
    TableColumn("Possible", figure=lambda found: found.possible),
    TableColumn("Idle", figure=lambda found: found.idle),
    TableColumn("Count", _fact("instance_count"), is_number=True),
    TableColumn("Minutes", _minutes("duration_s"), is_number=True),
    TableColumn("Waiting (min)", _minutes("waiting_s"), is_number=True, only_if_varying=True),
    TableColumn("Instance hours", _hours, is_number=True),
    TableColumn("Storage", _part("storage_usd"), is_number=True, only_if_varying=True),
    TableColumn("Warm pool", _part("warm_pool_usd"), is_number=True, only_if_varying=True),
    TableColumn("Saved by spot", _part("spot_saved_usd"), is_number=True, only_if_varying=True),
    TableColumn("Purchase", lambda head: PURCHASE_LABELS[head.purchase] if head.purchase else "-"),
    TableColumn("Kind", lambda head: head.kind),
    TableColumn("Status", lambda head: head.status),
    TableColumn("Family", lambda head: family_name(head.family), is_wide=True),
    TableColumn("Judged", lambda head: _JUDGED_LABELS[head.judged]),
    TableColumn(
        "Image",
        lambda head: cut_middle(head.image or "-", _NAME),
        is_wide=True,
        only_if_varying=True,
    ),
    TableColumn("Account", lambda head: head.account, only_if_varying=True),
    TableColumn("Region", lambda head: head.region, only_if_varying=True),
)
"""First what one decides by. A new field of a job's row is one row here."""


def job_table(report: AccountReport) -> Child:
    """The table with its filters, in pieces: each row is made while it is written."""
    tags = sorted({name for head in report.summaries for name in head.tags})
    every = (
        *COLUMNS,
        *(TableColumn(tag_title(name), _tag(name), only_if_varying=True) for name in tags),
    )
    columns = [
        column
        for column in every
        if not column.only_if_varying or _varies(column, report.summaries)
    ]
    rows = (
        _row(columns, head, at, at in report.details) for at, head in enumerate(report.summaries)
    )
    whole = tag_pieces(
        "table",
        tag("thead", tag("tr", map(_head, columns))),
        tag_pieces("tbody", islice(rows, FIRST_ROWS)),
        tag_pieces("tbody", rows, class_="rest"),
        tag("tfoot", _foot(columns, report.total)),
        id="all",
        class_="all",
    )
    return _filters(report), scroll_box("Every job", whole)


def _tag(name: str) -> Callable[[AuditSummary], str]:
    return lambda head: tag_value(head.tags.get(name))


def _varies(column: TableColumn, heads: Sequence[AuditSummary]) -> bool:
    texts = map(column.text or str, heads)
    first = next(texts)
    return any(text != first for text in texts)


def _head(column: TableColumn) -> Markup:
    number = column.figure or column.is_number
    return tag(
        "th",
        column.title,
        scope="col",
        class_="n" if number else None,
        data_more=not column.is_shown_first,
    )


def _filters(report: AccountReport) -> Markup:
    """Shown by the script, which can use them."""
    search = tag("label", "Find ", tag("input", type="search", id="find", autocomplete="off"))
    kinds = sorted({head.kind for head in report.summaries})
    statuses = sorted({head.status for head in report.summaries})
    picks = (
        _select("Kind", kinds),
        _select("Status", statuses),
        _select("Judged", list(_JUDGED_LABELS.values())),
    )
    count = tag("p", job_count_text(report.summaries), id="found", role="status")
    clear = tag("button", "Clear", type="button", id="clear")
    return tag(
        "form",
        tag("div", search, picks, clear, class_="filters"),
        count,
        id="filters",
        role="search",
        aria_label="Filter the jobs",
        hidden=True,
    )


def job_count_text(heads: Iterable[AuditSummary]) -> str:
    """`26 jobs and 1 tuning job`: rows of roll-ups are no jobs of their own in any sum."""
    counts = Counter(JobKind(head.kind) if head.rollup else None for head in heads)
    jobs = count_text(counts[None], "job")
    rollups = [count_text(counts[kind], kind.spec.label) for kind in JobKind if counts[kind]]
    return " and ".join((jobs, *rollups))


def _select(title: str, values: list[str]) -> Markup:
    options = (tag("option", value, value=value) for value in values)
    every = tag("option", "all", value="")
    return tag("label", f"{title} ", tag("select", every, options, data_column=title))


def _row(
    columns: Sequence[TableColumn], head: AuditSummary, index: int, has_details: bool
) -> Markup:
    found = summary_amounts(head)
    first, *others = ((column, column.cell_text(head, found)) for column in columns)
    name: Child = tag("a", first[1], href=f"#j{index}") if has_details else first[1]
    cells = (_cell(column, text, head) for column, text in others)
    return tag("tr", tag("th", name, scope="row"), cells, data_r=head.rollup)


def _cell(column: TableColumn, text: str, head: AuditSummary) -> Markup:
    """Nothing is shown paler than something."""
    kind = "w" if column.is_wide else None
    if column.figure or column.is_number:
        kind = "n z" if text in _NOTHING else "n"
    if column is _SPEND:
        return tag("td", text, class_=kind, data_u=_micros(head), data_q=_doubts(head))
    return _cached_cell(text, kind)


@lru_cache(5_000)
def _cached_cell(text: str, kind: str | None) -> Markup:
    """A cell that many rows have."""
    return tag("td", text, class_=kind)


_SPEND = COLUMNS[1]


def _micros(head: AuditSummary) -> int | None:
    """What the row adds to the spend, in millionths of a dollar: the script sums them exactly."""
    known = not head.rollup and head.total_usd is not None
    return int(head.sums.total_usd * _MILLION) if known else None


def _doubts(head: AuditSummary) -> str | None:
    """What the row adds to the doubts of the spend, for the same script: a letter for each."""
    if head.rollup:
        return None
    doubts = sums_doubts(head.sums)
    letters = ((doubts.is_lower_bound, "l"), (doubts.is_upper_bound, "u"), (doubts.estimated, "e"))
    return "".join(letter for doubt, letter in letters if doubt) or None


def _foot(columns: Sequence[TableColumn], total: Sums) -> Markup:
    found = sums_amounts(total)
    sums = (str(column.figure(found)) if column.figure else "" for column in columns[1:])
    return tag(
        "tr", tag("th", "All jobs", scope="row"), (tag("td", one, class_="n") for one in sums)
    )
