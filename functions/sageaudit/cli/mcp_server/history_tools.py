"""The tools that ask the whole history: top jobs, sums, changes, and recommendations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from sageaudit.cli import clock, query_output, recommendations
from sageaudit.cli.mcp_server.answer import (
    MONEY_NOTE,
    Answer,
    Arguments,
    Name,
    ServedHistory,
    Tool,
    option_words,
    rows_answer,
)
from sageaudit.cli.mcp_server.question_arguments import (
    ARGUMENT_FORMAT,
    Limit,
    QuestionArguments,
    Since,
)
from sageaudit.cli.query_options import option_name
from sageaudit.cli.recommendations import RECOMMENDATIONS, RecommendationFilters
from sageaudit.cli.views import lists
from sageaudit.cli.views.cells import amount_figure_before, difference, row_amounts
from sageaudit.domain.advice.advice import State
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.errors import BadUsage
from sageaudit.output.text.words import count_text
from sageaudit.queries import answer as answers
from sageaudit.queries import by as sums
from sageaudit.queries.changes import SpendChange, find_changes, window_before
from sageaudit.queries.columns import GROUPABLE, parse_columns
from sageaudit.queries.names import resolve_question
from sageaudit.queries.question import SortOrder
from sageaudit.queries.total import SumsRow, combine
from sageaudit.queries.window import parse_window
from sageaudit.structs import replace

_ALL_ROWS = "1000000"
"""The --limit for the rest, since `top` has no --all."""
_AS_JSON = ("--output", "json")
_ALL_AS_JSON = ("--all", *_AS_JSON)
_RUN_FIELDS = ("job", "ended_at", "status", "family", "owner")
_AMOUNTS = ("total_usd", "avoidable_usd", "lost_usd", "waste_usd", "possible_usd", "idle_usd")
_AMOUNT_FACTS = ("spend_qualifier", "lost_up_to_usd")
_JOB_FACTS = (
    *("arn", "account", "region", "kind", "severity", "judged", "instance_type"),
    *("instance_count", "purchase", "reason", "duration_s"),
)
_SUM_FIELDS = ("jobs", "usage_quantity", "usage_unit", *_AMOUNTS, "costliest_rule")
_SUM_FACTS = ("failed", "waste_percent", *_AMOUNT_FACTS)
_CHANGE_FIELDS = (
    *("change", "jobs", "total_before_usd", "total_usd", "total_change_usd"),
    *("waste_usd", "waste_change_usd"),
)
_CHANGE_FACTS = (
    *("jobs_before", "spend_qualifier_before", "spend_qualifier", "change_qualifier"),
    "waste_before_usd",
)
_RECOMMENDATION_FIELDS = (
    *("id", "state", "family", "owner", "rule", "change", "amount_kind", "month", "runs"),
)
_RECOMMENDATION_FACTS = (
    *("account", "region", "parameter", "old", "new", "severity", "amount", "last_at", "outcome"),
    *("until", "reason"),
)
_RULE_NOTE = (
    "a job appears in the row of every rule that found something, so do not add up the spend"
)
_RECOMMENDATION_NOTE = (
    '"In 30 days" is what the change would have saved in the runs of that time, and of a loss the'
    f" most that may be lost. If its kind is {AmountKind.POSSIBLE.value}, it is a possible saving,"
    " which only a trial can confirm."
)


class TopJobs(QuestionArguments, frozen=True):
    """Ranks SageMaker jobs by their avoidable and lost dollars, by what they cost, or by dollars
    that were possible to save or idle. Jobs with $0 of the sorted amount are left out.
    """

    sort: Annotated[
        Literal["waste", "total", "avoidable", "lost", "possible", "idle"],
        Meta(description="waste: avoidable plus lost dollars; total: what a job cost."),
    ] = "waste"


def top_jobs(served: ServedHistory, arguments: TopJobs) -> Answer:
    """Answers as `sageaudit top` does."""
    question = arguments.question(SortOrder(arguments.sort))
    if question.rule is not None:
        raise BadUsage("top_jobs ranks jobs and takes no rule: use spend_by with the filter rule")
    today, notes = clock.utc_now().date(), list[str]()
    with served.choice.open(notes.append) as source:
        reader, question = resolve_question(source.history, question)
        page = answers.first_page(reader, question, arguments.limit, only_above_zero=True)
        header = [query_output.empty_result_text(reader, question)]
        if page.rows:
            sums_rows = sums.sum_by(reader, question, [GROUPABLE["region"]], today=today)
            total = combine(sums_rows)
            header = [
                f"{query_output.period_text(question.window)}, by {_title(question.sort)}",
                f"In all: {query_output.total_text(total)}",
                *_possible_lines(total),
            ]
    order = ("--sort", arguments.sort, "--limit", _ALL_ROWS)
    return rows_answer(
        header,
        page.rows,
        lists.MOST_WASTEFUL,
        (*_RUN_FIELDS, *_AMOUNTS, "costliest_rule"),
        (*_JOB_FACTS, *_AMOUNT_FACTS),
        served.command("top", *arguments.words(), *order, *_AS_JSON),
        [*notes, *query_output.rollup_texts(page.rollup_kinds), MONEY_NOTE],
        is_shortened=page.has_more,
    )


class SpendBy(QuestionArguments, frozen=True):
    """Adds up the cost and waste of SageMaker jobs by one or two columns, with the total of all
    rows. Use it for totals, owners, teams, trends by week, and what each rule found.
    """

    columns: Annotated[
        Name,
        Meta(
            description=f"One or two of {', '.join(GROUPABLE)}, or a cost tag such as team; with a"
            " comma between them."
        ),
    ] = "family"
    since: Annotated[Name, Meta(description='"": 30d; 56d by week, 180d by month.')] = ""
    sort: Annotated[
        Literal[
            "waste",
            "total",
            "avoidable",
            "lost",
            "possible",
            "idle",
            "jobs",
            "failed",
            "waste_percent",
            "failed_percent",
        ],
        Meta(description="The largest first. Periods are always in order of time."),
    ] = "waste"


def spend_by(served: ServedHistory, arguments: SpendBy) -> Answer:
    """Answers as `sageaudit by` does."""
    today, columns = clock.utc_now().date(), parse_columns(arguments.columns)
    length, since = sums.period_length(columns), arguments.since or sums.default_since(columns)
    sort = SortOrder.NEWEST if length else SortOrder(arguments.sort)
    question = arguments.question(sort, since)
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        reader, question = resolve_question(source.history, question)
        rows = sums.sum_by(reader, question, columns, today=today)
        window = length.extend_to_periods(question.window, today) if length else question.window
        header = [query_output.period_text(window)]
        if not any(row.jobs or row.costliest_rule for row in rows):
            header, rows = [query_output.empty_result_text(reader, question)], []
    names = [column.key for column in columns]
    if "rule" in names:
        notes.append(_RULE_NOTE)
    elif rows:
        header += query_output.total_lines(rows, is_truncated=True)
        header += _possible_lines(combine(rows))
    layout = lists.sums_layout(columns, sort)
    order = () if length else ("--sort", arguments.sort)
    return rows_answer(
        header,
        rows[-arguments.limit :] if length else rows[: arguments.limit],
        layout,
        [*names, *(name for name in _SUM_FIELDS if name in layout.exported_fields)],
        [name for name in _SUM_FACTS if name in layout.exported_fields],
        served.command(
            "by", arguments.columns, *arguments.words(since), *order, "--all", *_AS_JSON
        ),
        [*notes, MONEY_NOTE],
        is_shortened=len(rows) > arguments.limit,
    )


class SpendChanges(QuestionArguments, frozen=True):
    """Compares the spend of a period with the same number of days before it: families (or owners,
    teams) that cost more, cost less, are new, returned or gone.
    """

    since: Since = "7d"
    column: Annotated[Name, Meta(description="The column whose values are compared.")] = "family"


def spend_changes(served: ServedHistory, arguments: SpendChanges) -> Answer:
    """Answers as `sageaudit changes` does."""
    [column, *other_columns] = parse_columns(arguments.column)
    if other_columns:
        raise BadUsage(f"column {arguments.column}: give one column")
    question = arguments.question(SortOrder.NEWEST, with_today=False)
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        reader, question = resolve_question(source.history, question)
        rows = find_changes(reader, question, column, today=clock.utc_now().date())
        before = window_before(question.window).text
        header = [f"Ended {question.window.text} (UTC), compared with {before}"]
        if not rows:
            header = [query_output.empty_result_text(reader, question)]
    if column.name == "rule":
        notes.append(_RULE_NOTE)
    elif rows:
        header.append(_change_total_line(rows))
    if rows and rows[0].jobs_before is None:
        notes.append(
            f"the history does not cover {before}, so new and changed families are not marked"
        )
    return rows_answer(
        header,
        rows[: arguments.limit],
        lists.changes_layout(column),
        (column.key, *_CHANGE_FIELDS),
        _CHANGE_FACTS,
        served.command("changes", *arguments.words(), "--by", arguments.column, *_ALL_AS_JSON),
        [*notes, MONEY_NOTE],
        is_shortened=len(rows) > arguments.limit,
    )


class ListRecommendations(Arguments, frozen=True):
    """Lists what to change in families of jobs to save money: the parameter and its new value, and
    what it would have saved in 30 days. Certain amounts come before possible ones.
    """

    since: Since = recommendations.DEFAULT_SINCE
    family: Annotated[Name, Meta(description="A family; its last part is enough.")] = ""
    owner: Name = ""
    account: Name = ""
    region: Name = ""
    state: Literal["open", "silenced", "followed", "closed", "all"] = "open"
    limit: Limit = 10


def list_recommendations(served: ServedHistory, arguments: ListRecommendations) -> Answer:
    """Answers as `sageaudit advice list` does."""
    names = ("since", "family", "owner", "account", "region")
    given = {name: value for name in names if (value := getattr(arguments, name))}
    parse_window(arguments.since, None, clock.utc_now(), option_format=ARGUMENT_FORMAT)
    filters = RecommendationFilters(**given)
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        matching = filters.find_recommendations(source, clock.utc_now())
    rows = [
        row for row in matching if arguments.state in {row.state.value, recommendations.ANY_STATE}
    ]
    header = [*recommendations.open_sums_lines(rows), filters.days_text]
    if arguments.state != State.OPEN.value or not rows:
        header.insert(0, f"{count_text(len(rows), 'recommendation')} in state {arguments.state}")
    if len(rows) < len(matching):
        header.append(f"{len(matching) - len(rows)} in other states")
    options = option_words({option_name(name): value for name, value in given.items()})
    return rows_answer(
        header,
        rows[: arguments.limit],
        RECOMMENDATIONS,
        _RECOMMENDATION_FIELDS,
        _RECOMMENDATION_FACTS,
        served.command("advice", "list", *options, "--state", arguments.state, *_ALL_AS_JSON),
        [*notes, _RECOMMENDATION_NOTE, MONEY_NOTE],
        is_shortened=len(rows) > arguments.limit,
    )


def _title(sort: SortOrder) -> str:
    return next(field.title for field in lists.MOST_WASTEFUL.fields if field.name == sort.field)


def _possible_lines(total: SumsRow) -> list[str]:
    possible = row_amounts(total).possible
    return [] if total.is_usage_type else [f"Possible savings, not included: {possible}"]


def _change_total_line(rows: Sequence[SpendChange]) -> str:
    """Returns the sums of all rows, and of the days before if the history covers them."""
    before = combine(row.before for row in rows if row.before)
    is_covered = rows[0].jobs_before is not None
    total = replace(rows[0], sums=combine(rows).sums, before=before if is_covered else None)
    spent_before, change = (
        str(get_figure(total))
        for get_figure in (amount_figure_before("spend"), difference("spend"))
    )
    total_text = query_output.total_text(total)
    return f"all {len(rows):,} rows: {total_text}; before: {spent_before} spent, change {change}"


HISTORY_TOOLS = (
    Tool("Most wasteful jobs", TopJobs, top_jobs),
    Tool("Spend by family, owner, week and more", SpendBy, spend_by),
    Tool("What costs more or less than before", SpendChanges, spend_changes),
    Tool("What to change", ListRecommendations, list_recommendations),
)
