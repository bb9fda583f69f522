"""Sums by columns: the same from daily sums as from audits, and the same as of the rows."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RuleFinding
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage
from sageaudit.ports import History
from sageaudit.queries import answer
from sageaudit.queries.answer import ListRow
from sageaudit.queries.by import period_length, sum_by
from sageaudit.queries.columns import GROUPABLE, Column, parse_columns
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.total import SumsRow
from sageaudit.queries.window import Window, make_window
from sageaudit.structs import replace
from tests.fakes.entries import entry_ending_at, finding
from tests.fakes.random_history import ACCOUNTS, NOW, RULES, cached_reads, fill

TODAY = NOW.date()
WINDOW = Window(datetime(2026, 11, 11, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))
COLUMNS = [
    *(name for name in GROUPABLE if name != "usage_type"),
    "family,region",
    "owner,week",
    "type,day",
    "rule,month",
    "team",
    "project,week",
]
"""Without usage types, which no row of a list has: `tests/cli/test_by_usage_type.py`."""
FILTERS: list[dict[str, Any]] = [
    {},
    {"family": "training/bert"},
    {"owner": "ana", "region": "us-east-1"},
    {"account": ACCOUNTS[0], "kind": JobKind.TRAINING},
    {"status": "failed", "family": "training/resnet"},
    {"severity": Severity.HIGH, "owner": "bo"},
    {"min_usd": Decimal(3)},
    {"rule": "gpu-idle"},
    {"tag": {"team": "growth"}},
    {"tag": {"team": ""}, "rule": "gpu-idle"},
    {"count": 2, "type": "ml.g5.xlarge", "purchase": "spot"},
    {"rule": "spot-not-used", "status": "Failed"},
    {"rule": "failed-spend", "severity": Severity.HIGH, "min_usd": Decimal(1)},
]
_ZERO = Decimal(0)
Sums = dict[tuple[object, ...], list[Decimal | int]]


@pytest.fixture(scope="module")
def history() -> Iterator[History]:
    """90 audits of a week and a half."""
    with SqliteHistory() as file:
        fill(file, 90, days=10)
        yield cached_reads(file)


def of_rows(lists: HistoryLists, question: Question, columns: tuple[Column, ...]) -> Sums:
    """The sums of a list's rows: jobs, failed jobs, spend, waste and possible dollars."""
    sums: Sums = defaultdict(lambda: [0, 0, _ZERO, _ZERO, _ZERO])
    for row in rows_of(lists, question, columns):
        values = tuple(value(row, column) for column in columns)
        audit = row.summary if isinstance(row, RuleFinding) else row
        added = (int(not audit.rollup), int(not audit.rollup and audit.status == "Failed"))
        for at, amount in enumerate((*added, audit.total_usd, *wasted(row))):
            sums[values][at] += amount or 0
    return sums


def rows_of(
    lists: HistoryLists, question: Question, columns: tuple[Column, ...]
) -> Iterator[ListRow]:
    """The rows of the question; by rule, the findings of each in these rows."""
    rows = [*answer.iterate_rows(lists, question, with_summaries=True)]
    if question.rule is not None or GROUPABLE["rule"] not in columns:
        return iter(rows)
    keys = {row.key for row in rows}
    findings = (
        answer.iterate_rows(lists, Question.with_filters(WINDOW, rule=rule), with_summaries=True)
        for rule in RULES
    )
    return (row for row in chain.from_iterable(findings) if row.key in keys)


def value(row: ListRow, column: Column) -> object:
    """What a row has in a column."""
    if isinstance(row, RuleFinding):
        return row.finding.rule if column.name == "rule" else value(row.summary, column)
    if column.length is None:
        return column.value_of(row)
    return column.length.label(column.length.first_day(row.ended_at.date()))


def wasted(row: ListRow) -> tuple[Decimal | None, Decimal | None]:
    """Avoidable and lost, and possible dollars; of a finding, its saving is one of both."""
    if not isinstance(row, RuleFinding):
        return row.waste_usd, row.possible_usd
    saving_usd = row.finding.saving_usd
    return (saving_usd, None) if row.finding.bucket.is_counted else (None, saving_usd)


def of_totals(totals: list[SumsRow], columns: tuple[Column, ...]) -> Sums:
    """The same of sums."""
    names = ("jobs", "failed", "total_usd", "waste_usd", "possible_usd")
    return {
        tuple(column.value_of(total) for column in columns): [
            getattr(total, name) or 0 for name in names
        ]
        for total in totals
    }


def told(sums: Sums) -> Sums:
    """Without the values that nothing has."""
    return {values: amounts for values, amounts in sums.items() if any(amounts)}


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("text", COLUMNS)
def test_sums_are_those_of_the_rows(history: History, text: str, filters: dict[str, Any]) -> None:
    """By each column, with each filter."""
    lists, columns = HistoryLists(history, WINDOW), parse_columns(text)
    question = Question.with_filters(WINDOW, **filters)
    # periods are whole, so their first rows are older than the window
    length = period_length(columns)
    first = length.first_day(WINDOW.first_day) if length else WINDOW.first_day
    whole = lists.in_window(make_window(first, WINDOW.until.date()))
    expected = told(of_rows(whole, question, columns))
    assert told(of_totals(sum_by(lists, question, columns, today=TODAY), columns)) == expected
    assert expected or len(filters) > 1


def test_daily_sums_answer_without_reading_an_audit(history: History) -> None:
    """Where they know the columns and the filters; a time of day they do not know."""
    cases: tuple[tuple[str, dict[str, Any], bool], ...] = (
        ("family,month", {"family": "training/bert", "account": ACCOUNTS[0]}, False),
        ("region,account", {"owner": "ana"}, False),
        ("type", {}, False),
        ("type", {"owner": "ana"}, True),
        ("kind", {}, True),
    )
    for text, filters, read in cases:
        lists = HistoryLists(history, WINDOW)
        sum_by(lists, Question.with_filters(WINDOW, **filters), parse_columns(text), today=TODAY)
        assert bool(lists.read_counts.rows) is read, text
    noon = HistoryLists(history, replace(WINDOW, until=NOW))
    sum_by(noon, Question(noon.window), [GROUPABLE["family"]], today=TODAY)
    assert noon.read_counts.rows


@pytest.fixture
def weeks() -> Iterator[SqliteHistory]:
    """$2 a job, $1 of it avoidable by gpu-idle, on five days of October and November."""
    with SqliteHistory() as history:
        for day, month in ((26, 10), (2, 11), (9, 11), (16, 11), (19, 11)):
            found = [finding("gpu-idle", saving_usd=Decimal(1))]
            at = datetime(2026, month, day, 9, tzinfo=UTC)
            history.record(
                entry_ending_at(f"day-{day}", at, findings=found, bill={"total_usd": Decimal(2)})
            )
        yield history


def asked(history: History, text: str, since: date, **filters: Any) -> list[SumsRow]:
    """The sums since a day."""
    start = datetime(since.year, since.month, since.day, tzinfo=UTC)
    window = replace(WINDOW, since=start)
    return sum_by(
        HistoryLists(history, window),
        Question.with_filters(window, **filters),
        parse_columns(text),
        today=TODAY,
    )


def test_each_week_is_compared_with_the_one_before(weeks: History) -> None:
    """One that lasts with as many days, here Monday to Friday, and with what it may come to."""
    rows = asked(weeks, "week", date(2026, 10, 28))
    assert [
        (row.period, row.total_usd, row.total_change_percent, row.waste_change_percent, row.over)
        for row in rows
    ] == [
        ("2026-W44", 2, None, None, True),
        ("2026-W45", 2, 0, 0, True),
        ("2026-W46", 2, 0, 0, True),
        ("2026-W47", 4, 100, 100, False),
    ]
    assert [row.projected_usd for row in rows] == [None, None, None, 7]
    assert (rows[0].first_day, rows[0].last_day) == (date(2026, 10, 26), date(2026, 11, 1))


def test_a_projection_counts_a_day_that_is_not_over_as_it_is(weeks: History) -> None:
    """Monday to Thursday cost $4. A Friday that has cost $6 so far stays $6, and the two days left
    cost $1 each, as the days that are over did on average.
    """
    today = datetime(TODAY.year, TODAY.month, TODAY.day, 9, tzinfo=UTC)
    weeks.record(entry_ending_at("today", today, bill={"total_usd": Decimal(6)}))
    newest = asked(weeks, "week", date(2026, 11, 16))[-1]
    assert (newest.total_usd, newest.projected_usd) == (10, 12)


def test_nothing_is_compared_with_days_before_the_history(weeks: History) -> None:
    """October has audits from its 26th day on: no month can be compared with it or with less."""
    october, november = asked(weeks, "month", date(2026, 10, 1))
    assert (october.total_usd, october.total_before_usd, october.waste_before_usd) == (
        2,
        None,
        None,
    )
    assert (november.total_usd, november.total_before_usd) == (8, None)
    assert [row.total_before_usd for row in asked(weeks, "day", date(2026, 10, 25))[:2]] == [
        None,
        2,
    ]


def test_a_rule_that_could_not_judge_has_unknown_dollars(weeks: SqliteHistory) -> None:
    """So has a rule that found nothing in any of the periods; others have known zeros."""
    at = datetime(2026, 9, 30, 9, tzinfo=UTC)
    unjudged: dict[str, Any] = {"judged": "no", "avoidable_usd": None, "findings": []}
    weeks.record(entry_ending_at("unjudged", at, **unjudged))
    known = asked(weeks, "week", date(2026, 9, 28), rule="gpu-idle")
    assert [row.waste_usd for row in known] == [None, 0, 0, 0, 1, 1, 1, 2]
    never = asked(weeks, "week", date(2026, 9, 28), rule="idle-tail")
    assert {(row.jobs, row.waste_usd, row.possible_usd) for row in never} == {(0, None, None)}


def test_the_order_is_that_of_time_or_of_the_dollars_asked_for(history: History) -> None:
    """Without a period, the most waste first."""
    for sort in (SortOrder.NEWEST, SortOrder.WASTE, SortOrder.TOTAL, SortOrder.POSSIBLE):
        name = f"{'waste' if sort is SortOrder.NEWEST else sort.value}_usd"
        rows = sum_by(
            HistoryLists(history, WINDOW),
            Question(WINDOW, sort=sort),
            [GROUPABLE["family"]],
            today=TODAY,
        )
        usd = [getattr(row, name) for row in rows]
        assert usd == sorted(usd, reverse=True)
    periods = asked(history, "day", date(2026, 11, 10))
    assert [row.first_day for row in periods] == sorted(row.first_day or TODAY for row in periods)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "give one column or two"),
        ("family,owner,kind", "give one column or two"),
        ("week,month", "only one of day, week and month"),
        ("family,family", "give one column or two"),
    ],
)
def test_columns_that_cannot_be_are_refused(text: str, said: str) -> None:
    """In one sentence."""
    with pytest.raises(BadUsage, match=said):
        parse_columns(text)


def test_a_word_is_a_column_where_audits_have_such_a_tag(history: History) -> None:
    """Any other is refused, with the nearest one and with the cost tags of these audits."""
    for word, said in (
        ("famly", "did you mean family?"),
        ("teem", r"mean team\?.* project, team$"),
    ):
        with pytest.raises(BadUsage, match=f"there is no column '{word}'.*{said}"):
            sum_by(
                HistoryLists(history, WINDOW), Question(WINDOW), parse_columns(word), today=TODAY
            )
