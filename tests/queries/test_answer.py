"""Each question is answered from one list, and compared with an answer from all rows."""

from datetime import timedelta
from decimal import Decimal
from itertools import product

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RuleFinding, RunIndex, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.queries import answer
from sageaudit.queries.columns import make_row_filter
from sageaudit.queries.lists import HistoryLists, as_list_row, sort_amount, sort_key
from sageaudit.queries.question import AMOUNT_SORTS, Question, SortOrder
from sageaudit.queries.window import Window, parse_window
from sageaudit.structs import replace
from tests.fakes.random_history import ACCOUNTS, NOW, REGIONS, RULES, fill

MONTH = parse_window("30d", None, NOW)
ODD = Window(NOW - timedelta(days=20, hours=3), NOW - timedelta(days=2, hours=7))


@pytest.fixture(scope="module")
def history() -> SqliteHistory:
    """Yields 120 audits of 40 days."""
    made = SqliteHistory()
    fill(made, 120)
    return made


def lists_of(history: SqliteHistory, question: Question) -> HistoryLists:
    """Returns the lists of a question's window."""
    return HistoryLists(history, question.window)


def all_summaries(history: SqliteHistory) -> list[AuditSummary]:
    """Returns all summaries, newest first."""
    days = [(NOW + timedelta(days=2) - timedelta(days=n)).date() for n in range(60)]
    return [head for day in days for head in history.runs(RunQuery.for_day(day))]


def all_findings(
    history: SqliteHistory, question: Question, *, with_heads: bool = False
) -> list[RuleFinding]:
    """Returns the rows of a question with a rule."""
    rule, lists = question.rule or "", lists_of(history, question)
    return list(answer.iterate_findings(lists, question, rule, with_summaries=with_heads))


def expected_rows(history: SqliteHistory, question: Question) -> list[AuditSummary]:
    """Returns the rows of a question without a rule, from all summaries."""
    rows = [
        row
        for row in map(as_list_row, all_summaries(history))
        if question.window.since <= row.ended_at < question.window.until
        and make_row_filter(question)(row)
    ]
    if question.sort is SortOrder.NEWEST:
        return rows
    return sorted(
        rows, key=lambda row: (sort_amount(row, question.sort), sort_key(row)), reverse=True
    )


QUESTIONS = [
    Question(MONTH),
    Question(ODD),
    Question.with_filters(MONTH, family="training/resnet"),
    Question.with_filters(ODD, family="training/resnet", account=ACCOUNTS[0]),
    Question.with_filters(MONTH, family="processing/bert", account=ACCOUNTS[0], region=REGIONS[1]),
    Question.with_filters(ODD, owner="ana"),
    Question.with_filters(MONTH, owner="bo", kind=JobKind.PROCESSING),
    Question.with_filters(ODD, account=ACCOUNTS[1], status="failed"),
    Question.with_filters(MONTH, region=REGIONS[0], min_usd=Decimal("3.5")),
    Question.with_filters(MONTH, severity=Severity.HIGH, kind=JobKind.TUNING),
    Question.with_filters(MONTH, family="nobody/knows"),
]


@pytest.mark.parametrize(
    ("question", "sort"), [*product(QUESTIONS, [SortOrder.NEWEST, *AMOUNT_SORTS])]
)
def test_a_page_has_the_first_of_all_matching_rows(
    history: SqliteHistory, question: Question, sort: SortOrder
) -> None:
    """They are in the question's order, each once; the page says whether there are more."""
    question = replace(question, sort=sort)
    expected = expected_rows(history, question)
    for limit in (1, 40):
        page = answer.first_page(lists_of(history, question), question, limit)
        assert (list(page.rows), page.has_more) == (expected[:limit], len(expected) > limit)
    assert list(answer.iterate_rows(lists_of(history, question), question)) == expected


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("field_name", [MONTH, ODD])
def test_findings_of_a_rule_are_those_of_its_list(
    history: SqliteHistory, rule: str, field_name: Window
) -> None:
    """There is one row for each job with the finding.

    The savings are the same with or without summaries.
    """
    question = Question.with_filters(field_name, rule=rule)
    heads = [
        head
        for head in all_summaries(history)
        if field_name.since <= head.ended_at < field_name.until and f"SA-{rule}" in head.finding_ids
    ]
    rows = all_findings(history, question)
    assert [row.key for row in rows] == [head.key for head in heads]
    whole = all_findings(history, question, with_heads=True)
    assert [row.finding for row in whole] == [row.finding for row in rows]
    assert [row.summary.total_usd for row in whole] == [
        as_list_row(head).total_usd for head in heads
    ]


def test_savings_of_a_rule_add_up_to_its_daily_sums(history: SqliteHistory) -> None:
    """A roll-up's finding counts only what no training job counts."""
    for rule in RULES:
        question = Question.with_filters(MONTH, rule=rule)
        rows = all_findings(history, question)
        sums = [
            head.sums.rules[rule]
            for head in all_summaries(history)
            if head.sums and rule in head.sums.rules and head.ended_at >= MONTH.since
        ]
        usd = sum(
            (
                field_name.avoidable_usd + field_name.lost_usd + field_name.possible_usd
                for field_name in sums
            ),
            Decimal(0),
        )
        assert sum((row.finding.saving_usd or Decimal(0) for row in rows), Decimal(0)) == usd


@pytest.mark.parametrize(
    "question",
    [
        Question.with_filters(MONTH, rule="gpu-idle", severity=Severity.HIGH),
        Question.with_filters(MONTH, rule="gpu-idle", status="Failed"),
    ],
)
def test_findings_are_filtered_by_themselves(history: SqliteHistory, question: Question) -> None:
    """The severity is the finding's own; a status is read from the audit."""
    rows = all_findings(history, question)
    assert rows
    assert all(row.finding.severity == "high" or row.summary.status == "Failed" for row in rows)


def test_the_list_with_the_fewest_rows_is_read() -> None:
    """It is that of the rule, else the family, the owner, the account, the day."""
    lists_of = {"rule": "r", "family": "f", "owner": "o", "account": "a"}
    for index in (RunIndex.RULE, RunIndex.FAMILY, RunIndex.OWNER, RunIndex.ACCOUNT):
        assert Question.with_filters(MONTH, **lists_of).index is index  # type: ignore[arg-type]
        del lists_of[index.name.lower()]
    assert Question.with_filters(MONTH, region="x").index is RunIndex.DAY


def test_the_most_wasteful_jobs_are_found_without_reading_all(history: SqliteHistory) -> None:
    """No job has more dollars than its family on its day, so most days are not read."""
    lists = HistoryLists(history, MONTH)
    page = answer.first_page(lists, Question(MONTH, sort=SortOrder.WASTE), 3)
    assert [row.waste_usd for row in page.rows if isinstance(row, AuditSummary)] == sorted(
        (row.waste_usd or Decimal(0) for row in map(as_list_row, all_summaries(history))),
        reverse=True,
    )[:3]
    assert lists.read_counts.rows < 25


def test_jobs_without_such_dollars_are_not_ranked(history: SqliteHistory) -> None:
    """`above_zero` ends the list before the rows of $0."""
    question = Question.with_filters(MONTH, owner="ana", sort=SortOrder.LOST)
    expected = [row for row in expected_rows(history, question) if row.lost_usd]
    assert (
        list(
            answer.first_page(lists_of(history, question), question, 500, only_above_zero=True).rows
        )
        == expected
    )


def test_a_page_reads_little_more_than_it_shows(history: SqliteHistory) -> None:
    """One more row shows whether there is a next page."""
    for question in QUESTIONS[:6]:
        lists = lists_of(history, question)
        answer.first_page(lists, question, 5)
        assert lists.read_counts.rows <= 5 + 2 * 4
