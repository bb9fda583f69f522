"""A page costs the same in a history of 1,000 audits as in one of 100,000."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer
from moto.dynamodb.models.dynamo_type import DynamoType, Item

from sageaudit.adapters.history.dynamo import items, keys
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.table import PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.moments import moment_text
from sageaudit.adapters.history.rows import finding_rows, head_of
from sageaudit.adapters.history.sort_keys import ended_sk
from sageaudit.domain.audit.record import JobKey
from sageaudit.queries import answer
from sageaudit.queries.cursor import Place
from sageaudit.queries.question import Question
from sageaudit.queries.window import window
from tests.adapters.history.entries import ACCOUNT, REGION, entry, finding, key
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.capacity import Consumed, consumed, item_bytes
from tests.fakes.filled_table import moto_table_of, quick_queries

NOW = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)
DAYS, PAGE = 10, 20
WINDOW = window("30d", None, NOW)
FAMILY = "training/resnet"
QUESTIONS = {
    "day": Question(WINDOW),
    "family": Question(WINDOW, account=ACCOUNT, region=REGION, family=FAMILY),
    "owner": Question(WINDOW, owner="ana"),
    "account": Question(WINDOW, account=ACCOUNT),
    "rule": Question(WINDOW, rule="gpu-underused"),
}


def _filled(client: Any, count: int) -> str:
    """A table with so many audits of one owner, family, account and rule, evenly over ten days.

    All are one audit with other keys: recording them would take half an hour.
    """
    made = new_table(client)
    given = entry(findings=[finding()])
    head = head_of(given, 1, digest="0" * 64, findings=finding_rows(given))
    kinds = [items.head_item(head), items.finding_item(finding_rows(given)[0])]
    table = moto_table_of(made)
    serialize = TypeSerializer().serialize
    shapes = [
        {name: DynamoType(serialize(value)) for name, value in shape.items()} for shape in kinds
    ]
    for number in range(count):
        run = JobKey(key(f"job-{number:06d}").arn, head.key.created_at)
        ended_at = NOW - timedelta(seconds=number * DAYS * 86_400 / count)
        for shape, sk in zip(shapes, (keys.HEAD_SK, f"{keys.FINDING_PREFIX}SA202"), strict=True):
            changes = {
                PARTITION_KEY: keys.job_pk(run),
                SORT_KEY: sk,
                "arn": run.arn,
                "ended_at": moment_text(ended_at),
                "ended_sk": ended_sk(ended_at, run),
                **({"day_pk": keys.day_pk(ended_at, run)} if sk == keys.HEAD_SK else {}),
            }
            typed = {name: DynamoType({"S": value}) for name, value in changes.items()}
            item = Item(typed[PARTITION_KEY], typed[SORT_KEY], {})
            for name, value in (shape | typed).items():
                dict.__setitem__(item.attrs, name, value)
            table.items[item.hash_key][item.range_key] = item
    return made


@pytest.fixture(scope="module", params=[1_000, 100_000])
def asked(request: pytest.FixtureRequest) -> Iterator[tuple[Any, DynamoHistory]]:
    """A history of so many audits, and its client."""
    with dynamodb() as client:
        name = _filled(client, request.param)
        with quick_queries(name):
            yield client, DynamoHistory(client, name)


def _cost(client: Any, history: DynamoHistory, question: Question, after: Place | None) -> Consumed:
    with consumed(client) as cost:
        page = answer.page(history, question, PAGE, after=after)
    assert len(page.rows) == PAGE
    return cost


@pytest.mark.parametrize("of", QUESTIONS)
def test_a_page_reads_its_rows_and_no_more(asked: tuple[Any, DynamoHistory], of: str) -> None:
    """The first and the second page; a day's shards together read about twice the page.

    A head has under 2 KB: 21 of them are 42 KB at most, which is 11 half units.
    """
    client, history = asked
    question = QUESTIONS[of]
    first = answer.page(history, question, PAGE)
    for after in (None, first.next):
        cost = _cost(client, history, question, after)
        assert cost.requests == (8 if of == "day" else 1)
        assert cost.items == (8 * 6 if of == "day" else PAGE + 1 + (of in {"owner", "rule"}))
        assert cost.units <= (12 if of == "day" else 5.5)


def test_the_sizes_of_items_are_those_of_the_guide() -> None:
    """A name and its value; a number has a byte for two digits and one more."""
    assert item_bytes({"ab": {"S": "cdé"}}) == 2 + 4
    assert item_bytes({"n": {"N": "12.345"}}) == 1 + 1 + 3
    assert item_bytes({"n": {"N": "-100"}}) == 1 + 1 + 1 + 1
    assert item_bytes({"l": {"L": [{"S": "a"}, {"BOOL": True}]}}) == 1 + 3 + 2 + 2
