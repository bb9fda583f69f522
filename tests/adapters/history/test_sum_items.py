"""The sums in the table: what a transaction holds, what a question reads, what DynamoDB allows."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.keys import SUMS_SHARDS
from sageaudit.adapters.history.dynamo.sum_table import sum_actions
from sageaudit.adapters.history.rows import MOST_FINDING_ROWS, head_of
from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.audit.record import Entry
from sageaudit.domain.audit.sums import MOST_RULES, RuleSums, Scope, Sums, sums_of, total
from sageaudit.domain.job.job import Purchase
from tests.adapters.history.entries import ACCOUNT, NOON, REGION, entry, finding, with_detail
from tests.adapters.history.faults import everything, meanwhile, once, refusal
from tests.adapters.history.tables import new_table
from tests.fakes.capacity import read_units
from tests.fakes.filled_table import fill, quick_queries
from tests.fakes.many_audits import many_audits

DAY = NOON.date()
LARGEST_EXPRESSION = 4_096


@pytest.fixture
def table(client: Any) -> str:
    """An empty table."""
    return new_table(client)


@pytest.fixture
def history(client: Any, table: str) -> DynamoHistory:
    """A history that does not really wait."""
    return DynamoHistory(client, table, clock=lambda: NOON, sleep=lambda _: None)


def sent(client: Any, history: DynamoHistory, given: Entry) -> list[dict[str, Any]]:
    """The actions of the transaction that records an entry."""
    actions: list[dict[str, Any]] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        actions[:] = json.loads(params["body"])["TransactItems"]

    with meanwhile(client, "before-call TransactWriteItems", note):
        history.record(given)
    return actions


def crowded(prefix: str, number: int, **job: Any) -> Entry:
    """A run with as many findings as have rows and ten more, which others compare with theirs."""
    findings = [finding(f"{prefix}-{place}") for place in range(MOST_FINDING_ROWS + 10)]
    given = with_detail(entry(modified_s=60 * number, findings=findings, job=job))
    facts = RunFacts(Purchase.ON_DEMAND, instance_type=f"ml.g5.{prefix}")
    return replace(given, facts=facts, compared=())


def test_the_largest_transaction_stays_under_100_actions(
    client: Any, history: DynamoHistory
) -> None:
    """40 findings take the place of 40 others, in another family, owner, day and type."""
    history.record(crowded("old", 1))
    moved = {"family": "other", "owner": "bo", "ended_at": "2026-11-21T12:00:00Z"}
    actions = sent(client, history, crowded("new", 2, **moved))

    kinds = Counter(next(iter(action)) for action in actions)
    assert kinds == {"Put": 1 + 1 + 40 + 1 + 1, "Delete": 40 + 1, "Update": 8}
    assert len(actions) == 93
    assert total(history.sums(Scope.TYPE, DAY, DAY)) == Sums()


@pytest.mark.parametrize("buckets", [1, 3])
def test_an_update_is_within_dynamodbs_limits(buckets: int) -> None:
    """The rules of one version replaced by those of another: 81 rules, and all other figures."""
    of_rule = RuleSums(1, *[Decimal("1234567.123456")] * buckets)
    others: dict[str, Any] = {of.name: 1 for of in fields(Sums) if of.name != "rules"}
    older, newer = (
        replace(
            head_of(entry(), 1, digest="d", findings=()),
            sums=Sums(
                **{name: number * figure for name, figure in others.items()},
                rules={f"{prefix}-rule-of-a-long-name-{n}": of_rule for n in range(MOST_RULES)},
            ),
        )
        for prefix, number in (("old", 1), ("new", 2))
    )
    actions = sum_actions(older, newer, 0)
    assert len(actions) == 4
    for update in (action["Update"] for action in actions):
        assert len(update["UpdateExpression"].encode()) <= LARGEST_EXPRESSION
        added = 15 + 2 * MOST_RULES * (1 + buckets)
        assert len(update["ExpressionAttributeValues"]) <= added + 5


def test_two_deliveries_that_confirm_an_audit_of_before_there_were_sums_add_it_once(
    client: Any, table: str, history: DynamoHistory
) -> None:
    """A version is confirmed without a new number: HEAD's own counter tells them apart."""
    history.record(entry())
    _forget_sums(client, table)
    history, again = DynamoHistory(client, table), entry(again=True)
    overtaking = once(lambda: DynamoHistory(client, table).record(again))
    with meanwhile(client, "before-call TransactWriteItems", overtaking):
        history.record(again)
    assert total(history.sums(Scope.FAMILY, DAY, DAY)) == sums_of(entry().document)


def test_an_audit_of_before_there_were_sums_counts_from_its_next_version(
    client: Any, table: str, history: DynamoHistory
) -> None:
    """A duplicate writes nothing, so it adds nothing either."""
    history.record(entry())
    _forget_sums(client, table)
    history = DynamoHistory(client, table)
    history.record(entry())
    assert list(history.sums(Scope.FAMILY, DAY, DAY)) == []
    newer = entry(modified_s=60, avoidable_usd=Decimal(1))
    history.record(newer)
    assert total(history.sums(Scope.FAMILY, DAY, DAY)) == sums_of(newer.document)


def _forget_sums(client: Any, table: str) -> None:
    """Makes the table as it was before there were sums."""
    for item in everything(client, table):
        place = {"pk": item["pk"], "sk": item["sk"]}
        if item["pk"]["S"].startswith("SUM#"):
            client.delete_item(TableName=table, Key=place)
        elif item["sk"]["S"] == "HEAD":
            client.update_item(TableName=table, Key=place, UpdateExpression="REMOVE sums, revision")


def test_a_conflict_is_retried_on_another_shard(
    client: Any, table: str, history: DynamoHistory
) -> None:
    """A quiet family has one item a day; one that many write to at once has several."""
    for number in range(3):
        history.record(entry(f"quiet-{number}", job={"family": "quiet"}))
        busy = refusal("TransactionCanceledException", times=1, reasons=("TransactionConflict",))
        with meanwhile(client, "before-call TransactWriteItems", busy):
            history.record(entry(f"busy-{number}", job={"family": "busy"}))
    shards = Counter(
        item["sk"]["S"].split("#")[1]
        for item in everything(client, table)
        if item["sk"]["S"].startswith("family#")
    )
    assert shards["quiet"] == 1
    assert 1 < shards["busy"] <= 3
    assert total(history.sums(Scope.FAMILY, DAY, DAY, name="busy")).jobs == 3


def test_an_account_is_named_once_by_a_process(
    client: Any, table: str, history: DynamoHistory
) -> None:
    """And again by another one, which finds it there."""
    puts: list[str] = []
    with meanwhile(client, "before-call PutItem", lambda **_: puts.append("put")):
        for number, writer in enumerate((history, DynamoHistory(client, table))):
            for day in ("11-20", "11-21", "12-01"):
                job = {"ended_at": f"2026-{day}T12:00:00Z"}
                writer.record(entry(f"job-{number}-{day}", job=job))
    assert len(puts) == 2 * 2
    names = [item["sk"]["S"] for item in everything(client, table) if "ACCOUNTS" in item["pk"]["S"]]
    assert sorted(names) == [f"2026-11#{ACCOUNT}", f"2026-12#{ACCOUNT}"]


@pytest.mark.parametrize("jobs", [1_000, 4_000])
def test_a_family_of_any_size_is_read_in_bounds(client: Any, table: str, jobs: int) -> None:
    """A row for each day and shard, whether it has a thousand runs or a hundred thousand."""
    fill(
        table, many_audits(jobs, families=1, accounts=[ACCOUNT], regions=[REGION]), documents=False
    )
    read: list[dict[str, Any]] = []

    def note(parsed: dict[str, Any], **_: Any) -> None:
        read.extend(parsed["Items"])

    history = DynamoHistory(client, table)
    name = "training/family-000"
    with quick_queries(table), meanwhile(client, "after-call Query", note):
        sums = total(
            history.sums(
                Scope.FAMILY,
                DAY - timedelta(days=30),
                DAY,
                account=ACCOUNT,
                region=REGION,
                name=name,
            )
        )
    assert jobs // 3 < sums.jobs < jobs
    assert len(read) <= 31 * SUMS_SHARDS
    assert read_units(read, consistent=True) <= 16
