"""What sweeps keep: the table and the notes in memory answer alike."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.installation import DynamoInstallation
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepNotes
from sageaudit.adapters.history.dynamo.table import INDEXES, PARTITION_KEY, SORT_KEY
from sageaudit.domain.audit.record import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import ListOfJobs, ListState, SentNote, UnderWay
from sageaudit.ports import SweepNotes
from tests.fakes.sweeps import DAY, HOUR, MINUTE, NOON, MemoryNotes

TABLE = "history"
TRAINING = ListOfJobs("111122223333", "us-east-1", JobKind.TRAINING)
KEY = JobKey("arn:aws:sagemaker:us-east-1:111122223333:training-job/a", NOON)
UNDER_WAY = UnderWay(NOON, NOON - DAY, NOON - 2 * DAY, frozenset({"arn-a", "arn-b"}))


@pytest.fixture
def client() -> Iterator[Any]:
    """DynamoDB with an empty table."""
    with mock_aws():
        dynamodb = boto3.client("dynamodb", region_name="us-east-1")
        names = [PARTITION_KEY, SORT_KEY]
        assert INDEXES
        dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in names],
            KeySchema=[
                {"AttributeName": name, "KeyType": kind}
                for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
            ],
        )
        yield dynamodb


@pytest.fixture(params=["memory", "table"])
def notes(request: pytest.FixtureRequest, client: Any) -> SweepNotes:
    """Both."""
    return MemoryNotes() if request.param == "memory" else DynamoSweepNotes(client, TABLE)


def test_one_sweep_at_a_time_has_its_turn(notes: SweepNotes) -> None:
    """Until it ends its turn, or its time is over; nobody ends another's."""
    assert notes.take_turn("a", NOON, 600)
    assert not notes.take_turn("b", NOON + 9 * MINUTE, 600)
    notes.end_turn("b")
    assert not notes.take_turn("b", NOON + 9 * MINUTE, 600)
    assert notes.take_turn("b", NOON + 10 * MINUTE, 600)
    notes.end_turn("a")
    assert not notes.take_turn("a", NOON + 11 * MINUTE, 600)
    notes.end_turn("b")
    assert notes.take_turn("a", NOON + 11 * MINUTE, 600)


def test_a_turn_far_longer_than_a_turn_can_be_is_nobodys(notes: SweepNotes) -> None:
    """A clock that was ahead took it; one that differs by less than a turn takes none away."""
    assert notes.take_turn("ahead", NOON + DAY, 600)
    assert notes.take_turn("a", NOON, 600)
    notes.end_turn("a")
    assert notes.take_turn("a", NOON + 9 * MINUTE, 600)
    assert not notes.take_turn("b", NOON, 600)


@pytest.mark.parametrize("until", [{"S": "soon"}, {"NULL": True}, None])
def test_a_turn_without_a_time_is_nobodys(client: Any, until: dict[str, Any] | None) -> None:
    """The row is damaged: no sweep would ever run again."""
    item = {"pk": {"S": keys.SWEEP_PK}, "sk": {"S": keys.SWEEP_TURN_SK}, "turn_of": {"S": "x"}}
    client.put_item(TableName=TABLE, Item=item if until is None else item | {"until_s": until})
    notes = DynamoSweepNotes(client, TABLE)
    assert notes.take_turn("a", NOON, 600)
    assert not notes.take_turn("b", NOON, 600)


@pytest.mark.parametrize(
    "under_way", [None, UNDER_WAY, UnderWay(NOON, NOON + DAY, None)], ids=["whole", "part", "begun"]
)
def test_a_lists_state_comes_back_as_it_was_kept(
    notes: SweepNotes, under_way: UnderWay | None
) -> None:
    """To the microsecond, and each list for itself."""
    moment = NOON + timedelta(microseconds=1)
    state = ListState(moment - DAY, moment - HOUR, moment - 30 * DAY, under_way)
    assert notes.state(TRAINING) is None
    notes.keep(TRAINING, state)
    assert notes.state(TRAINING) == state
    assert notes.state(ListOfJobs("444455556666", "us-east-1", JobKind.TRAINING)) is None
    assert notes.state(ListOfJobs("111122223333", "us-east-1", JobKind.TUNING)) is None
    whole = ListState(moment - DAY, moment, moment, tried_at=moment + HOUR)
    notes.keep(TRAINING, whole)
    assert notes.state(TRAINING) == whole


@pytest.mark.parametrize("due_at", [None, NOON - HOUR])
def test_what_was_sent_is_known_by_its_run(notes: SweepNotes, due_at: Any) -> None:
    """Another run of the name was not sent."""
    assert notes.sent(KEY) is None
    notes.note_sent(KEY, SentNote(NOON, due_at))
    assert notes.sent(KEY) == SentNote(NOON, due_at)
    assert notes.sent(JobKey(KEY.arn, NOON + HOUR)) is None


@pytest.mark.parametrize("due_at", [None, NOON - HOUR])
def test_an_event_that_came_is_noted_beside_no_other_note(notes: SweepNotes, due_at: Any) -> None:
    """A note of what was sent stays, else what is due would be sent at each sweep."""
    notes.note_came(KEY, NOON)
    assert notes.sent(KEY) == SentNote(NOON, None)
    notes.note_came(KEY, NOON + HOUR)
    assert notes.sent(KEY) == SentNote(NOON, None)
    notes.note_sent(KEY, SentNote(NOON + HOUR, due_at))
    notes.note_came(KEY, NOON + DAY)
    assert notes.sent(KEY) == SentNote(NOON + HOUR, due_at)


@pytest.mark.parametrize(
    "broken", [{}, {"watermark": {"S": "soon"}}, {"watermark": {"N": "1"}}, {"edge": {"S": "x"}}]
)
def test_a_state_that_cannot_be_read_is_a_first_sweep(client: Any, broken: dict[str, Any]) -> None:
    """It looks back a day."""
    item = {"pk": {"S": keys.SWEEP_PK}, "sk": {"S": keys.sweep_list_sk(TRAINING)}, **broken}
    client.put_item(TableName=TABLE, Item=item)
    assert DynamoSweepNotes(client, TABLE).state(TRAINING) is None


def test_the_installation_is_the_tables_creation_and_written_once(client: Any) -> None:
    """Whatever is told of earlier jobs is decided by it."""
    table = DynamoSweepNotes(client, TABLE)
    table.note_installation()
    created_at = client.describe_table(TableName=TABLE)["Table"]["CreationDateTime"]
    assert DynamoInstallation(client, TABLE).installed_at() == created_at
    key = {"pk": {"S": "SWEEP"}, "sk": {"S": "INSTALLED"}}
    moved = key | {"installed_at": {"S": "2020-01-01T00:00:00.000000Z"}}
    client.put_item(TableName=TABLE, Item=moved)
    table.note_installation()
    assert client.get_item(TableName=TABLE, Key=key)["Item"] == moved
