"""What the DynamoDB twin does when writers meet, when it is killed, and when AWS refuses."""

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.keys import SUMS_ACCOUNTS_PK
from sageaudit.adapters.history.dynamo.run_writer import RETRY_DELAYS_S
from sageaudit.domain.audit.record import RecordOutcome, RecordResult, RunQuery
from sageaudit.domain.audit.sums import Scope
from sageaudit.errors import (
    AccessDenied,
    AwsError,
    NoCredentials,
    TableNotFound,
    Throttled,
    Unavailable,
)
from sageaudit.structs import replace
from tests.adapters.history.faults import (
    Killed,
    everything,
    kill,
    meanwhile,
    once,
    refusal,
    time_out,
)
from tests.fakes.entries import NOON, entry, finding, key, unsettled_entry

TODAY = RunQuery.for_day(NOON.date())


def audited(client: Any, table: str) -> list[dict[str, Any]]:
    """All items but the directory of accounts."""
    return [item for item in everything(client, table) if item["pk"]["S"] != SUMS_ACCOUNTS_PK]


def audits(client: Any, table: str) -> list[str]:
    """The sort keys of all versions."""
    sort_keys = [item["sk"]["S"] for item in everything(client, table)]
    return [sk for sk in sort_keys if sk.startswith("AUDIT#")]


def test_20_deliveries_that_all_read_before_any_writes(
    client: Any, table: str, dynamo: DynamoHistory
) -> None:
    """Each has read the metrics a little later and finds no HEAD; one audit stands in the end."""
    waiting = [entry(unknown=[{"rule": "r", "code": "c", "reason": f"{n}"}]) for n in range(19)]
    verdicts: list[RecordResult] = []

    def deliver_the_next(**_: Any) -> None:
        if waiting:
            verdicts.append(dynamo.record(waiting.pop()))

    with meanwhile(client, "after-call GetItem", deliver_the_next):
        verdicts.append(dynamo.record(entry()))

    assert len(verdicts) == 20
    assert [verdict.outcome for verdict in verdicts].count(RecordOutcome.RECORDED) == 1
    assert {verdict.version for verdict in verdicts} == {1}
    assert audits(client, table) == ["AUDIT#00001"]


@pytest.mark.parametrize("other", ["older", "newer", "settled"])
def test_a_writer_that_was_overtaken_decides_again(
    client: Any, dynamo: DynamoHistory, other: str
) -> None:
    """Whatever the other delivery wrote between read and write, the newer state stands."""
    ours = unsettled_entry(modified_s=60)
    theirs = {
        "older": entry(modified_s=30),
        "newer": entry(modified_s=90),
        "settled": entry(modified_s=60),
    }[other]
    dynamo.record(entry())
    overtaking = once(lambda: dynamo.record(theirs))
    with meanwhile(client, "before-call TransactWriteItems", overtaking):
        outcome = dynamo.record(ours)

    expected = {"older": "recorded", "newer": "older", "settled": "duplicate"}
    assert outcome.outcome.value == expected[other]
    head = dynamo.summary(key())
    assert head is not None
    winner = max(
        ours,
        theirs,
        key=lambda entry_to_sort: (
            entry_to_sort.last_modified_at,
            entry_to_sort.document["audit"]["settled"],
        ),
    )
    assert head.last_modified_at == winner.last_modified_at
    assert head.settled == winner.document["audit"]["settled"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ("before-call GetItem", kill),
        ("before-call TransactWriteItems", kill),
        ("after-call TransactWriteItems", kill),
        ("after-call TransactWriteItems", lambda **_: time_out()),
    ],
)
def test_killed_before_or_after_the_write(
    client: Any, table: str, dynamo: DynamoHistory, step: str, fault: Any, version: int
) -> None:
    """All was written, or nothing; the delivery repeated is a duplicate, or as if the first.

    Only the directory may know the account already: it says where sums may be, and no sum. An
    answer that was lost is Unavailable.
    """
    given = [entry(), entry(modified_s=60, findings=[finding("other")])][:version]
    for earlier_entry in given[:-1]:
        dynamo.record(earlier_entry)
    before = audited(client, table)
    with meanwhile(client, step, fault), pytest.raises((Killed, Unavailable)):
        dynamo.record(given[-1])
    after, wrote = audited(client, table), step.startswith("after")
    assert (after != before) is wrote
    verdict = RecordOutcome.DUPLICATE if wrote else RecordOutcome.RECORDED
    recorded = dynamo.record(given[-1])
    assert (recorded.outcome, recorded.version) == (verdict, version)
    assert (audited(client, table) == after) is wrote


def test_killed_while_the_time_advances(client: Any, dynamo: DynamoHistory) -> None:
    """The time alone is written later."""
    dynamo.record(entry())
    with meanwhile(client, "before-call UpdateItem", kill), pytest.raises(Killed):
        dynamo.record(entry(modified_s=60))
    recorded = dynamo.record(entry(modified_s=60))
    assert (recorded.outcome, recorded.version) == (RecordOutcome.DUPLICATE, 1)
    assert dynamo.record(entry(modified_s=30)).outcome is RecordOutcome.OUTDATED


@pytest.mark.parametrize(
    "refused",
    [
        ("TransactionCanceledException", ("None", "TransactionConflict")),
        ("TransactionCanceledException", ("ThrottlingError",)),
        ("ThrottlingException", ()),
        ("TransactionInProgressException", ()),
    ],
)
def test_a_busy_table_is_asked_again(
    client: Any, dynamo: DynamoHistory, waited: list[float], refused: tuple[str, tuple[str, ...]]
) -> None:
    """Twice busy, then written; the waits grow."""
    busy = refusal(refused[0], times=2, reasons=refused[1])
    with meanwhile(client, "before-call TransactWriteItems", busy):
        assert dynamo.record(entry()).outcome is RecordOutcome.RECORDED
    assert waited == list(RETRY_DELAYS_S[:2])


@pytest.mark.parametrize("code", ["TransactionInProgressException", "ConditionalCheckFailed"])
def test_a_write_whose_answer_was_lost_is_recorded_by_the_next_try(
    client: Any, dynamo: DynamoHistory, code: str
) -> None:
    """The next try finds its own document, also of a reaudit: no duplicate of another delivery."""

    def refuse() -> None:
        raise ClientError({"Error": {"Code": code}}, "TransactWriteItems")

    for given in (entry(), replace(entry(findings=[finding("other")]), force_new_version=True)):
        with meanwhile(client, "after-call TransactWriteItems", once(refuse)):
            assert dynamo.record(given).outcome is RecordOutcome.RECORDED
        assert (
            dynamo.record(replace(given, force_new_version=False)).outcome
            is RecordOutcome.DUPLICATE
        )


@pytest.mark.parametrize(
    ("reason", "waits_s"), [("TransactionConflict", RETRY_DELAYS_S), ("ConditionalCheckFailed", ())]
)
def test_a_table_that_stays_busy_is_left_to_the_queue(
    client: Any, dynamo: DynamoHistory, waited: list[float], reason: str, waits_s: tuple[float, ...]
) -> None:
    """After all waits it is Throttled, and nothing is written. Deciding again is bounded too."""
    busy = refusal("TransactionCanceledException", reasons=(reason,))
    with meanwhile(client, "before-call TransactWriteItems", busy), pytest.raises(Throttled):
        dynamo.record(entry())
    assert waited == list(waits_s)
    assert dynamo.summary(key()) is None


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        ("AccessDeniedException", AccessDenied, "dynamodb:PutItem on the table"),
        (
            "ResourceNotFoundException",
            Unavailable,
            "There is no table .* in this account and region",
        ),
        ("InternalServerError", Unavailable, "GetItem on .* was refused: InternalServerError"),
        ("ValidationException", Unavailable, "GetItem on .* was refused: ValidationException"),
        ("ProvisionedThroughputExceededException", Throttled, "is busy"),
        ("UnrecognizedClientException", NoCredentials, "expired or not valid"),
    ],
)
def test_a_refusal_is_one_of_our_errors(
    client: Any, dynamo: DynamoHistory, code: str, error: type[AwsError], text: str
) -> None:
    """No botocore error leaves the adapter, and the sentence names what a person can act on."""
    refused = meanwhile(client, "before-call GetItem", refusal(code))
    with refused, pytest.raises(error, match=text) as raised:
        dynamo.summary(key())
    if isinstance(raised.value, AccessDenied):
        assert raised.value.action == "dynamodb:PutItem"


@pytest.mark.parametrize("key_name", ["pk", "id"])
def test_a_table_of_another_tool_is_said(client: Any, key_name: str) -> None:
    """With other keys, or with the same ones and other indexes."""
    name = f"sageaudit-test-other-tool-{uuid4()}"
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key_name, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key_name, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name)
    other = DynamoHistory(client, name)
    with pytest.raises(TableNotFound, match=r"not a history.*: name another table"):
        list(other.runs(TODAY))
    for message in (
        "Query condition missed key schema element: id",
        "The table does not have the specified index: by-day",
    ):
        refused = refusal("ValidationException", message=message)
        with (
            meanwhile(client, "before-call Query", refused),
            pytest.raises(TableNotFound, match=r"not a history of sageaudit.*: name another table"),
        ):
            list(other.runs(TODAY))
    client.delete_table(TableName=name)


def test_an_item_of_another_tool_is_named(client: Any, table: str, dynamo: DynamoHistory) -> None:
    """It lies in the table, with the keys of a list."""
    dynamo.record(entry())
    head = next(item for item in everything(client, table) if item["sk"]["S"] == "HEAD")
    key_names = ("pk", "sk", *(name for name in head if name.endswith(("_pk", "_sk"))))
    foreign = {name: head[name] for name in key_names} | {"pk": {"S": "ORDER#1"}}
    client.put_item(TableName=table, Item=foreign)
    assert len([*dynamo.runs(TODAY)]) == 1
    assert [item.key for item in dynamo.take_unreadable()] == ["ORDER#1 HEAD"]


def test_an_answer_that_lacks_its_items_is_one_of_our_errors(
    client: Any, dynamo: DynamoHistory
) -> None:
    """Such as that of a proxy, with status 200."""

    def empty(**_: Any) -> tuple[Any, dict[str, Any]]:
        return SimpleNamespace(status_code=200), {"ResponseMetadata": {}}

    with (
        meanwhile(client, "before-call Query", empty),
        pytest.raises(Unavailable, match="has no Items, perhaps because of a proxy"),
    ):
        list(dynamo.runs(TODAY))


def test_a_sum_that_somebody_changed_stops_no_audit(
    client: Any, table: str, dynamo: DynamoHistory
) -> None:
    """The next audits of the day are added to another shard; the changed one is named."""
    dynamo.record(entry("first"))
    for item in everything(client, table):
        if item["sk"]["S"].startswith("family#"):
            client.put_item(TableName=table, Item=item | {"total_usd": {"S": "much"}})
    assert dynamo.record(entry("second")).outcome is RecordOutcome.RECORDED
    [row] = dynamo.daily_sums(Scope.FAMILY, NOON.date(), NOON.date())
    assert row.sums.jobs == 1
    [left_out] = dynamo.take_unreadable()
    assert "family#" in left_out.key
