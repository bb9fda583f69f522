"""The items that the DynamoDB twins leave behind, and the actions they call."""

from datetime import timedelta
from itertools import islice
from typing import Any

from sageaudit.adapters.history.dynamo import history as dynamo_history
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.sums import Scope
from tests.adapters.history.faults import called_actions, everything
from tests.fakes.documents import ACCOUNT, REGION
from tests.fakes.entries import NOON, entry, entry_ending_at, key, unsettled_entry, with_detail


def test_items_carry_what_the_stack_and_the_console_need(client: Any, table: str) -> None:
    """The stack's keys are text, only the detail expires, only what is due is in that index."""
    history = DynamoHistory(client, table)
    history.record(with_detail(unsettled_entry(due_at="2026-11-20T13:00:00Z")))
    stored = everything(client, table)
    items = {item["sk"]["S"]: item for item in stored if item["pk"]["S"].startswith("JOB#")}

    assert set(items) == {"HEAD", "AUDIT#00001", "FINDING#SA-gpu-underused", "DETAIL"}
    assert set(items["AUDIT#00001"]) == {"pk", "sk", "document"}
    assert {sk for sk, item in items.items() if "expires_at" in item} == {"DETAIL"}
    assert items["HEAD"]["due_sk"]["S"].startswith("2026-11-20T13:00:00.000000Z#arn:aws:")
    assert items["HEAD"]["pk"]["S"].endswith(":training-job/train-1#1795168800000")

    history.record(entry(bill={"total_usd": None}))
    head = client.get_item(TableName=table, Key={"pk": items["HEAD"]["pk"], "sk": {"S": "HEAD"}})
    assert not {"due_pk", "due_sk", "due_at"} & set(head["Item"])


def test_the_table_is_called_for_what_is_declared(client: Any, table: str) -> None:
    """PERMISSIONS are the actions that the adapters call: none is missing, none is spare."""
    with called_actions(client) as called:
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


def test_a_list_reads_on_over_dynamodbs_pages_and_no_further_than_asked(
    client: Any, table: str
) -> None:
    """Seven rows over pages of two; two rows are one query for two."""
    history, asked = DynamoHistory(client, table), list[int | None]()
    for minute in range(7):
        history.record(entry_ending_at(f"job-{minute}", NOON + timedelta(minutes=minute)))
    family = RunQuery.for_family(ACCOUNT, REGION, "training/resnet")

    def small_pages(params: dict[str, Any], **_: Any) -> dict[str, Any]:
        asked.append(params.get("Limit"))
        return params | {"Limit": 2}

    client.meta.events.register("provide-client-params.dynamodb.Query", small_pages)
    try:
        for heads in (
            history.runs(RunQuery.for_day(NOON.date())),
            history.runs(RunQuery.for_account(ACCOUNT)),
            history.runs(family),
        ):
            assert [head.job for head in heads] == [f"job-{minute}" for minute in range(6, -1, -1)]
        assert set(asked) == {None}
        asked.clear()
        assert len(list(islice(history.runs(family, page_size=2), 2))) == 2
        assert asked == [2]
    finally:
        client.meta.events.unregister("provide-client-params.dynamodb.Query", small_pages)


def test_each_further_page_of_a_list_may_be_twice_as_long(client: Any, table: str) -> None:
    """So a few rows cost little, and a long list needs few queries."""
    history, asked = DynamoHistory(client, table), list[int | None]()
    for minute in range(5):
        history.record(entry_ending_at(f"job-{minute}", NOON + timedelta(minutes=minute)))

    def note_limit(params: dict[str, Any], **_: Any) -> None:
        asked.append(params.get("Limit"))

    client.meta.events.register("provide-client-params.dynamodb.Query", note_limit)
    try:
        family = RunQuery.for_family(ACCOUNT, REGION, "training/resnet")
        assert len(list(history.runs(family, page_size=1))) == 5
        assert asked == [1, 2, 4]
    finally:
        client.meta.events.unregister("provide-client-params.dynamodb.Query", note_limit)


def _use_history(history: DynamoHistory) -> None:
    history.record(with_detail(entry()))
    history.record(entry(modified_s=60))
    history.record(entry(modified_s=90, findings=[]))


def _ask_history(history: DynamoHistory) -> None:
    history.summary(key())
    history.audit(key())
    history.audit(key(), 1)
    history.detail(key())
    queries: list[RunQuery[Any]] = [
        RunQuery.for_day(NOON.date()),
        RunQuery.for_owner("ana"),
        RunQuery.for_account(ACCOUNT),
        RunQuery.for_rule("gpu-underused"),
        RunQuery.due_until(NOON),
    ]
    for query in queries:
        list(history.runs(query))
    _ask_sums(history)
    _ask_family(history)


def _ask_sums(history: DynamoHistory) -> None:
    history.summary(key())
    list(history.daily_sums(Scope.TYPE, NOON.date(), NOON.date()))


def _ask_family(history: DynamoHistory) -> None:
    list(history.runs(RunQuery.for_family(ACCOUNT, REGION, "f")))
