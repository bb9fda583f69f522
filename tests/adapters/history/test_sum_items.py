"""The sums in the table: what a transaction holds, what a question reads, what DynamoDB allows."""

import json
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import fields

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.run_writer import sum_actions
from sageaudit.adapters.history.rows import MAX_FINDING_ROWS, make_summary
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.audit.sums import (
    MAX_RULES_BY_NAME,
    RuleSums,
    Scope,
    Sums,
    sum_rows,
    sums_from_document,
)
from sageaudit.domain.job.job import Purchase
from sageaudit.structs import replace
from tests.adapters.history.faults import everything, meanwhile, once, refusal
from tests.fakes.capacity import measure_capacity
from tests.fakes.documents import ACCOUNT, REGION
from tests.fakes.entries import NOON, entry, finding, with_detail
from tests.fakes.families import run_summary

DAY = NOON.date()
LARGEST_EXPRESSION = 4_096


def sent(client: Any, dynamo: DynamoHistory, given: AuditEntry) -> list[dict[str, Any]]:
    """The actions of the transaction that records an entry."""
    actions: list[dict[str, Any]] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        actions[:] = json.loads(params["body"])["TransactItems"]

    with meanwhile(client, "before-call TransactWriteItems", note):
        dynamo.record(given)
    return actions


def crowded(prefix: str, number: int, **job: Any) -> AuditEntry:
    """A run with as many findings as have rows and ten more, which others compare with theirs."""
    findings = [finding(f"{prefix}-{place}") for place in range(MAX_FINDING_ROWS + 10)]
    given = with_detail(entry(modified_s=60 * number, findings=findings, job=job))
    facts = run_summary(Purchase.ON_DEMAND, instance_type=f"ml.g5.{prefix}")
    return replace(given, run_summary=facts, earlier_runs=())


def test_the_largest_transaction_stays_under_100_actions(
    client: Any, dynamo: DynamoHistory
) -> None:
    """40 findings take the place of 40 others, in another family, owner, day and type."""
    dynamo.record(crowded("old", 1))
    moved = {"family": "other", "owner": "bo", "ended_at": "2026-11-21T12:00:00Z"}
    actions = sent(client, dynamo, crowded("new", 2, **moved))

    kinds = Counter(next(iter(action)) for action in actions)
    assert kinds == {"Put": 1 + 1 + 40 + 1 + 1, "Delete": 40 + 1, "Update": 8}
    assert len(actions) == 93
    assert sum_rows(dynamo.daily_sums(Scope.TYPE, DAY, DAY)) == Sums()


@pytest.mark.parametrize(
    "known",
    [
        ["avoidable_usd"],
        ["avoidable_usd", "lost_usd", "possible_usd"],
        ["possible_usd", "possible_range_usd", "estimated"],
    ],
)
def test_an_update_is_within_dynamodbs_limits(known: list[str]) -> None:
    """The rules of one version replaced by those of another: 81 rules, and all other figures."""
    figures: dict[str, Any] = {
        name: Decimal("1234567.123456") if name.endswith("_usd") else 1 for name in known
    }
    of_rule = RuleSums(1, **figures)
    others: dict[str, Any] = {
        field_info.name: 1 for field_info in fields(Sums) if field_info.name != "rules"
    }
    older, newer = (
        replace(
            make_summary(entry(), 1, "d"),
            sums=Sums(
                **{name: number * figure for name, figure in others.items()},
                rules={
                    f"{prefix}-rule-of-a-long-name-{n}": of_rule for n in range(MAX_RULES_BY_NAME)
                },
            ),
        )
        for prefix, number in (("old", 1), ("new", 2))
    )
    actions = sum_actions(older, newer, 0)
    assert len(actions) == 4
    for update in (action["Update"] for action in actions):
        assert len(update["UpdateExpression"].encode()) <= LARGEST_EXPRESSION
        added = len(others) + 2 * MAX_RULES_BY_NAME * (1 + len(known))
        assert len(update["ExpressionAttributeValues"]) <= added + 5


def test_two_deliveries_that_confirm_an_audit_change_no_sum(
    client: Any, table: str, dynamo: DynamoHistory
) -> None:
    """A version is confirmed without a new number: HEAD's own counter tells them apart."""
    dynamo.record(entry())
    moved = replace(
        entry(force_new_version=True),
        run_summary=run_summary(Purchase.ON_DEMAND, instance_type="ml.x"),
    )
    overtaking = once(lambda: DynamoHistory(client, table).record(moved))
    with meanwhile(client, "before-call TransactWriteItems", overtaking):
        dynamo.record(moved)
    for scope in set(Scope) - {Scope.TAG}:
        assert sum_rows(dynamo.daily_sums(scope, DAY, DAY)) == sums_from_document(entry().document)
    assert sum_rows(dynamo.daily_sums(Scope.TYPE, DAY, DAY, name="ml.x")).jobs == 1


def test_a_conflict_is_retried_on_another_shard(
    client: Any, table: str, dynamo: DynamoHistory
) -> None:
    """A quiet family has one item a day; one that many write to at once has several."""
    for number in range(3):
        dynamo.record(entry(f"quiet-{number}", job={"family": "quiet"}))
        busy = refusal("TransactionCanceledException", times=1, reasons=("TransactionConflict",))
        with meanwhile(client, "before-call TransactWriteItems", busy):
            dynamo.record(entry(f"busy-{number}", job={"family": "busy"}))
    shards = Counter(
        item["sk"]["S"].split("#")[1]
        for item in everything(client, table)
        if item["sk"]["S"].startswith("family#")
    )
    assert shards["quiet"] == 1
    assert 1 < shards["busy"] <= 3
    assert sum_rows(dynamo.daily_sums(Scope.FAMILY, DAY, DAY, name="busy")).jobs == 3


def test_an_account_is_named_once_by_a_process(
    client: Any, table: str, dynamo: DynamoHistory
) -> None:
    """And again by another one, which finds it there."""
    puts: list[str] = []
    with meanwhile(client, "before-call PutItem", lambda **_: puts.append("put")):
        for number, writer in enumerate((dynamo, DynamoHistory(client, table))):
            for day in ("11-20", "11-21", "12-01"):
                job = {"ended_at": f"2026-{day}T12:00:00Z"}
                writer.record(entry(f"job-{number}-{day}", job=job))
    assert len(puts) == 2 * 2
    names = [item["sk"]["S"] for item in everything(client, table) if "ACCOUNTS" in item["pk"]["S"]]
    assert sorted(names) == [f"2026-11#{ACCOUNT}", f"2026-12#{ACCOUNT}"]


def test_a_family_costs_a_query_a_month_and_an_item_a_day_however_many_runs_it_has(
    client: Any, dynamo: DynamoHistory
) -> None:
    """Six runs on three days of one month; 30 days reach into the month before."""
    for number in range(6):
        ended_at = (NOON - timedelta(days=number % 3)).isoformat()
        dynamo.record(entry(f"job-{number}", job={"ended_at": ended_at}))
    of = {"account": ACCOUNT, "region": REGION, "name": "training/resnet"}
    with measure_capacity(client) as cost:
        sums = sum_rows(dynamo.daily_sums(Scope.FAMILY, DAY - timedelta(days=30), DAY, **of))
    assert sums.jobs == 6
    assert (cost.requests, cost.items) == (2, 3)
