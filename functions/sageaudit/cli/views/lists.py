"""The layouts of all lists: their fields, tables, and what a narrow terminal leaves out.

docs/queries.md describes the fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from sageaudit.cli.views import cells
from sageaudit.cli.views.formats import Field, FieldKind, ListLayout, tag_field
from sageaudit.domain.money import UNKNOWN
from sageaudit.output.text.budget import (
    percent_of_budget,
    projected_figure,
    selector_text,
    spent_figure,
)
from sageaudit.output.text.headline import judged_figure
from sageaudit.output.text.notes import family_text
from sageaudit.output.text.words import NO_OWNER_LABEL, NO_TYPE_LABEL
from sageaudit.queries.by import period_length
from sageaudit.queries.columns import GROUPABLE, Column
from sageaudit.queries.question import SortOrder
from sageaudit.queries.total import SumsRow
from sageaudit.structs import replace

_NAME_WIDTH = 20
_JOB_WIDTH = 32
"""Fits the beginning and the whole timestamp of a generated job name.

`sageaudit show` takes names that were cut, so columns are dropped only if this is not enough.
"""
_FAMILY_WIDTH = 28
_MIN_WORD_WIDTH = 12
_BUDGET_WIDTH = 14


def _column_field(column: Column) -> Field:
    # Its cell is a word if there is no value.
    if column.period_length:
        return Field("period", format_cell=cells.period_label)
    missing_labels = {"owner": NO_OWNER_LABEL, "type": NO_TYPE_LABEL, "reason": "(no reason)"}
    missing_label = (
        f"(no {column.name})" if column.is_tag else missing_labels.get(column.name, UNKNOWN)
    )
    kind: FieldKind = "count" if column.name == "count" else "text"
    field = tag_field(column.key) if column.is_tag else Field(column.key, kind)

    def format_cell(row: SumsRow) -> object:
        value = column.value_of(row)
        return family_text(value) if value and column.name == "family" else value or missing_label

    return replace(
        field,
        get_value=column.value_of,
        format_cell=format_cell,
        min_width=_FAMILY_WIDTH if column.name == "family" else _NAME_WIDTH,
        cut="start" if column.name == "family" else "middle",
    )


_SPEND = (
    Field("total_usd", "usd", "Spend", cells.amount_figure("spend")),
    Field("spend_qualifier"),
)
_SPEND_BEFORE = (
    Field("total_before_usd", "usd", "Spend before", cells.amount_figure_before("spend")),
    Field("spend_qualifier_before"),
)
_SHARES = (
    Field("share_percent", "percent", "Share"),
    Field("cumulative_percent", "percent", "So far"),
)
_AMOUNTS = (
    *_SPEND,
    Field("avoidable_usd", "usd", "Avoidable", cells.amount_figure("avoidable")),
    Field("lost_usd", "usd", "Lost", cells.amount_figure("lost")),
    Field("lost_up_to_usd", "usd"),
    Field("waste_usd", "usd", "Avoidable+lost", cells.amount_figure("waste")),
    Field("possible_usd", "usd", "Possible", cells.amount_figure("possible")),
    Field("idle_usd", "usd", "Idle capacity", cells.amount_figure("idle")),
    Field("costliest_rule", heading="Top finding"),
)


_FAMILY = Field(
    "family",
    format_cell=lambda row: family_text(row.family or UNKNOWN),
    min_width=_FAMILY_WIDTH,
    cut="start",
)
_RUN_FIELDS = (
    Field("ended_at", "time", "Ended", lambda row: f"{row.ended_at:%Y-%m-%d}"),
    Field("job", min_width=_JOB_WIDTH),
    Field("kind"),
    Field("account"),
    Field("region"),
    _FAMILY,
    Field("owner", min_width=_MIN_WORD_WIDTH),
    Field("severity"),
    Field("rollup", "flag", "Roll-up"),
    Field("estimated", "flag"),
    Field("arn", heading="ARN", min_width=_NAME_WIDTH),
    Field("created_at", "time", "Created (UTC)"),
)
_AUDIT_FIELDS = (
    Field("status"),
    *_AMOUNTS,
    Field("findings", "count"),
    Field("judged"),
    Field("settled", "flag"),
    Field("incomplete", "flag"),
    Field("possible_incomplete", "flag"),
    Field("upper_bound", "flag"),
    Field("unauditable", min_width=_NAME_WIDTH),
    Field("instance_type"),
    Field("instance_count", "count"),
    Field("purchase"),
    Field("image", min_width=_NAME_WIDTH),
    Field("duration_s", "seconds", "Duration"),
    Field("waiting_s", "seconds", "Waiting"),
    Field("interrupted_s", "seconds", "Interrupted"),
    Field("reason"),
    Field("waste_percent", "percent", "Waste %", cells.waste_percent_text),
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
_FINDING_FIELDS = (
    Field("rule"),
    Field("rule_id", heading="Id"),
    Field("confidence"),
    Field("bucket"),
    Field("saving_usd", "usd", "Saving", cells.saving_figure("saving_usd", "saving_up_to_usd")),
    Field("saving_up_to_usd", "usd", "At most"),
    Field("saving_alone_usd", "usd", "Alone", cells.saving_figure("saving_alone_usd")),
    Field("summary", heading="Finding", min_width=20, cut="end"),
    Field("fix", min_width=20, cut="end"),
)


def _nested_field(part: str, field: Field) -> Field:
    # The field reads its value from this part of the row.
    get_part, format_cell, getter = attrgetter(part), field.format_cell, field.getter
    return replace(
        field,
        get_value=lambda row: getter(get_part(row)),
        format_cell=None if format_cell is None else lambda row: format_cell(get_part(row)),
    )


AUDITS = ListLayout(
    (*_RUN_FIELDS, *_AUDIT_FIELDS),
    ("ended_at", "job", "total_usd", "avoidable_usd", "lost_usd", "costliest_rule"),
    ("costliest_rule", "ended_at", "lost_usd", "avoidable_usd"),
    has_tags=True,
)
"""Every row of an audit list has every field."""
FINDINGS = ListLayout(
    (
        *(_nested_field("summary", field) for field in _RUN_FIELDS),
        *(_nested_field("finding", field) for field in _FINDING_FIELDS),
        *(_nested_field("summary", field) for field in _AUDIT_FIELDS),
    ),
    ("ended_at", "job", "severity", "saving_usd", "summary"),
    ("summary", "severity", "ended_at"),
    tuple(field.name for field in (*_RUN_FIELDS, *_FINDING_FIELDS)),
    has_tags=True,
)
"""The layout of one rule's findings.

The list stores `exported_fields`. Any other field needs one more read per row.
"""
MOST_WASTEFUL = ListLayout(
    AUDITS.fields,
    ("job", "ended_at", "total_usd", "waste_usd", "costliest_rule", "owner"),
    ("owner", "costliest_rule", "ended_at", "total_usd"),
    has_tags=True,
)
_SUM_FIELDS = (
    Field("jobs", "count"),
    Field("failed", "count"),
    *_AMOUNTS,
    Field("waste_percent", "percent", "Waste %", cells.waste_percent_text),
    Field("failed_percent", "percent", "Failed %"),
    *_SHARES,
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


_COLUMNS = tuple({column.key: _column_field(column) for column in GROUPABLE.values()}.values())
"""The fields of all columns. Day, week and month share one."""
_USAGE_TYPE_FIELDS = (
    Field("jobs", "count"),
    Field("usage_quantity", "hours", "Usage"),
    Field("usage_unit", heading="Unit"),
    *_SPEND,
    *_SHARES,
    Field("unpriced", "count"),
)
_RUN_SUM_FIELDS = (
    Field("instance_hours", "hours"),
    Field("usd_per_hour", "usd", "Per hour", cells.usd_per_hour_figure),
    Field("gpu_hours", "hours", "GPU hours"),
    Field("idle_gpu_hours", "hours", "Idle GPU hours"),
    Field("idle_percent", "percent", "Idle %"),
    Field("storage_usd", "usd"),
    Field("warm_pool_usd", "usd"),
    Field("spot_saved_usd", "usd"),
    Field("median_usd", "usd", "Median bill"),
    Field("median_waiting_s", "seconds", "Median wait"),
)
_PERIOD_FIELDS = (
    Field("weekday"),
    Field("first_day", "day"),
    Field("last_day", "day"),
    Field("over", "flag"),
    Field("projected_usd", "usd", "Projected", cells.projected_figure),
    *_SPEND_BEFORE,
    Field("total_change_percent", "percent", "Change", cells.percent_change("spend")),
    Field("waste_before_usd", "usd", "Avoidable+lost before", cells.amount_figure_before("waste")),
    Field("waste_change_percent", "percent", "Waste change", cells.percent_change("waste")),
)
SUMS = ListLayout(
    (*_COLUMNS, *_SUM_FIELDS, *_RUN_SUM_FIELDS, *_PERIOD_FIELDS),
    (
        *("jobs", "failed", "failed_percent", "total_usd", "total_change_percent", "judged_usd"),
        *("avoidable_usd", "lost_usd", "waste_usd", "waste_percent", "waste_change_percent"),
        *("possible_usd", "idle_usd", "costliest_rule"),
    ),
    (
        *("costliest_rule", "failed_percent", "idle_usd", "possible_usd", "judged_usd", "failed"),
        *("waste_percent", "lost_usd", "avoidable_usd", "jobs", "total_change_percent"),
        "total_usd",
    ),
)
"""The layout of sums, without the columns that they are grouped by."""
_CHANGE_FIELDS = (
    Field("change"),
    Field("jobs_before", "count", "Jobs before"),
    Field("jobs", "count", format_cell=cells.jobs_text),
    *_SPEND_BEFORE,
    *_SPEND,
    Field("total_change_usd", "usd", "Difference", cells.difference("spend")),
    Field("change_qualifier"),
    Field("total_change_percent", "percent", "Percent", cells.spend_change_text),
    Field("waste_before_usd", "usd", "Avoidable+lost before", cells.amount_figure_before("waste")),
    Field("waste_usd", "usd", "Avoidable+lost", cells.amount_figure("waste")),
    Field("waste_change_usd", "usd", "Waste change", cells.difference("waste")),
    Field("recommendations", min_width=_NAME_WIDTH, cut="end"),
)
CHANGES = ListLayout(
    (*(field for field in _COLUMNS if field.name != "period"), *_CHANGE_FIELDS),
    (
        *("change", "jobs", "total_before_usd", "total_usd", "total_change_usd"),
        *("waste_usd", "waste_change_usd"),
    ),
    ("waste_usd", "total_before_usd", "jobs", "waste_change_usd", "total_usd"),
)


def changes_layout(column: Column, *, with_recommendations: bool = False) -> ListLayout:
    """Returns the layout of changes by this column, optionally with recommendations."""
    tags = (_column_field(column),) if column.is_tag else ()
    names = (column.key, *(field.name for field in _CHANGE_FIELDS))
    table = (column.key, *CHANGES.table, *(["recommendations"] if with_recommendations else []))
    return replace(CHANGES, fields=(*tags, *CHANGES.fields), table=table, exported_fields=names)


def sums_layout(
    columns: Sequence[Column], sort: SortOrder, *, with_median: bool = False
) -> ListLayout:
    """Returns the layout of sums by these columns, in this order, optionally with the
    median bill.
    """
    period_fields = (
        {field.name for field in _PERIOD_FIELDS} if period_length(columns) is None else set()
    )
    names = [column.key for column in columns]
    tags = tuple(_column_field(column) for column in columns if column.is_tag)
    if GROUPABLE["usage_type"] in columns:
        exported_names = [field.name for field in _USAGE_TYPE_FIELDS]
        table = (*names, "jobs", "usage_quantity", "usage_unit", "total_usd", "share_percent")
        fields = (*tags, *_COLUMNS, *_USAGE_TYPE_FIELDS, *_PERIOD_FIELDS)
        return ListLayout(fields, table, ("share_percent", "jobs"), (*names, *exported_names))
    exported_names = [
        field.name for field in (*_SUM_FIELDS, *_PERIOD_FIELDS) if field.name not in period_fields
    ]
    table = (*names, *(name for name in SUMS.table if name in exported_names))
    if with_median:
        exported_names, table = [*exported_names, "median_usd"], (*table, "median_usd")
    layout = replace(
        SUMS, fields=(*tags, *SUMS.fields), table=table, exported_fields=(*names, *exported_names)
    )
    return with_sort_column(layout, SortOrder.WASTE if sort is SortOrder.NEWEST else sort)


def with_sort_column(layout: ListLayout, sort: SortOrder) -> ListLayout:
    """Returns the layout with the sort amount in its table. This column is never dropped."""
    name = sort.field
    if sort is SortOrder.NEWEST:
        return layout
    table = layout.table
    if name not in table:
        table = (*(column_name for column_name in table if column_name != "costliest_rule"), name)
    drop_order = (*layout.dropped_first, "total_usd")
    dropped_names = tuple(
        dict.fromkeys(
            column_name
            for column_name in drop_order
            if column_name in table and column_name != name
        )
    )
    return replace(layout, table=table, dropped_first=dropped_names)


BUDGETS = ListLayout(
    (
        Field("budget", min_width=_BUDGET_WIDTH, get_value=lambda month: month.budget.name),
        Field(
            "selector",
            heading="For",
            min_width=_BUDGET_WIDTH,
            format_cell=lambda month: selector_text(month.budget),
            get_value=lambda month: " ".join(filter(None, month.budget.selector)) or None,
        ),
        Field("month", get_value=lambda month: month.label),
        Field(
            "usd_per_month",
            "usd",
            "Per month",
            get_value=lambda month: month.budget.usd_per_month,
        ),
        Field("spent_usd", "usd", "Spent", spent_figure),
        Field("spend_qualifier"),
        Field("spent_percent", "percent", "Used", percent_of_budget),
        Field("projected_usd", "usd", "Projected", projected_figure),
        Field("state"),
        Field("jobs", "count"),
        Field("covered_since", "day"),
        Field("covered_until", "day"),
    ),
    ("budget", "selector", "usd_per_month", "spent_usd", "spent_percent", "projected_usd", "state"),
    ("selector", "projected_usd", "usd_per_month"),
)
