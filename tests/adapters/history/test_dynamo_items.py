"""The items that the DynamoDB twins leave behind, and the actions they call."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sageaudit.adapters.history.dynamo import history as dynamo_history
from sageaudit.adapters.history.dynamo import send_ledger, tell_ledger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.history.dynamo.tell_ledger import DynamoTellLedger
from sageaudit.domain.alert.family_day import FamilyDay
from sageaudit.domain.alert.news import News, Said
from sageaudit.domain.alert.run_told import RunTold
from sageaudit.domain.audit.record import Claim, RunQuery
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.bill.finding import Severity
from sageaudit.ports import Circuit
from tests.adapters.history.entries import (
    ACCOUNT,
    NOON,
    REGION,
    ended,
    entry,
    key,
    unsettled,
    with_detail,
)
from tests.adapters.history.faults import everything, meanwhile, refusal
from tests.adapters.history.tables import new_table

SAID = Said(1, News(Severity.HIGH, None, None), NOON)


@pytest.fixture
def table(client: Any) -> str:
    """An empty table."""
    return new_table(client)


def test_items_carry_what_the_stack_and_the_console_need(client: Any, table: str) -> None:
    """The version is readable JSON, only the detail expires, only what is due is in that index."""
    history = DynamoHistory(client, table)
    history.record(with_detail(unsettled(due_at="2026-11-20T13:00:00Z")))
    stored = everything(client, table)
    items = {item["sk"]["S"]: item for item in stored if item["pk"]["S"].startswith("JOB#")}

    assert set(items) == {"HEAD", "AUDIT#00001", "FINDING#SA-gpu-underused", "DETAIL"}
    assert items["AUDIT#00001"]["document"]["S"].startswith('{"schema":1,"job":{"name":"train-1"')
    assert {sk for sk, item in items.items() if "expires_at" in item} == {"DETAIL"}
    assert items["HEAD"]["due_sk"]["S"].startswith("2026-11-20T13:00:00.000000Z#arn:aws:")
    assert items["HEAD"]["avoidable_usd"] == {"N": "1.500000"}
    assert "total_usd" in items["HEAD"]
    assert items["HEAD"]["pk"]["S"].endswith(":training-job/train-1#1795168800000")

    history.record(entry(bill={"total_usd": None}))
    head = client.get_item(TableName=table, Key={"pk": items["HEAD"]["pk"], "sk": {"S": "HEAD"}})
    assert not {"due_pk", "due_sk", "due_at", "total_usd"} & set(head["Item"])


def test_the_table_is_called_for_what_is_declared(client: Any, table: str) -> None:
    """PERMISSIONS are the actions that the adapters call: none is missing, none is spare."""
    called: set[str] = set()

    def note(model: Any, params: dict[str, Any], **_: Any) -> None:
        called.update(_actions(model.name, params))

    client.meta.events.register_first("before-call.dynamodb", note)
    try:
        _use_history(DynamoHistory(client, table))
        assert called == set(dynamo_history.RECORD_PERMISSIONS)
        called.clear()
        _ask_history(DynamoHistory(client, table))
        assert called == set(dynamo_history.READ_PERMISSIONS)
        called.clear()
        _ask_family(DynamoHistory(client, table))
        assert called == set(dynamo_history.INDEX_PERMISSIONS)
        called.clear()
        _ask_sums(DynamoHistory(client, table))
        assert called == set(dynamo_history.SUMS_PERMISSIONS)
        called.clear()
        _tell(DynamoTellLedger(client, table))
        assert called == set(tell_ledger.PERMISSIONS)
        called.clear()
        _send(DynamoSendLedger(client, table))
        assert called == set(send_ledger.PERMISSIONS)
        called.clear()
    finally:
        client.meta.events.unregister("before-call.dynamodb", note)


def test_a_list_reads_on_over_dynamodbs_pages_and_no_further_than_asked(
    client: Any, table: str
) -> None:
    """Seven rows over pages of two; two rows are one query for two."""
    history, asked = DynamoHistory(client, table), list[int | None]()
    for minute in range(7):
        history.record(ended(f"job-{minute}", NOON + timedelta(minutes=minute)))
    family = RunQuery.of_family(ACCOUNT, REGION, "training/resnet")

    def small_pages(params: dict[str, Any], **_: Any) -> dict[str, Any]:
        asked.append(params.get("Limit"))
        return params | {"Limit": 2}

    client.meta.events.register("provide-client-params.dynamodb.Query", small_pages)
    try:
        for heads in (
            history.runs(RunQuery.of_day(NOON.date())),
            history.runs(RunQuery.of_account(ACCOUNT, "2026-11")),
            history.runs(family),
        ):
            assert [head.name for head in heads] == [f"job-{minute}" for minute in range(6, -1, -1)]
        assert set(asked) == {None}
        asked.clear()
        assert len(list(islice(history.runs(family, page_size=2), 2))) == 2
        assert asked == [2]
    finally:
        client.meta.events.unregister("provide-client-params.dynamodb.Query", small_pages)


def _actions(operation: str, params: dict[str, Any]) -> set[str]:
    """The IAM actions of one call; of a transaction, those of its parts."""
    if operation != "TransactWriteItems":
        return {f"dynamodb:{operation}"}
    actions = json.loads(params["body"])["TransactItems"]
    return {f"dynamodb:{kind}Item" for action in actions for kind in action}


def _use_history(history: DynamoHistory) -> None:
    history.record(with_detail(entry()))
    history.record(entry(modified_s=60))
    history.record(entry(modified_s=90, findings=[]))


def _ask_history(history: DynamoHistory) -> None:
    history.head(key())
    history.audit(key())
    history.audit(key(), 1)
    history.detail(key())
    queries: list[RunQuery[Any]] = [
        RunQuery.of_day(NOON.date()),
        RunQuery.of_owner("ana"),
        RunQuery.of_account(ACCOUNT, "2026-11"),
        RunQuery.of_rule("gpu-underused", "2026-11"),
        RunQuery.due(NOON),
    ]
    for query in queries:
        list(history.runs(query))
    _ask_sums(history)
    _ask_family(history)


def _ask_sums(history: DynamoHistory) -> None:
    history.head(key())
    list(history.sums(Scope.TYPE, NOON.date(), NOON.date()))


def _ask_family(history: DynamoHistory) -> None:
    list(history.runs(RunQuery.of_family(ACCOUNT, REGION, "f")))


def _tell(ledger: DynamoTellLedger) -> None:
    told, day = ledger.run_told("a").told(SAID), ledger.family_day("f", NOON.date())
    assert ledger.write("f", NOON.date(), day.told("a", SAID, NOON, corrects=False), ("a", told))


def _send(ledger: DynamoSendLedger) -> None:
    assert ledger.claim_send("n", NOON, 60) is Claim.FIRST
    ledger.mark_unknown("n", NOON, "no answer")
    ledger.mark_sent("n", NOON)
    ledger.mark_failed("n", NOON, "late")
    ledger.change_circuit("slack", ledger.circuit("slack"), Circuit(1), NOON)


def test_a_lease_that_two_take_at_once_has_one_holder(client: Any, table: str) -> None:
    """Between reading an expired lease and taking it, another delivery took it."""
    ledger = DynamoSendLedger(client, table)
    ledger.claim_send("n", NOON, 60)
    later = NOON + timedelta(seconds=61)
    claims: list[Claim] = []

    def overtake(**_: Any) -> None:
        if not claims:
            claims.append(Claim.BUSY)
            claims[0] = ledger.claim_send("n", later, 60)

    with meanwhile(client, "after-call PutItem", overtake):
        claims.append(ledger.claim_send("n", later, 60))
    assert claims == [Claim.REPEAT, Claim.BUSY]


def test_a_lease_released_between_write_and_answer_is_busy(client: Any, table: str) -> None:
    """Without the item that stands nothing is assumed: come back later."""
    refused = refusal("ConditionalCheckFailedException")
    with meanwhile(client, "before-call PutItem", refused):
        assert DynamoSendLedger(client, table).claim_send("n", NOON, 60) is Claim.BUSY


class Twice:
    """A client whose SDK makes each write again, since the answer of the first was lost."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def put_item(self, **params: Any) -> Any:
        with contextlib.suppress(ClientError):
            self._client.put_item(**params)
        return self._client.put_item(**params)


def test_a_claim_whose_answer_was_lost_is_held_all_the_same(client: Any, table: str) -> None:
    """The second write is refused by what the first wrote: it knows its own mark."""
    ledger = DynamoSendLedger(Twice(client), table)
    assert ledger.claim_send("n", NOON, 60) is Claim.FIRST
    assert ledger.claim_send("n", NOON, 60) is Claim.BUSY
    assert ledger.claim_send("n", NOON + timedelta(seconds=61), 60) is Claim.REPEAT


@pytest.mark.parametrize(
    "damage",
    [
        {"state": {"S": "TELEPATHY"}},
        {"state": {"NULL": True}},
        {"tries": {"S": "many"}},
        {"lease_until": {"L": []}},
        {"lease_until": {"S": ""}},
    ],
)
def test_a_damaged_row_is_a_repeat(client: Any, table: str, damage: dict[str, Any]) -> None:
    """Whatever it said, the notice may have been posted; the next claim mends the row."""
    ledger = DynamoSendLedger(client, table)
    ledger.claim_send("n", NOON, 60)
    [item] = everything(client, table)
    client.put_item(TableName=table, Item=item | damage)
    assert ledger.claim_send("n", NOON, 60) is Claim.REPEAT
    assert ledger.claim_send("n", NOON, 60) is Claim.BUSY
    ledger.mark_sent("n", NOON)
    assert ledger.claim_send("n", NOON, 60) is Claim.DONE


def test_a_damaged_circuit_stops_no_notice(client: Any, table: str) -> None:
    """It reads as one of a channel that answers."""
    ledger = DynamoSendLedger(client, table)
    ledger.change_circuit("slack", Circuit(), Circuit(9, 9), NOON)
    [item] = everything(client, table)
    bad = {"failures": {"S": "x"}, "closed_until": {"NULL": True}}
    client.put_item(TableName=table, Item=item | bad)
    assert ledger.circuit("slack") == Circuit()


def test_a_row_of_an_older_version_keeps_its_meaning(client: Any, table: str) -> None:
    """It had no UNKNOWN: what failed on its second try may have been posted by its first."""
    ledger = DynamoSendLedger(client, table)
    ledger.claim_send("n", NOON, 60)
    [item] = everything(client, table)
    del item["holder"]
    for state, tries, claim in (("FAILED", "1", Claim.FIRST), ("FAILED", "2", Claim.REPEAT)):
        row = item | {"state": {"S": state}, "tries": {"N": tries}}
        client.put_item(TableName=table, Item=row)
        assert ledger.claim_send("n", NOON, 60) is claim


def test_a_last_notice_without_a_revision_is_replaced(client: Any, table: str) -> None:
    """It was written before claims were kept with the run."""
    ledger = DynamoTellLedger(client, table)
    assert ledger.write_run("a", RunTold().told(SAID))
    [row] = everything(client, table)
    del row["revision"]
    client.put_item(TableName=table, Item=row)
    old = ledger.run_told("a")
    assert old == RunTold(0, SAID)
    assert ledger.write_run("a", old.told(SAID))
    assert not ledger.write_run("a", old.told(SAID))


def test_ledger_items_expire(client: Any, table: str) -> None:
    """45 days after they were written, long after any redelivery; a job's last notice stays."""
    ledger, told = DynamoSendLedger(client, table), DynamoTellLedger(client, table)
    day, run = FamilyDay().told("a", SAID, NOON, corrects=False), RunTold().told(SAID)
    told.write("f", NOON.date(), day, ("a", run))
    ledger.claim_send("n", NOON, 60)
    ledger.claim_send("sent", NOON, 60)
    ledger.mark_sent("sent", NOON)
    ledger.mark_failed("failed", NOON, "no_service")
    ledger.change_circuit("slack", Circuit(), Circuit(1), NOON)

    days = [
        (int(item["expires_at"]["N"]) - NOON.timestamp()) / 86_400
        for item in everything(client, table)
        if item["sk"]["S"] != "NEWS"
    ]
    assert sorted(days) == [44.5, 45, 45, 45, 45]
