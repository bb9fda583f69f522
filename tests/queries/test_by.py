"""Sums by columns are the same from daily sums, from audits, and from the rows of lists."""

import gc
import statistics
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RuleFinding
from sageaudit.domain.audit.sum_parts import RunFigures, SumPart
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage
from sageaudit.ports import History
from sageaudit.queries import answer
from sageaudit.queries.answer import ListRow
from sageaudit.queries.by import period_length, sum_by
from sageaudit.queries.columns import FILTERS as ALL_FILTERS
from sageaudit.queries.columns import GROUPABLE, Column, parse_columns
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.total import RunTotals, SumsRow
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
EACH_FILTER: dict[str, dict[str, Any]] = {
    "rule": {"rule": "gpu-idle"},
    "family": {"family": "training/bert"},
    "owner": {"owner": "ana"},
    "account": {"account": ACCOUNTS[0]},
    "region": {"region": "eu-west-1"},
    "kind": {"kind": JobKind.TRAINING},
    "type": {"type": "ml.g5.xlarge"},
    "count": {"count": 2},
    "purchase": {"purchase": "spot"},
    "status": {"status": "failed"},
    "judged": {"judged": "no"},
    "reason": {"reason": "code error"},
    "image": {"image": "pytorch"},
    "tag": {"tag": {"team": "growth"}},
    "no_owner": {"no_owner": True},
    "severity": {"severity": Severity.HIGH},
    "min_usd": {"min_usd": Decimal(3)},
    "min_percent": {"min_percent": Decimal(30)},
    "min_bill": {"min_bill": Decimal(6)},
    "min_hours": {"min_hours": Decimal("0.5")},
    "no_price": {"no_price": True},
    "interrupted": {"interrupted": True},
}
"""A value of each filter."""
NOT_IN_THIS_HISTORY = {"reason", "image", "min_hours", "interrupted"}
"""Filters that all audits pass, or none."""
_ZERO = Decimal(0)
Sums = dict[tuple[object, ...], list[Decimal | int]]


@pytest.fixture(scope="module")
def history() -> Iterator[History]:
    """Yields 90 audits of a week and a half."""
    with SqliteHistory() as file:
        fill(file, 90, days=10)
        yield cached_reads(file)


def sums_of_rows(lists: HistoryLists, question: Question, columns: tuple[Column, ...]) -> Sums:
    """Returns the sums of a list's rows: jobs, failed jobs, spend, waste and possible dollars."""
    sums: Sums = defaultdict(lambda: [0, 0, _ZERO, _ZERO, _ZERO])
    for row in question_rows(lists, question, columns):
        values = tuple(column_value(row, column) for column in columns)
        audit = row.summary if isinstance(row, RuleFinding) else row
        added = (int(not audit.rollup), int(not audit.rollup and audit.status == "Failed"))
        for at, amount in enumerate((*added, audit.total_usd, *waste_and_possible(row))):
            sums[values][at] += amount or 0
    return sums


def question_rows(
    lists: HistoryLists, question: Question, columns: tuple[Column, ...]
) -> Iterator[ListRow]:
    """Yields the rows of the question; by rule, the findings of each rule in these rows."""
    rows = [*answer.iterate_rows(lists, question, with_summaries=True)]
    if question.rule is not None or GROUPABLE["rule"] not in columns:
        return iter(rows)
    keys = {row.key for row in rows}
    findings = (
        answer.iterate_rows(lists, Question.with_filters(WINDOW, rule=rule), with_summaries=True)
        for rule in RULES
    )
    return (row for row in chain.from_iterable(findings) if row.key in keys)


def column_value(row: ListRow, column: Column) -> object:
    """Returns a row's value of a column."""
    if isinstance(row, RuleFinding):
        return row.finding.rule if column.name == "rule" else column_value(row.summary, column)
    if column.period_length is None:
        return column.value_of(row)
    return column.period_length.label(column.period_length.first_day(row.ended_at.date()))


def waste_and_possible(row: ListRow) -> tuple[Decimal | None, Decimal | None]:
    """Returns avoidable plus lost, and possible dollars; a finding's saving is one of both."""
    if not isinstance(row, RuleFinding):
        return row.waste_usd, row.possible_usd
    saving_usd = row.finding.saving_usd
    return (saving_usd, None) if row.finding.bucket.is_counted else (None, saving_usd)


def sums_of_totals(totals: list[SumsRow], columns: tuple[Column, ...]) -> Sums:
    """Returns the same of sums."""
    names = ("jobs", "failed", "total_usd", "waste_usd", "possible_usd")
    return {
        tuple(column.value_of(total) for column in columns): [
            getattr(total, name) or 0 for name in names
        ]
        for total in totals
    }


def without_zeros(sums: Sums) -> Sums:
    """Returns the sums without the values that nothing has."""
    return {values: amounts for values, amounts in sums.items() if any(amounts)}


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("text", COLUMNS)
def test_sums_are_those_of_the_rows(history: History, text: str, filters: dict[str, Any]) -> None:
    """This holds by each column and with each filter."""
    lists, columns = HistoryLists(history, WINDOW), parse_columns(text)
    question = Question.with_filters(WINDOW, **filters)
    # periods are whole, so their first rows are older than the window
    length = period_length(columns)
    first = length.first_day(WINDOW.first_day) if length else WINDOW.first_day
    whole_window = lists.in_window(make_window(first, WINDOW.until.date()))
    expected = without_zeros(sums_of_rows(whole_window, question, columns))
    assert (
        without_zeros(sums_of_totals(sum_by(lists, question, columns, today=TODAY), columns))
        == expected
    )
    assert expected or len(filters) > 1


@pytest.mark.parametrize("name", ALL_FILTERS)
def test_each_filter_reads_the_fields_that_it_needs(history: History, name: str) -> None:
    """So it selects the same audits for sums as for lists, some of all but not all."""
    question = Question.with_filters(WINDOW, **EACH_FILTER[name])
    lists, columns = HistoryLists(history, WINDOW), parse_columns("kind")
    expected = sums_of_rows(lists, question, columns)
    totals = sum_by(lists, question, columns, today=TODAY)
    assert without_zeros(sums_of_totals(totals, columns)) == without_zeros(expected)
    everything = sums_of_rows(lists, Question(WINDOW), columns)
    assert name in NOT_IN_THIS_HISTORY or 0 < jobs_of(expected) < jobs_of(everything)


def jobs_of(sums: Sums) -> int:
    """Returns the number of jobs in all sums."""
    return int(sum(amounts[0] or 0 for amounts in sums.values()))


@pytest.mark.parametrize("text", ["image", "rule", "usage_type", "team,week"])
def test_no_audit_is_kept_while_audits_are_summed(history: History, text: str) -> None:
    """Each is read once, and forgotten before the next but one is read."""
    kept_counts, read_count = [], 0

    def counted_parts(*words: Any, **more: Any) -> Iterator[SumPart]:
        nonlocal read_count
        for part in history.sum_parts(*words, **more):
            read_count += 1
            yield part
            kept_counts.append(sum(type(thing) is SumPart for thing in gc.get_objects()))

    only_parts: Any = SimpleNamespace(sum_parts=counted_parts, daily_sums=history.daily_sums)
    lists = HistoryLists(only_parts, WINDOW)
    rows = sum_by(lists, Question(WINDOW), parse_columns(text), today=TODAY)
    assert read_count >= lists.read_counts.rows >= max(row.jobs for row in rows) > 0
    assert max(kept_counts) <= min(kept_counts) + 1


@given(st.lists(st.integers(0, 10**12), max_size=7), st.lists(st.integers(0, 10**6), max_size=7))
def test_medians_and_sums_of_figures_are_exact(bills: list[int], waits: list[int]) -> None:
    """They are those of the bills above $0, and of all waiting times."""
    totals, half = RunTotals(), RunTotals()
    for micro_usd in bills:
        totals.add_run(RunFigures(total_micro_usd=micro_usd, instance_s=5), is_rollup=False)
    for wait_s in waits:
        half.add_run(RunFigures(waiting_s=wait_s), is_rollup=True)
    totals.add(half)
    fields, above_zero = totals.fields(), [Decimal(bill).scaleb(-6) for bill in bills if bill]
    assert fields["median_usd"] == (statistics.median(above_zero) if above_zero else None)
    assert fields["median_waiting_s"] == (round(statistics.median(waits)) if waits else None)
    hours = Decimal(5 * len(bills)) / 3600 if bills else None
    assert (fields["instance_hours"], fields["gpu_hours"]) == (hours, None)


def test_daily_sums_answer_without_reading_an_audit(history: History) -> None:
    """They have the columns and the filters; they do not know a time of day."""
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
    """Yields jobs of $2, of which gpu-idle could save $1, on five days of October and November."""
    with SqliteHistory() as history:
        for day, month in ((26, 10), (2, 11), (9, 11), (16, 11), (19, 11)):
            result = [finding("gpu-idle", saving_usd=Decimal(1))]
            at = datetime(2026, month, day, 9, tzinfo=UTC)
            history.record(
                entry_ending_at(f"day-{day}", at, findings=result, bill={"total_usd": Decimal(2)})
            )
        yield history


def sums_since(history: History, text: str, since: date, **filters: Any) -> list[SumsRow]:
    """Returns the sums since a day."""
    start = datetime(since.year, since.month, since.day, tzinfo=UTC)
    window = replace(WINDOW, since=start)
    return sum_by(
        HistoryLists(history, window),
        Question.with_filters(window, **filters),
        parse_columns(text),
        today=TODAY,
    )


def test_each_week_is_compared_with_the_one_before(weeks: History) -> None:
    """The current week is compared with the same days, Monday to Friday, and has a projection."""
    rows = sums_since(weeks, "week", date(2026, 10, 28))
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


def test_a_projection_counts_today_as_it_is(weeks: History) -> None:
    """Monday to Thursday cost $4.

    A Friday that has cost $6 so far stays $6. The two remaining days cost $1 each, the average of
    the finished days.
    """
    today = datetime(TODAY.year, TODAY.month, TODAY.day, 9, tzinfo=UTC)
    weeks.record(entry_ending_at("today", today, bill={"total_usd": Decimal(6)}))
    newest = sums_since(weeks, "week", date(2026, 11, 16))[-1]
    assert (newest.total_usd, newest.projected_usd) == (10, 12)


def test_nothing_is_compared_with_days_before_the_history(weeks: History) -> None:
    """October has audits from its 26th day on, so no month can be compared with it or with earlier
    ones.
    """
    october, november = sums_since(weeks, "month", date(2026, 10, 1))
    assert (october.total_usd, october.total_before_usd, october.waste_before_usd) == (
        2,
        None,
        None,
    )
    assert (november.total_usd, november.total_before_usd) == (8, None)
    assert [row.total_before_usd for row in sums_since(weeks, "day", date(2026, 10, 25))[:2]] == [
        None,
        2,
    ]


def test_a_rule_that_could_not_judge_has_unknown_dollars(weeks: SqliteHistory) -> None:
    """So has a rule that found nothing in any of the periods; other rules have zeros."""
    at = datetime(2026, 9, 30, 9, tzinfo=UTC)
    unjudged: dict[str, Any] = {"judged": "no", "avoidable_usd": None, "findings": []}
    weeks.record(entry_ending_at("unjudged", at, **unjudged))
    known_values = sums_since(weeks, "week", date(2026, 9, 28), rule="gpu-idle")
    assert [row.waste_usd for row in known_values] == [None, 0, 0, 0, 1, 1, 1, 2]
    never = sums_since(weeks, "week", date(2026, 9, 28), rule="idle-tail")
    assert {(row.jobs, row.waste_usd, row.possible_usd) for row in never} == {(0, None, None)}


def test_the_order_is_by_time_or_by_the_chosen_amount(history: History) -> None:
    """Without a period, the most waste is first."""
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
    periods = sums_since(history, "day", date(2026, 11, 10))
    assert [row.first_day for row in periods] == sorted(row.first_day or TODAY for row in periods)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "give one or two columns"),
        ("family,owner,kind", "give one or two columns"),
        ("week,month", "only one of day, week and month"),
        ("family,family", "give one or two columns"),
    ],
)
def test_invalid_columns_are_refused(text: str, message: str) -> None:
    """The error is one sentence."""
    with pytest.raises(BadUsage, match=message):
        parse_columns(text)


def test_a_word_is_a_column_if_audits_have_such_a_tag(history: History) -> None:
    """Other words are refused, with a suggestion and the cost tags of these audits."""
    for word, message in (
        ("famly", "did you mean family?"),
        ("teem", r"mean team\?.* 'project', 'team'$"),
    ):
        with pytest.raises(BadUsage, match=f"there is no column '{word}'.*{message}"):
            sum_by(
                HistoryLists(history, WINDOW), Question(WINDOW), parse_columns(word), today=TODAY
            )
