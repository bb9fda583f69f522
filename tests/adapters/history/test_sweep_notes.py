"""What sweeps keep: the table and the notes in memory answer alike."""

from datetime import timedelta
from typing import Any

import pytest

from sageaudit.adapters.history.codec import moment_text
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.sweep_notes import (
    INSTALLATION_PERMISSIONS,
    DynamoSweepStore,
)
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import (
    JobList,
    ListProgress,
    ListState,
    SentEvent,
    SweptRegion,
    drop_abandoned_lists,
    list_states,
    running_row,
)
from sageaudit.errors import MalformedData
from sageaudit.ports import SweepStore
from tests.fakes.memory_ledger import MemorySweepStore
from tests.fakes.sweeps import DAY, HOUR, MINUTE, NOON, read_list, row, store_list

TRAINING = JobList("111122223333", "us-east-1", JobKind.TRAINING)
KEY = JobKey("arn:aws:sagemaker:us-east-1:111122223333:training-job/a", NOON)
UNDER_WAY = ListProgress(NOON, NOON - DAY, NOON - 2 * DAY, frozenset({"arn-a", "arn-b"}))


@pytest.fixture(params=["memory", "table"])
def notes(request: pytest.FixtureRequest, client: Any, table: str) -> SweepStore:
    """Both."""
    return MemorySweepStore() if request.param == "memory" else DynamoSweepStore(client, table)


def test_one_sweep_at_a_time_has_its_turn(notes: SweepStore) -> None:
    """Until it ends its turn, or its time is over; nobody ends another's."""
    assert notes.acquire_lease("a", NOON, 600)
    assert not notes.acquire_lease("b", NOON + 9 * MINUTE, 600)
    notes.release_lease("b")
    assert not notes.acquire_lease("b", NOON + 9 * MINUTE, 600)
    assert notes.acquire_lease("b", NOON + 10 * MINUTE, 600)
    notes.release_lease("a")
    assert not notes.acquire_lease("a", NOON + 11 * MINUTE, 600)
    notes.release_lease("b")
    assert notes.acquire_lease("a", NOON + 11 * MINUTE, 600)


def test_a_turn_far_longer_than_a_turn_can_be_is_nobodys(notes: SweepStore) -> None:
    """A clock that was ahead took it; one that differs by less than a turn takes none away."""
    assert notes.acquire_lease("ahead", NOON + DAY, 600)
    assert notes.acquire_lease("a", NOON, 600)
    notes.release_lease("a")
    assert notes.acquire_lease("a", NOON + 9 * MINUTE, 600)
    assert not notes.acquire_lease("b", NOON, 600)


def test_all_lists_are_found_but_those_that_cannot_be_read(client: Any, table: str) -> None:
    """And nothing else that sweeps keep; one that is not tried any more has left."""
    notes = DynamoSweepStore(client, table)
    assert list_states(notes.swept_regions()) == {}
    left = JobList("222233334444", "us-east-1", JobKind.TUNING)
    states = {
        TRAINING: ListState(NOON, NOON, NOON - DAY, UNDER_WAY, NOON),
        left: ListState(NOON, NOON, NOON - DAY, None, NOON - 4 * HOUR),
    }
    for job_list, state in states.items():
        store_list(notes, job_list, state)
    notes.record_event_sent(KEY, SentEvent(NOON, None))
    for name in ("111122223333#us-east-1#other", "1", "111122223333#us-east-1#transform"):
        item = {"pk": {"S": "SWEEP"}, "sk": {"S": f"LIST#{name}"}}
        client.put_item(TableName=table, Item=item)
    assert list_states(notes.swept_regions()) == states
    assert list(drop_abandoned_lists(list_states(notes.swept_regions()))) == [TRAINING]


@pytest.mark.parametrize("until", [{"S": "soon"}, {"NULL": True}, None])
def test_a_turn_without_a_time_is_nobodys(
    client: Any, table: str, until: dict[str, Any] | None
) -> None:
    """The row is damaged: no sweep would ever run again."""
    item = {"pk": {"S": keys.SWEEP_PK}, "sk": {"S": keys.SWEEP_LEASE_SK}, "lease_owner": {"S": "x"}}
    client.put_item(
        TableName=table, Item=item if until is None else item | {"lease_until_s": until}
    )
    notes = DynamoSweepStore(client, table)
    assert notes.acquire_lease("a", NOON, 600)
    assert not notes.acquire_lease("b", NOON, 600)


@pytest.mark.parametrize(
    "under_way",
    [None, UNDER_WAY, ListProgress(NOON, NOON + DAY, None)],
    ids=["whole", "part", "begun"],
)
def test_a_lists_state_comes_back_as_it_was_kept(
    notes: SweepStore, under_way: ListProgress | None
) -> None:
    """To the microsecond, and each list for itself."""
    moment = NOON + timedelta(microseconds=1)
    state = ListState(moment - DAY, moment - HOUR, moment - 30 * DAY, under_way)
    assert read_list(notes, TRAINING) is None
    store_list(notes, TRAINING, state)
    assert read_list(notes, TRAINING) == state
    assert read_list(notes, JobList("444455556666", "us-east-1", JobKind.TRAINING)) is None
    assert read_list(notes, JobList("111122223333", "us-east-1", JobKind.TUNING)) is None
    whole = ListState(moment - DAY, moment, moment, tried_at=moment + HOUR)
    store_list(notes, TRAINING, whole)
    assert read_list(notes, TRAINING) == whole


def test_the_running_jobs_of_a_region_are_stored_by_kind(notes: SweepStore) -> None:
    """Their names keep their case, so that they can be described."""
    rows = tuple(running_row(row(f"Train-{n}", NOON).ref, NOON - n * MINUTE) for n in range(300))
    swept = SweptRegion({JobKind.TRAINING: ListState(NOON, NOON, NOON)}, {JobKind.TRAINING: rows})
    notes.save_swept_region(TRAINING.account_region, swept)
    assert notes.swept_regions() == {TRAINING.account_region: swept}


def test_running_jobs_that_cannot_be_read_leave_the_lists_readable(client: Any, table: str) -> None:
    """Only the watch misses them, until the next sweep."""
    notes = DynamoSweepStore(client, table)
    store_list(notes, TRAINING, ListState(NOON, NOON, NOON))
    key = {"pk": {"S": "SWEEP"}, "sk": {"S": keys.swept_region_sk(TRAINING.account_region)}}
    client.update_item(
        TableName=table,
        Key=key,
        UpdateExpression="SET running = :odd",
        ExpressionAttributeValues={":odd": {"B": b"odd"}},
    )
    lists = {JobKind.TRAINING: ListState(NOON, NOON, NOON)}
    assert notes.swept_regions() == {TRAINING.account_region: SweptRegion(lists)}


@pytest.mark.parametrize("waited_for_member", [False, True])
@pytest.mark.parametrize("due_at", [None, NOON - HOUR])
def test_what_was_sent_is_known_by_its_run(
    notes: SweepStore, due_at: Any, waited_for_member: bool
) -> None:
    """Another run of the name was not sent."""
    assert notes.event_record(KEY) is None
    sent = SentEvent(NOON, due_at, waited_for_member)
    notes.record_event_sent(KEY, sent)
    assert notes.event_record(KEY) == sent
    assert notes.event_record(JobKey(KEY.arn, NOON + HOUR)) is None


@pytest.mark.parametrize("due_at", [None, NOON - HOUR])
def test_an_event_that_came_is_noted_beside_no_other_note(notes: SweepStore, due_at: Any) -> None:
    """A note of what was sent stays, else what is due would be sent at each sweep."""
    notes.record_event_arrival(KEY, NOON)
    assert notes.event_record(KEY) == SentEvent(NOON, None)
    notes.record_event_arrival(KEY, NOON + HOUR)
    assert notes.event_record(KEY) == SentEvent(NOON, None)
    notes.record_event_sent(KEY, SentEvent(NOON + HOUR, due_at))
    notes.record_event_arrival(KEY, NOON + DAY)
    assert notes.event_record(KEY) == SentEvent(NOON + HOUR, due_at)


@pytest.mark.parametrize(
    "broken", [{}, {"watermark": {"S": "soon"}}, {"watermark": {"N": "1"}}, {"edge": {"S": "x"}}]
)
def test_a_state_that_cannot_be_read_is_a_first_sweep(
    client: Any, table: str, broken: dict[str, Any]
) -> None:
    """It looks back a day."""
    sk = keys.swept_region_sk(TRAINING.account_region)
    lists = {"M": {"training": {"M": broken}}}
    item = {"pk": {"S": keys.SWEEP_PK}, "sk": {"S": sk}, "lists": lists}
    client.put_item(TableName=table, Item=item)
    assert read_list(DynamoSweepStore(client, table), TRAINING) is None


def test_the_installation_is_the_tables_creation_and_written_once(client: Any, table: str) -> None:
    """Whatever is told of earlier jobs is decided by it."""
    notes = DynamoSweepStore(client, table)
    notes.record_installation()
    created_at = client.describe_table(TableName=table)["Table"]["CreationDateTime"]
    assert DynamoSweepStore(client, table).installed_at() == created_at
    key = {"pk": {"S": "SWEEP"}, "sk": {"S": "INSTALLED"}}
    moved = key | {"installed_at": {"S": "2020-01-01T00:00:00.000000Z"}}
    client.put_item(TableName=table, Item=moved)
    notes.record_installation()
    assert client.get_item(TableName=table, Key=key)["Item"] == moved


def written(client: Any, table: str, text: str) -> None:
    """As the first sweep writes it."""
    item = {"pk": {"S": "SWEEP"}, "sk": {"S": "INSTALLED"}, "installed_at": {"S": text}}
    client.put_item(TableName=table, Item=item)


def test_the_moment_is_read_until_it_is_there_and_then_kept(client: Any, table: str) -> None:
    """One GetItem in the life of a process, once the first sweep has written it."""
    installation = DynamoSweepStore(client, table)
    assert installation.installed_at() is None
    written(client, table, moment_text(NOON))
    assert installation.installed_at() == NOON
    written(client, table, "2020-01-01T00:00:00Z")
    assert installation.installed_at() == NOON
    assert INSTALLATION_PERMISSIONS == ("dynamodb:GetItem",)


def test_a_time_to_come_is_not_known(client: Any, table: str) -> None:
    """A damaged row, or a clock that was wrong: it would silence every message."""
    now = NOON
    installation = DynamoSweepStore(client, table, clock=lambda: now)
    written(client, table, moment_text(NOON + timedelta(microseconds=1)))
    assert installation.installed_at() is None
    now = NOON + timedelta(microseconds=1)
    assert installation.installed_at() == now


def test_an_item_without_a_time_is_malformed(client: Any, table: str) -> None:
    """It is not taken for none: then the past would be told."""
    written(client, table, "soon")
    with pytest.raises(MalformedData, match="SWEEP INSTALLED has no time"):
        DynamoSweepStore(client, table).installed_at()
