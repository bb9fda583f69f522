"""A page reads its own rows, however many audits a history has."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.queries import answer
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import Question
from sageaudit.queries.window import parse_window
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.capacity import item_bytes, measure_capacity
from tests.fakes.documents import ACCOUNT, REGION
from tests.fakes.entries import entry_ending_at

NOW = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)
PAGE = 20
WINDOW = parse_window("30d", None, NOW)
FAMILY = "training/resnet"
QUESTIONS = {
    "day": Question(WINDOW),
    "family": Question.with_filters(WINDOW, account=ACCOUNT, region=REGION, family=FAMILY),
    "owner": Question.with_filters(WINDOW, owner="ana"),
    "account": Question.with_filters(WINDOW, account=ACCOUNT),
    "rule": Question.with_filters(WINDOW, rule="gpu-underused"),
}


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Any, DynamoHistory]]:
    """A history of 60 audits of one owner, family, account and rule, and its client."""
    with dynamodb() as client:
        history = DynamoHistory(client, new_table(client))
        for number in range(60):
            history.record(entry_ending_at(f"job-{number:02d}", NOW - timedelta(minutes=number)))
        yield client, history


@pytest.mark.parametrize("of", QUESTIONS)
def test_a_page_reads_its_rows_and_no_more(asked: tuple[Any, DynamoHistory], of: str) -> None:
    """A day's shards together read about twice the page.

    A head of these made-up audits has 1.1 KB: 21 of them are 23 KB, which is 6 half units. A
    finding has 0.6 KB: 4 half units.
    """
    client, history = asked
    with measure_capacity(client) as cost:
        page = answer.first_page(HistoryLists(history, WINDOW), QUESTIONS[of], PAGE)
    assert len(page.rows) == PAGE
    assert cost.requests == (8 if of == "day" else 1)
    assert cost.items <= (8 * 6 if of == "day" else PAGE + 1)
    assert cost.units <= {"day": 8, "rule": 2}.get(of, 3)


def test_one_run_is_read_as_it_was_last_written(asked: tuple[Any, DynamoHistory]) -> None:
    """A whole unit is a consistent read: an older state would let an audit be made twice."""
    client, history = asked
    with measure_capacity(client) as cost:
        assert history.summary(entry_ending_at("job-00", NOW).key) is not None
    assert (cost.requests, cost.units) == (1, 1)


def test_the_sizes_of_items_are_those_of_the_guide() -> None:
    """A name and its value; a number has a byte for two digits and one more."""
    assert item_bytes({"ab": {"S": "cdé"}}) == 2 + 4
    assert item_bytes({"n": {"N": "12.345"}}) == 1 + 1 + 3
    assert item_bytes({"n": {"N": "-100"}}) == 1 + 1 + 1 + 1
    assert item_bytes({"l": {"L": [{"S": "a"}, {"BOOL": True}]}}) == 1 + 3 + 2 + 2
