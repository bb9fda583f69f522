"""The lists that the command line prints: their fields, tables, and what a narrow terminal lacks.

docs/queries.md describes the fields. Every amount is a figure as in the audit's own view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from sageaudit.cli.views.formats import Field, FieldKind, ListLayout, tag_field
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.record import FindingRow
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.amounts import (
    IN_ITS_JOBS,
    NO_AMOUNTS,
    Amounts,
    Doubts,
    amounts,
    doubts_of,
    of_rule,
)
from sageaudit.output.text.headline import judged_figure
from sageaudit.output.text.money import DOWN, UNKNOWN, Figure, difference, percent_change
from sageaudit.output.text.notes import family_words
from sageaudit.output.text.words import NO_OWNER, NO_TYPE
from sageaudit.queries.by import length_of
from sageaudit.queries.changes import SpendChange
from sageaudit.queries.columns import SUMMED, Column
from sageaudit.queries.question import Sort
from sageaudit.queries.total import Total
from sageaudit.structs import replace

_NAME = 20
"""The least width of a name."""
_FULL_NAME = 44
"""That of the job names that the SDKs make: a name is given to `sageaudit show`, so columns are
dropped before it is cut."""
_WORD = 12
"""The least width of a word."""


def amounts_of(row: AuditSummary | Total) -> Amounts:
    """The figures of a row."""
    doubts = _doubts(row) if isinstance(row, AuditSummary) else doubts_of(row.sums)
    found = amounts(
        doubts,
        total_usd=row.total_usd,
        avoidable_usd=row.avoidable_usd,
        lost_usd=row.lost_usd,
        lost_up_to_usd=row.lost_up_to_usd,
        possible_usd=row.possible_usd,
        idle_usd=row.idle_usd,
    )
    if isinstance(row, AuditSummary):
        return found._replace(spend=IN_ITS_JOBS) if row.rollup else found
    return _with_rules(row, found) if row.of_rules else found


def _doubts(row: AuditSummary) -> Doubts:
    return Doubts(
        lower=row.incomplete,
        upper=row.upper_bound,
        estimated=row.estimated,
        unjudged=row.judged is Judged.NO,
        possible=row.possible_incomplete,
    )


def _with_rules(row: Total, found: Amounts) -> Amounts:
    """With the dollars of the findings of rules, where the row knows them."""
    avoidable, lost, possible = of_rule(sum(row.sums.rules.values(), RuleSums()))
    return found._replace(
        avoidable=replace(avoidable, usd=row.avoidable_usd, absent=UNKNOWN),
        lost=replace(lost, usd=row.lost_usd),
        possible=replace(possible, usd=row.possible_usd),
    )


def _figure(name: str) -> Callable[[Any], Figure]:
    return lambda row: getattr(amounts_of(row), name)


def _saving(name: str, most: str = "") -> Callable[[FindingRow], Figure]:
    """A finding's dollars; "-" for one without any."""

    def figure(row: FindingRow) -> Figure:
        return Figure(
            getattr(row, name),
            getattr(row, most) if most else None,
            estimated=row.estimated,
            rough=DOWN if row.bucket is Bucket.POSSIBLE else None,
            absent="-" if row.bucket is Bucket.NONE else UNKNOWN,
        )

    return figure


def _before(name: str) -> Callable[[Total], Figure]:
    """A figure of the days before."""
    return lambda row: getattr(amounts_of(row.before) if row.before else NO_AMOUNTS, name)


def _change(name: str) -> Callable[[Total], str]:
    """`+12.5%`, "about" unless both are exact; dollars where the period before had none."""

    def cell(row: Total) -> str:
        now, before = _figure(name)(row), _before(name)(row)
        return percent_change(now, before) or (now.most and difference(now, before)) or "-"

    return cell


def projected(row: Total) -> Figure:
    """The spend of a period that lasts, as exactly as that of its days so far is known."""
    return replace(amounts_of(row).spend, usd=row.projected_usd)


def _an_hour(row: Total) -> Figure:
    """A ratio of the spend, and as exact as it."""
    return replace(amounts_of(row).spend, usd=row.usd_per_hour)


def _waste_percent(row: AuditSummary | Total) -> str:
    """`12.5%`, `up to 81.8%`, `unknown`: of the bill, or of the judged spend."""
    waste, least = amounts_of(row).waste, row.waste_percent
    if least is None:
        return UNKNOWN
    base_usd = row.total_usd if isinstance(row, AuditSummary) else row.judged_usd
    most = 100 * (waste.most or 0) / base_usd if base_usd else least
    low, high = (f"{percent:,.1f}%" for percent in (least, most))
    if low == high:
        return low
    return f"{low} to {high}" if least else f"up to {high}"


def _jobs(row: SpendChange) -> str:
    """`12 to 15`; the jobs now where those before are not known."""
    return f"{row.jobs:,}" if row.jobs_before is None else f"{row.jobs_before:,} to {row.jobs:,}"


def _difference(name: str) -> Callable[[SpendChange], str]:
    def cell(row: SpendChange) -> str:
        return difference(_figure(name)(row), _before(name)(row)) or "-"

    return cell


def _percent(row: SpendChange) -> str:
    return percent_change(_figure("spend")(row), _before("spend")(row)) or "unknown"


def _period(row: Total) -> str:
    if row.over:
        return row.period or ""
    only = row.days == 1 and row.first_day != row.last_day
    return f"{row.period} {'today only' if only else 'so far'}"


def _of_column(column: Column) -> Field:
    """The field of a column of sums; its cell is a word where there is no value."""
    if column.length:
        return Field("period", cell=_period)
    words = {"owner": NO_OWNER, "type": NO_TYPE, "reason": "(no reason)"}
    none = f"(no {column.name})" if column.tag else words.get(column.name, UNKNOWN)
    kind: FieldKind = "count" if column.name == "count" else "text"
    field = tag_field(column.key) if column.tag else Field(column.key, kind)

    def cell(row: Total) -> object:
        value = column.of(row)
        return family_words(value) if value and column.name == "family" else value or none

    return replace(field, get=column.of, cell=cell, least=28 if column.name == "family" else _NAME)


_AMOUNTS = (
    Field("total_usd", "usd", "Spend", _figure("spend")),
    Field("spend_qualifier", heading="Known"),
    Field("avoidable_usd", "usd", "Avoidable", _figure("avoidable")),
    Field("lost_usd", "usd", "Lost", _figure("lost")),
    Field("lost_up_to_usd", "usd"),
    Field("waste_usd", "usd", "Avoidable+lost", _figure("waste")),
    Field("possible_usd", "usd", "Possible", _figure("possible")),
    Field("idle_usd", "usd", "Idle capacity", _figure("idle")),
    Field("top_rule", heading="Top finding"),
)


_FAMILY = Field("family", cell=lambda row: family_words(row.family or UNKNOWN), least=28)
_OF_A_RUN = (
    Field("ended_at", "time", "Ended", lambda row: f"{row.ended_at:%Y-%m-%d}"),
    Field("job", least=_FULL_NAME),
    Field("kind"),
    Field("account"),
    Field("region"),
    _FAMILY,
    Field("owner", least=_WORD),
    Field("severity"),
    Field("rollup", "flag", "Roll-up"),
    Field("estimated", "flag"),
    Field("arn", heading="ARN", least=_NAME),
    Field("created_at", "time", "Created (UTC)"),
)
_OF_AN_AUDIT = (
    Field("status"),
    *_AMOUNTS,
    Field("findings", "count"),
    Field("judged"),
    Field("settled", "flag"),
    Field("incomplete", "flag"),
    Field("possible_incomplete", "flag"),
    Field("upper_bound", "flag"),
    Field("unauditable", least=_NAME),
    Field("instance_type"),
    Field("instance_count", "count"),
    Field("purchase"),
    Field("image", least=_NAME),
    Field("duration_s", "seconds", "Duration"),
    Field("waiting_s", "seconds", "Waiting"),
    Field("interrupted_s", "seconds", "Interrupted"),
    Field("reason"),
    Field("waste_percent", "percent", "Waste %", _waste_percent),
    Field("instance_hours", "hours"),
    Field("gpu_hours", "hours", "GPU hours"),
    Field("idle_gpu_hours", "hours", "Idle GPU hours"),
    Field("storage_usd", "usd"),
    Field("warm_pool_usd", "usd"),
    Field("spot_saved_usd", "usd"),
    Field("version", "count"),
    Field("ruleset"),
    Field("policy"),
)
_OF_A_FINDING = (
    Field("rule"),
    Field("rule_id", heading="Id"),
    Field("confidence"),
    Field("bucket"),
    Field("saving_usd", "usd", "Saving", _saving("saving_usd", "saving_up_to_usd")),
    Field("saving_up_to_usd", "usd", "At most"),
    Field("saving_alone_usd", "usd", "Alone", _saving("saving_alone_usd")),
    Field("summary", heading="Finding", least=20, sentence=True),
    Field("fix", least=20, sentence=True),
)


def _part_of(part: str, field: Field) -> Field:
    """The field of a finding's row, which has it in this part."""
    of, cell, get = attrgetter(part), field.cell, field.getter
    return replace(
        field,
        get=lambda row: get(of(row)),
        cell=None if cell is None else lambda row: cell(of(row)),
    )


AUDITS = ListLayout(
    (*_OF_A_RUN, *_OF_AN_AUDIT),
    ("ended_at", "job", "total_usd", "avoidable_usd", "lost_usd", "top_rule"),
    ("top_rule", "lost_usd", "avoidable_usd", "ended_at"),
    tagged=True,
)
"""Audits: every field is known of every row."""
FINDINGS = ListLayout(
    (
        *(_part_of("summary", field) for field in _OF_A_RUN),
        *(_part_of("finding", field) for field in _OF_A_FINDING),
        *(_part_of("summary", field) for field in _OF_AN_AUDIT),
    ),
    ("ended_at", "job", "severity", "saving_usd", "summary"),
    ("summary", "severity", "ended_at"),
    tuple(field.name for field in (*_OF_A_RUN, *_OF_A_FINDING)),
    tagged=True,
)
"""Findings of one rule. `exported` is what their list knows: any other field costs one more read
for each row."""
TOP = ListLayout(
    AUDITS.fields,
    ("job", "ended_at", "total_usd", "waste_usd", "top_rule", "owner"),
    ("owner", "top_rule", "total_usd", "ended_at"),
    tagged=True,
)
_OF_SUMS = (
    Field("jobs", "count"),
    Field("failed", "count"),
    *_AMOUNTS,
    Field("waste_percent", "percent", "Waste %", _waste_percent),
    Field("failed_percent", "percent", "Failed %"),
    Field("share_percent", "percent", "Share"),
    Field("cumulative_percent", "percent", "So far"),
    Field("judged_usd", "usd", "Judged", lambda row: judged_figure(row.sums)),
    Field("unauditable", "count"),
    Field("not_judged", "count"),
    Field("partly_judged", "count"),
    Field("unpriced", "count"),
    Field("incomplete", "count"),
    Field("upper_bounds", "count"),
    Field("estimated", "count"),
    Field("avoidable_unknown", "count"),
    Field("lost_unknown", "count"),
    Field("possible_unknown", "count"),
    Field("idle_unknown", "count"),
    Field("avoidable_up_to_usd", "usd"),
    Field("possible_up_to_usd", "usd"),
)


_COLUMNS = tuple({column.key: _of_column(column) for column in SUMMED.values()}.values())
"""Of all columns; day, week and month are one."""
_OF_A_USAGE_TYPE = (
    Field("jobs", "count"),
    Field("usage_quantity", "hours", "Usage"),
    Field("usage_unit", heading="Unit"),
    Field("total_usd", "usd", "Spend", _figure("spend")),
    Field("spend_qualifier", heading="Known"),
    Field("share_percent", "percent", "Share"),
    Field("cumulative_percent", "percent", "So far"),
    Field("unpriced", "count"),
)
_OF_RUN_SUMS = (
    Field("instance_hours", "hours"),
    Field("usd_per_hour", "usd", "An hour", _an_hour),
    Field("gpu_hours", "hours", "GPU hours"),
    Field("idle_gpu_hours", "hours", "Idle GPU hours"),
    Field("idle_percent", "percent", "Idle %"),
    Field("storage_usd", "usd"),
    Field("warm_pool_usd", "usd"),
    Field("spot_saved_usd", "usd"),
    Field("median_usd", "usd", "Median bill"),
    Field("median_waiting_s", "seconds", "Median wait"),
)
_OF_A_PERIOD = (
    Field("weekday"),
    Field("first_day", "day"),
    Field("last_day", "day"),
    Field("over", "flag"),
    Field("projected_usd", "usd", "Projected", projected),
    Field("total_before_usd", "usd", "Spend before", _before("spend")),
    Field("spend_qualifier_before", heading="Known before"),
    Field("total_change_percent", "percent", "Change", _change("spend")),
    Field("waste_before_usd", "usd", "Avoidable+lost before", _before("waste")),
    Field("waste_change_percent", "percent", "Its change", _change("waste")),
)
BY = ListLayout(
    (*_COLUMNS, *_OF_SUMS, *_OF_RUN_SUMS, *_OF_A_PERIOD),
    (
        *("jobs", "failed", "failed_percent", "total_usd", "total_change_percent", "judged_usd"),
        *("avoidable_usd", "lost_usd", "waste_usd", "waste_percent", "waste_change_percent"),
        *("possible_usd", "idle_usd", "top_rule"),
    ),
    (
        *("idle_usd", "possible_usd", "judged_usd", "top_rule", "failed_percent", "failed"),
        *("lost_usd", "waste_percent", "avoidable_usd", "jobs", "total_change_percent"),
        "total_usd",
    ),
)
"""Sums; `of_columns` adds the columns that they are by."""
_OF_A_CHANGE = (
    Field("change"),
    Field("jobs_before", "count", "Jobs before"),
    Field("jobs", "count", cell=_jobs),
    Field("total_before_usd", "usd", "Spend before", _before("spend")),
    Field("spend_qualifier_before", heading="Known before"),
    Field("total_usd", "usd", "Spend", _figure("spend")),
    Field("spend_qualifier", heading="Known"),
    Field("total_change_usd", "usd", "Difference", _difference("spend")),
    Field("change_qualifier", heading="Difference known"),
    Field("total_change_percent", "percent", "Percent", _percent),
    Field("waste_before_usd", "usd", "Avoidable+lost before", _before("waste")),
    Field("waste_usd", "usd", "Avoidable+lost", _figure("waste")),
    Field("waste_change_usd", "usd", "Its difference", _difference("waste")),
    Field("advice", least=_WORD, sentence=True),
)
CHANGES = ListLayout(
    (*(field for field in _COLUMNS if field.name != "period"), *_OF_A_CHANGE),
    (
        *("change", "jobs", "total_before_usd", "total_usd", "total_change_usd"),
        *("waste_usd", "waste_change_usd"),
    ),
    ("waste_usd", "total_before_usd", "jobs", "waste_change_usd", "total_usd"),
)


def of_changes(column: Column, *, advice: bool = False) -> ListLayout:
    """The list of changes by this column; `advice`: with what became of advice."""
    tags = (_of_column(column),) if column.tag else ()
    names = (column.key, *(field.name for field in _OF_A_CHANGE))
    table = (column.key, *CHANGES.table, *(["advice"] if advice else []))
    return replace(CHANGES, fields=(*tags, *CHANGES.fields), table=table, exported=names)


def of_columns(columns: Sequence[Column], sort: Sort, *, median: bool = False) -> ListLayout:
    """The list of sums by these columns, in this order; `median`: with that of the bills."""
    of_time = {field.name for field in _OF_A_PERIOD} if length_of(columns) is None else set()
    names = [column.key for column in columns]
    tags = tuple(_of_column(column) for column in columns if column.tag)
    if SUMMED["usage_type"] in columns:
        known = [field.name for field in _OF_A_USAGE_TYPE]
        table = (*names, "jobs", "usage_quantity", "usage_unit", "total_usd", "share_percent")
        fields = (*tags, *_COLUMNS, *_OF_A_USAGE_TYPE, *_OF_A_PERIOD)
        return ListLayout(fields, table, ("share_percent", "jobs"), (*names, *known))
    known = [field.name for field in (*_OF_SUMS, *_OF_A_PERIOD) if field.name not in of_time]
    table = (*names, *(name for name in BY.table if name in known))
    if median:
        known, table = [*known, "median_usd"], (*table, "median_usd")
    layout = replace(BY, fields=(*tags, *BY.fields), table=table, exported=(*names, *known))
    return by_amount(layout, Sort.WASTE if sort is Sort.NEWEST else sort)


def by_amount(layout: ListLayout, sort: Sort) -> ListLayout:
    """The list with the amount that orders it in its table, whatever else is dropped."""
    name = sort.field
    if sort is Sort.NEWEST:
        return layout
    table = layout.table
    if name not in table:
        table = (*(shown for shown in table if shown != "top_rule"), name)
    order = (*layout.dropped, "total_usd")
    dropped = tuple(dict.fromkeys(of for of in order if of in table and of != name))
    return replace(layout, table=table, dropped=dropped)
