"""The tools that ask the whole history: top jobs, sums, changes, and recommendations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from sageaudit.cli import clock, query_output, recommendations
from sageaudit.cli.mcp_server.answer import (
    MAX_ARGUMENT_LENGTH,
    MONEY_NOTE,
    Answer,
    ServedHistory,
    Tool,
    rows_answer,
)
from sageaudit.cli.query_options import option_name, resolve_rule
from sageaudit.cli.recommendations import RECOMMENDATIONS, RecommendationFilters
from sageaudit.cli.views import lists
from sageaudit.domain.advice.advice import State
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage
from sageaudit.queries import answer as answers
from sageaudit.queries import by as sums
from sageaudit.queries.changes import find_changes, window_before
from sageaudit.queries.columns import FILTERS, Column, make_question, parse_columns
from sageaudit.queries.names import resolve_question
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.window import TIME_FORMATS, parse_window

_ALL_ROWS = "1000"
"""The --limit of commands for the rest of a list that has no --all."""
_RUN_FIELDS = ("job", "ended_at", "status", "family", "owner")
_AMOUNT_FIELDS = (
    *("total_usd", "avoidable_usd", "lost_usd", "waste_usd", "possible_usd", "idle_usd"),
)
_AMOUNT_FACTS = ("spend_qualifier", "lost_up_to_usd")
_JOB_FACTS = ("arn", "account", "region", "kind", "severity", "judged", "instance_type",
              "instance_count", "purchase", "reason", "duration_s")  # fmt: skip


def _filter_schema(column: Column) -> dict[str, Any]:
    kind = "boolean" if column.parse is bool else "number" if column.unit else "string"
    kinds = {"count": "integer", "tag": "object"}
    schema: dict[str, Any] = {
        "type": kinds.get(column.name, kind),
        "description": column.help.removesuffix(" May be repeated."),
    }
    return schema | ({"enum": [*column.choices]} if column.choices else {})


Time = Annotated[str, Meta(max_length=MAX_ARGUMENT_LENGTH)]
_Name = Annotated[str, Meta(max_length=MAX_ARGUMENT_LENGTH)]
Since = Annotated[Time, Meta(description=f"Jobs that ended since this time: {TIME_FORMATS}.")]
_Until = Annotated[Time, Meta(description='Jobs that ended by then; "" means until now.')]
Limit = Annotated[int, Meta(ge=1, le=100, description="Maximum number of rows.")]
_Filters = Annotated[
    dict[str, Any],
    Meta(
        description="Only jobs that match all of these.",
        extra_json_schema={
            "properties": {name: _filter_schema(column) for name, column in FILTERS.items()},
            "additionalProperties": False,
        },
    ),
]
_Columns = Annotated[
    str,
    Meta(
        max_length=MAX_ARGUMENT_LENGTH,
        description="One or two columns, with a comma: rule, family, owner, account, region, kind,"
        " type, count, purchase, status, judged, reason, image, usage_type, a cost tag such as"
        " team, and one of day, week, month.",
    ),
]


class _Window(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    since: Since = "30d"
    until: _Until = ""
    filters: _Filters = {}
    limit: Limit = 10

    def question(
        self, now: datetime, sort: SortOrder, since: str = "", *, with_today: bool = True
    ) -> Question:
        """Returns the question of these arguments. Raises BadUsage."""
        window = parse_window(since or self.since, self.until or None, now, with_today=with_today)
        return make_question(window, sort, dict(_parse_filters(self.filters)))

    def words(self, since: str = "") -> Iterator[str]:
        """Yields the command's options for the time and the filters."""
        yield from ("--since", since or self.since)
        yield from ("--until", self.until) if self.until else ()
        for name, value in _parse_filters(self.filters):
            values = value if isinstance(value, tuple) else (value,)
            for text in values:
                yield option_name(name)
                yield from () if value is True else (text,)


def _parse_filters(filters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields each filter with its value as an option has it. Raises BadUsage."""
    for name, value in filters.items():
        if name not in FILTERS:
            suggestion = did_you_mean(name, FILTERS) or ":"
            raise BadUsage(
                f"there is no filter {name[:MAX_ARGUMENT_LENGTH]}{suggestion} the filters are"
                f" {', '.join(FILTERS)}"
            )
        if value in (None, "", False):
            continue
        is_flag = FILTERS[name].parse is bool
        if is_flag != isinstance(value, bool) or isinstance(value, list):
            raise BadUsage(f"the filter {name} takes {'true or false' if is_flag else 'one value'}")
        if isinstance(value, dict):
            if name != "tag":
                raise BadUsage(f"the filter {name} takes one value")
            yield name, tuple(_short(name, f"{tag}={text}") for tag, text in value.items())
        else:
            text = value if is_flag else _short(name, str(value))
            yield name, resolve_rule(text) if name == "rule" else (text,) if name == "tag" else text


def _short(name: str, text: str) -> str:
    if len(text) > MAX_ARGUMENT_LENGTH:
        raise BadUsage(f"the value of the filter {name} is longer than {MAX_ARGUMENT_LENGTH}")
    return text


class TopJobs(_Window, frozen=True, kw_only=True):
    """The arguments of `top_jobs`."""

    sort: Annotated[
        Literal["waste", "total", "avoidable", "lost", "possible", "idle"],
        Meta(description="waste: avoidable plus lost dollars; total: what a job cost."),
    ] = "total"


def _top_jobs(served: ServedHistory, arguments: TopJobs) -> Answer:
    question = arguments.question(clock.utc_now(), SortOrder(arguments.sort))
    if question.rule is not None:
        raise BadUsage("top_jobs ranks jobs and takes no rule: use spend_by with the filter rule")
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        reader, question = resolve_question(source.history, question)
        page = answers.first_page(reader, question, arguments.limit, only_above_zero=True)
        header = (
            query_output.period_text(question.window)
            if page.rows
            else query_output.empty_result_text(reader, question)
        )
    lines, document = rows_answer(
        page.rows,
        lists.MOST_WASTEFUL,
        (*_RUN_FIELDS, *_AMOUNT_FIELDS, "costliest_rule"),
        (*_JOB_FACTS, *_AMOUNT_FACTS),
    )
    return Answer(
        "\n".join([f"{header}, by {arguments.sort}" if page.rows else header, *lines]),
        document,
        served.command(
            *("top", *arguments.words(), "--sort", arguments.sort, "--limit", _ALL_ROWS),
            *("--output", "json"),
        ),
        [*notes, *query_output.rollup_texts(page.rollup_kinds), MONEY_NOTE],
        page.has_more,
    )


class SpendBy(_Window, frozen=True, kw_only=True):
    """The arguments of `spend_by`. Its default time depends on the columns."""

    columns: _Columns = "family"
    since: Annotated[Since, Meta(description='"": 30d; 56d by week, 180d by month.')] = ""
    sort: Annotated[
        Literal[
            "", "waste", "total", "avoidable", "lost", "possible", "idle",
            "jobs", "failed", "waste_percent", "failed_percent",
        ],
        Meta(description='"": waste; periods in order of time.'),
    ] = "total"  # fmt: skip


def _spend_by(served: ServedHistory, arguments: SpendBy) -> Answer:
    now, columns = clock.utc_now(), parse_columns(arguments.columns)
    length = sums.period_length(columns)
    sort = SortOrder(arguments.sort or SortOrder.NEWEST) if length is None else SortOrder.NEWEST
    since = arguments.since or sums.default_since(columns)
    question = arguments.question(now, sort, since)
    layout = lists.sums_layout(columns, sort)
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        reader, question = resolve_question(source.history, question)
        rows = sums.sum_by(reader, question, columns, today=now.date())
        is_empty = not any(row.jobs or row.costliest_rule for row in rows)
        empty_text = query_output.empty_result_text(reader, question) if is_empty else ""
    shown = rows[-arguments.limit :] if length else rows[: arguments.limit]
    names = tuple(column.key for column in columns)
    if "usage_type" in names:
        lines, document = rows_answer(
            shown, layout, (*names, "jobs", "usage_quantity", "usage_unit", "total_usd"),
            ("spend_qualifier",),
        )  # fmt: skip
        total_lines: list[str] = []
    else:
        lines, document = rows_answer(
            shown, layout, (*names, "jobs", *_AMOUNT_FIELDS, "costliest_rule"),
            ("failed", "waste_percent", *_AMOUNT_FACTS),
        )  # fmt: skip
        total_lines = (
            []
            if "rule" in names or not rows
            else [*query_output.total_lines(rows, is_truncated=True)]
        )
    window = length.extend_to_periods(question.window, now.date()) if length else question.window
    header = [empty_text] if is_empty else [query_output.period_text(window), *total_lines]
    order = () if length or not arguments.sort else ("--sort", arguments.sort)
    return Answer(
        "\n".join([*header, *([] if is_empty else lines)]),
        document,
        served.command(
            *("by", arguments.columns, *arguments.words(since), *order),
            *("--all", "--output", "json"),
        ),
        [*notes, MONEY_NOTE],
        len(shown) < len(rows),
    )


class SpendChanges(_Window, frozen=True, kw_only=True):
    """The arguments of `spend_changes`."""

    since: Since = "7d"
    column: Annotated[_Columns, Meta(description="The column whose values are compared.")] = (
        "family"
    )


def _spend_changes(served: ServedHistory, arguments: SpendChanges) -> Answer:
    now, columns = clock.utc_now(), parse_columns(arguments.column)
    if len(columns) > 1:
        raise BadUsage(f"column {arguments.column}: give one column")
    question = arguments.question(now, SortOrder.NEWEST, with_today=False)
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        reader, question = resolve_question(source.history, question)
        rows = find_changes(reader, question, columns[0], today=now.date())
        empty_text = "" if rows else query_output.empty_result_text(reader, question)
    before = window_before(question.window).text
    if rows and rows[0].jobs_before is None:
        notes.append(f"the history does not cover {before}: only what is gone is marked")
    shown = rows[: arguments.limit]
    lines, document = rows_answer(
        shown,
        lists.changes_layout(columns[0]),
        (columns[0].key, "change", "jobs", "total_before_usd", "total_usd", "total_change_usd",
         "waste_change_usd"),
        ("jobs_before", "spend_qualifier_before", "spend_qualifier", "change_qualifier",
         "waste_before_usd", "waste_usd"),
    )  # fmt: skip
    header = f"Ended {question.window.text} (UTC), compared with {before}"
    return Answer(
        "\n".join([empty_text or header, *lines]),
        document,
        served.command(
            *("changes", *arguments.words(), "--by", arguments.column),
            *("--all", "--output", "json"),
        ),
        [*notes, MONEY_NOTE],
        len(shown) < len(rows),
    )


class ListRecommendations(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The arguments of `list_recommendations`."""

    since: Since = recommendations.DEFAULT_SINCE
    family: Annotated[_Name, Meta(description="A family; its last part is enough.")] = ""
    owner: _Name = ""
    account: _Name = ""
    region: _Name = ""
    state: Annotated[
        Literal["open", "silenced", "followed", "closed", "all"],
        Meta(description="Recommendations in this state."),
    ] = "open"
    limit: Limit = 10


def _list_recommendations(served: ServedHistory, arguments: ListRecommendations) -> Answer:
    names = ("family", "owner", "account", "region")
    given = {name: value for name in names if (value := getattr(arguments, name))}
    filters = RecommendationFilters(since=arguments.since, **given)
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        matching = filters.find_recommendations(source, clock.utc_now())
    is_any = arguments.state == "all"
    rows = [row for row in matching if is_any or row.state is State(arguments.state)]
    lines, document = rows_answer(
        rows[: arguments.limit],
        RECOMMENDATIONS,
        ("id", "state", "family", "owner", "rule", "change", "amount_kind", "month", "runs"),
        ("account", "region", "parameter", "old", "new", "severity", "amount", "last_at",
         "outcome", "until", "reason"),
    )  # fmt: skip
    header = f"{len(rows)} recommendations ({arguments.state}). {filters.days_text}"
    if not rows and matching:
        header += f"\n{len(matching)} are in other states: ask with the state all"
    words = [word for name, value in given.items() for word in (option_name(name), value)]
    state = ("--all",) if is_any else ("--state", arguments.state)
    return Answer(
        "\n".join([header, *lines]),
        document,
        served.command(
            *("advice", "list", "--since", arguments.since, *words, *state, "--output", "json")
        ),
        [
            *notes,
            f'"In 30 days" is what the change would have saved in the runs of that time. Of the kind'
            f" {AmountKind.POSSIBLE.value} it is a possible saving, which only a trial can confirm.",
            MONEY_NOTE,
        ],
        len(rows) > arguments.limit,
    )


HISTORY_TOOLS = (
    Tool(
        "top_jobs",
        "Most expensive or wasteful jobs",
        "Ranks SageMaker jobs by what they cost, or by the dollars that were avoidable, lost,"
        " possible to save, or idle. Jobs with 0 of it are left out.",
        TopJobs,
        _top_jobs,
    ),
    Tool(
        "spend_by",
        "Spend by family, owner, week and more",
        "Adds up the cost and waste of SageMaker jobs by one or two columns, with the total of all"
        " rows. Use it for totals, teams, owners, trends by week, and what each rule found.",
        SpendBy,
        _spend_by,
    ),
    Tool(
        "spend_changes",
        "What costs more or less than before",
        "Compares the spend of a period with the same number of days before it: families (or teams,"
        " owners) that cost more, cost less, are new, returned or gone.",
        SpendChanges,
        _spend_changes,
    ),
    Tool(
        "list_recommendations",
        "What to change",
        "Lists what to change in families of jobs to save money: the parameter and its new value,"
        " and what it would have saved in 30 days. Certain amounts come before possible ones.",
        ListRecommendations,
        _list_recommendations,
    ),
)
