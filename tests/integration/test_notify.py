"""Stream batches -> notices on the queue, in order, and past what cannot be read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from notify.handler import build, wired
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.channels.catalogue import CHECKS, writers
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.keys import audit_sk, job_pk
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.history.stored_document import stored_text
from sageaudit.adapters.lambda_runtime.batch import Handler, entry_point
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.adapters.lambda_runtime.stream import Change
from sageaudit.domain.audit.record import Entry, JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadPolicy, BadSettings, Throttled
from sageaudit.output.text.envelope import Notice, Writer, read_body
from sageaudit.ports import Queue
from sageaudit.workflows.notify.decide import LEASE_S, NotifyDependencies
from tests.adapters.history.tables import new_table
from tests.fakes.delivering import (
    ARN,
    NOON,
    PK,
    Clock,
    Killed,
    Lambda,
    RecordingChannel,
    RecordingQueue,
    Stepped,
    batch,
    counted,
    deliverer,
    dying,
    failures,
    sqs_record,
    stream_record,
)
from tests.fakes.documents import document, job
from tests.fakes.memory_ledger import MemoryLedger

POLICY = Policy(floor_usd=Decimal(1))
CREATED_AT = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
DONE: dict[str, list[Any]] = {"batchItemFailures": []}


def notifier(
    queue: Any,
    *,
    ledger: Any = None,
    history: Any = None,
    decisions: Any = None,
    undecided: Any = None,
    policy: Policy = POLICY,
    broken: Mapping[str, Writer] | None = None,
    clock: Clock | None = None,
    service: str = "notify-tests",
) -> Handler:
    """Notify over fakes."""
    return wired(
        NotifyDependencies(
            history=history or SqliteHistory(),
            ledger=ledger or MemoryLedger(),
            queues=dict.fromkeys(("sns", "slack"), cast("Queue", queue)),
            policy=policy,
            writers={**writers(["sns", "slack"]), **(broken or {})},
        ),
        decisions=cast("SqsQueue", decisions or RecordingQueue()),
        undecided=cast("Queue", undecided or RecordingQueue()),
        clock=clock or Clock(),
        report=Report({"POWERTOOLS_SERVICE_NAME": service}),
    )


def run_of(number: int) -> dict[str, Any]:
    """The record of another family's audit; its sequence number is `number`."""
    audit = document(job=job(name=f"train-{number}", family=f"family-{number}"))
    return stream_record(audit, number=number, pk=PK.replace("0412", f"{number:04d}"))


def run_id(number: int, channel: str) -> str:
    """The id of a notice about `run_of`."""
    return f"{PK.replace('0412', f'{number:04d}')}|1|{channel}"


def queued_ids(queue: RecordingQueue) -> list[str]:
    """The ids on the queue."""
    return [read_body(body, CHECKS).notice_id for body, _ in queue.sent]


def test_each_new_audit_gives_a_notice_for_each_channel(capsys: pytest.CaptureFixture[str]) -> None:
    """Counted by channel."""
    queue = RecordingQueue()
    assert notifier(queue, service="counted")(batch(run_of(1), run_of(2)), None) == DONE
    assert len(set(queued_ids(queue))) == 4
    assert counted(capsys.readouterr().out) == {
        ("NoticesQueued", "sns"): 2,
        ("NoticesQueued", "slack"): 2,
    }


def test_what_is_no_new_audit_is_passed_over() -> None:
    """Heads, findings, changes and deletions."""
    queue = RecordingQueue()
    head = run_of(1)
    head["dynamodb"]["NewImage"]["sk"] = {"S": "HEAD"}
    changed, removed = {**run_of(2), "eventName": "MODIFY"}, {**run_of(3), "eventName": "REMOVE"}
    assert notifier(queue)(batch(head, changed, removed), None) == DONE
    assert queue.sent == []


def test_a_record_that_cannot_be_read_does_not_stop_its_shard(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is kept with its reason, logged and counted; what stands before and after it is queued."""
    queue, undecided = RecordingQueue(), RecordingQueue()
    poison = [
        stream_record("{", number=2),
        stream_record('{"job": {}}', number=3),
        stream_record(document(), number=4, pk="HEAD"),
        {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "5"}},
        {"eventName": "INSERT"},
        stream_record(document(), number=7, pk=f"JOB#{ARN}#{'9' * 15}"),
    ]
    handle = notifier(queue, undecided=undecided, service="poison")
    assert handle(batch(run_of(1), *poison, run_of(6)), None) == DONE
    assert len(queued_ids(queue)) == 4
    printed = capsys.readouterr().out
    assert counted(printed)["RejectedEvents", None] == 6
    assert printed.count('"record rejected"') == 6
    body, attributes = undecided.sent[0]
    assert json.loads(body) == {
        "pk": PK,
        "sk": "AUDIT#00001",
        "written_at": stream_record("{")["dynamodb"]["ApproximateCreationDateTime"],
        "sequence_number": "2",
    }
    assert attributes == {"reason": "malformed_audit", "why": "document is not JSON"}
    assert len(undecided.sent) == 6


def test_a_record_that_nobody_can_be_shown_is_not_done() -> None:
    """The queue of undecided audits does not answer: the stream keeps the record."""
    undecided = RecordingQueue(answers=[Throttled("queue")])
    handle = notifier(RecordingQueue(), undecided=undecided)
    assert failures(handle(batch(stream_record("{", number=2)), None)) == ["2"]


def _corrupt(path: list[str | int], junk: Any) -> str:
    """A stored document with something else inside."""
    whole: Any = json.loads(stored_text(document(), 1))
    holder = whole
    for key in path[:-1]:
        holder = holder[key]
    if junk is MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = junk
    return json.dumps(whole)


MISSING = object()
DEEP = "[" * 100_000 + "]" * 100_000
CORRUPT = {
    "not JSON": "{",
    "a list": "[]",
    "a number": "7",
    "nothing": "null",
    "empty": "",
    "too deep": DEEP,
    "too deep inside": json.dumps({"job": 1})[:-1] + f', "findings": {DEEP}}}',
    "no job": _corrupt(["job"], MISSING),
    "no bill": _corrupt(["bill"], MISSING),
    "no findings": _corrupt(["findings"], MISSING),
    "a finding is a text": _corrupt(["findings", 0], "x"),
    "no severity": _corrupt(["findings", 0, "severity"], MISSING),
    "a severity of later": _corrupt(["findings", 0, "severity"], "worst"),
    "a summary is a list": _corrupt(["findings", 0, "summary"], []),
    "a fix is a number": _corrupt(["findings", 0, "fix"], [7]),
    "evidence is a text": _corrupt(["findings", 0, "evidence"], "x"),
    "dollars are a text": _corrupt(["avoidable_usd"], "much"),
    "dollars are a list": _corrupt(["lost_usd"], [1]),
    "the bill is a text": _corrupt(["bill", "total_usd"], "much"),
    "hours are a text": _corrupt(["idle_capacity", "idle"], "many"),
    "no hours": _corrupt(["idle_capacity", "paid"], 0),
    "a unit of later": _corrupt(["idle_capacity", "unit"], "tpu_hours"),
    "the end is a number": _corrupt(["job", "ended_at"], 7),
    "the end is no time": _corrupt(["job", "ended_at"], "yesterday"),
    "the family is missing": _corrupt(["job", "family"], MISSING),
    "the phases are a number": _corrupt(["phases"], 7),
    "coverage is missing": _corrupt(["audit"], {}),
    **{
        f"dollars of {number}": stored_text(document(), 1).replace(
            '"avoidable_usd":2.035', f'"avoidable_usd":{number}'
        )
        for number in ("1E+999999", "1E-999999", "-1E+400", "9" * 5_000, "NaN", "Infinity")
    },
}


@pytest.mark.parametrize("text", CORRUPT.values(), ids=CORRUPT)
def test_no_corrupt_document_holds_its_shard(text: str) -> None:
    """It is told, or set aside with its keys; what stands before and after it is told.

    From the queue of decisions it is told, or kept with its reason, or comes back later.
    """
    queue, undecided, decisions = RecordingQueue(), RecordingQueue(), RecordingQueue()
    handle = notifier(queue, undecided=undecided, decisions=decisions)
    record = stream_record(text, number=2, pk=PK.replace("0412", "9999"))
    assert handle(batch(run_of(1), record, run_of(3)), None) == DONE
    assert {run_id(1, "sns"), run_id(3, "slack")} <= set(queued_ids(queue))
    for body, _ in (*undecided.sent, *decisions.sent):
        assert json.loads(body)["pk"] == PK.replace("0412", "9999")
    assert len(undecided.sent) + len(decisions.sent) <= 1


def test_a_writer_that_fails_fails_its_record(capsys: pytest.CaptureFixture[str]) -> None:
    """No notice is lost silently: the stream tries again, and at last somebody sees it."""

    def raises(*_: Any) -> Any:
        raise KeyError("no such part")

    queue, undecided = RecordingQueue(), RecordingQueue()
    decisions = RecordingQueue()
    broken = notifier(
        queue,
        decisions=decisions,
        undecided=undecided,
        broken={"slack": raises},
        service="defect",
    )
    assert broken(batch(run_of(1), run_of(2)), None) == DONE
    assert (queue.sent, undecided.sent, len(decisions.sent)) == ([], [], 2)
    printed = capsys.readouterr().out
    assert counted(printed) == {
        ("NotDecided", None): 2,
        ("Defects", None): 2,
        ("SetAside", None): 2,
    }
    assert "no such part" in printed
    assert notifier(queue)(batch(run_of(1), run_of(2)), None) == DONE
    assert len(set(queued_ids(queue))) == 4


def test_a_second_look_with_the_same_figures_is_sent_once() -> None:
    """Also when it is delivered twice, a day later."""
    queue, ledger = RecordingQueue(), MemoryLedger()
    handle = notifier(queue, ledger=ledger)
    second = stream_record(document(), number=2, version=2)
    second["dynamodb"]["ApproximateCreationDateTime"] += 86_400
    assert handle(batch(stream_record(document()), second, second), None) == DONE
    assert queued_ids(queue) == [f"{PK}|1|sns", f"{PK}|1|slack"]


def test_an_audit_that_waits_for_another_of_its_family_is_decided_from_the_queue(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its shard goes on; the wait is no failure, and lasts as long as the other's claim."""
    down = RecordingQueue(answers=[Throttled("queue")])
    ledger, clock = MemoryLedger(), Clock()
    first, second = (
        stream_record(document(), number=number, pk=PK.replace("0412", f"{number:04d}"))
        for number in (1, 2)
    )
    decisions = RecordingQueue()
    handle = notifier(down, ledger=ledger, decisions=decisions, service="waiting")
    assert handle(batch(first, second), None) == DONE
    assert [json.loads(body)["sequence_number"] for body, _ in decisions.sent] == ["1", "2"]
    assert decisions.sent[1][1]["why"] == "another message about the family is being queued"
    counts = counted(capsys.readouterr().out)
    assert (counts["NotDecided", None], counts["SetAside", None]) == (1, 2)

    history = SqliteHistory()
    for record in (first, second):
        pk, key, _ = Change(record).run()
        history.record(Entry(key, NOON, document(job=job(name=pk[-18:-14])), 1, None, None))
    later = notifier(
        RecordingQueue(),
        ledger=ledger,
        history=history,
        decisions=decisions,
        clock=clock,
        service="waited",
    )
    waits = later(batch(sqs_record(Change(second).letter)), None)
    assert failures(waits) == ["m1"]
    assert decisions.waits_s == [LEASE_S + 1]
    clock.move(LEASE_S + 1)
    assert later(batch(sqs_record(Change(second).letter)), None) == DONE
    assert later(batch(sqs_record(Change(first).letter)), None) == DONE
    assert counted(capsys.readouterr().out) == {  # of the first, Slack had its notice and SNS not
        ("NoticesQueued", "sns"): 2,
        ("NoticesQueued", "slack"): 2,
    }


def test_a_failure_names_the_first_record_that_can_be_kept_nowhere() -> None:
    """Lambda comes back from there: nothing after it was begun."""
    queue, decisions = RecordingQueue(), RecordingQueue()
    handle = notifier(queue, ledger=MemoryLedger(), decisions=decisions)
    assert handle(batch(run_of(1)), None) == DONE
    queue.answers.append(Throttled("queue"))
    decisions.answers.append(Throttled("queue"))
    assert failures(handle(batch(run_of(2), run_of(3)), None)) == ["2"]
    assert queued_ids(queue)[2:] == [run_id(2, "slack")]
    assert handle(batch(run_of(2), run_of(3)), None) == DONE
    assert len(set(queued_ids(queue))) == 6


def test_a_failure_without_a_number_brings_the_whole_batch_back() -> None:
    """An empty identifier says so."""
    queue, decisions = (RecordingQueue(answers=[Throttled("queue")]) for _ in range(2))
    record = run_of(1)
    del record["dynamodb"]["SequenceNumber"]
    assert failures(notifier(queue, decisions=decisions)(batch(record), None)) == [""]


def test_when_the_time_is_up_the_rest_comes_back() -> None:
    """From the first record that was not begun."""
    queue = RecordingQueue()
    context = Lambda(iter([120_000, 74_000]))
    records = batch(run_of(1), run_of(2), run_of(3))
    assert failures(notifier(queue)(records, context)) == ["2"]
    assert len(queue.sent) == 2


def test_hostile_names_are_one_plain_line_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """The reason of a broken document may hold what stood in it."""
    record = stream_record(
        document(job={**job(), "ended_at": "\u2028\x1b[31m\u202e2026\n<!channel>"}), number=1
    )
    notifier(RecordingQueue(), service="hostile")(batch(record), None)
    [line] = [
        json.loads(line)
        for line in capsys.readouterr().out.split("\n")
        if "rejected" in line and "_aws" not in line
    ]
    assert not {"\u2028", "\u202e", "\x1b", "\n"} & set(line["reason"])


def test_ten_deliveries_interleaved_and_killed_anywhere_end_in_one_message_a_channel() -> None:
    """Notify may queue a notice many times; deliver posts it once."""
    for steps in itertools.count():
        ledger, queue, channels = MemoryLedger(), RecordingQueue(), _channels()
        step, taken, killed = dying(steps), itertools.count(), []

        def interleaved(
            step: Any = step,
            taken: Iterator[int] = taken,
            steps: int = steps,
            ledger: Any = ledger,
            queue: Any = queue,
        ) -> None:
            if next(taken) == steps - 1:
                for _ in range(9):
                    notifier(queue, ledger=ledger)(batch(run_of(1)), None)
            step()

        stepped = notifier(Stepped(queue, interleaved), ledger=Stepped(ledger, interleaved))
        try:
            stepped(batch(run_of(1)), None)
        except Killed:
            killed.append(steps)
            assert notifier(queue, ledger=ledger)(batch(run_of(1)), None) == DONE
        handle = deliverer(ledger, channels)
        for body, _ in queue.sent:
            assert handle(batch(sqs_record(body)), None) == DONE
        assert {name: len(one.posted) for name, one in channels.items()} == {"sns": 1, "slack": 1}
        if not killed:
            break
    assert steps > 5


def _channels() -> dict[str, RecordingChannel]:
    return {"sns": RecordingChannel(), "slack": RecordingChannel()}


# ---- wired as it is deployed, over AWS as moto plays it


@pytest.fixture
def aws() -> Iterator[boto3.Session]:
    """A region with nothing in it."""
    with mock_aws():
        yield boto3.Session(region_name="us-east-1")


def deployed(session: boto3.Session) -> dict[str, str]:
    """The table and the queues: the function's environment."""
    sqs = session.client("sqs")
    return {
        "TABLE_NAME": new_table(session.client("dynamodb")),
        "NOTICES_QUEUE_URL_SNS": sqs.create_queue(QueueName="sns")["QueueUrl"],
        "NOTICES_QUEUE_URL_SLACK": sqs.create_queue(QueueName="slack")["QueueUrl"],
        "DECISIONS_QUEUE_URL": sqs.create_queue(QueueName="decisions")["QueueUrl"],
        "UNDECIDED_QUEUE_URL": sqs.create_queue(QueueName="undecided")["QueueUrl"],
        "CHANNELS": "sns,slack",
        "POWERTOOLS_SERVICE_NAME": "notify-on-moto",
    }


def recorded(session: boto3.Session, table: str, name: str) -> dict[str, Any]:
    """Writes a run's audit into the history; its item, as the stream shows it."""
    whole = document(job=job(name=name))
    key = JobKey(f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{name}", CREATED_AT)
    dynamodb = session.client("dynamodb")
    DynamoHistory(dynamodb, table).record(Entry(key, NOON, whole, 1, None, None))
    item = {"pk": {"S": job_pk(key)}, "sk": {"S": audit_sk(1)}}
    image = dynamodb.get_item(TableName=table, Key=item)["Item"]
    return {"eventName": "INSERT", "dynamodb": {"NewImage": image, "SequenceNumber": "1"}}


def waiting(session: boto3.Session, url: str) -> list[dict[str, Any]]:
    """The messages of a queue that can be seen now."""
    answer = session.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def queued(session: boto3.Session, environ: dict[str, str]) -> list[Notice]:
    """The notices that can be seen now."""
    return [
        read_body(one["Body"], CHECKS)
        for channel in ("SNS", "SLACK")
        for one in waiting(session, environ[f"NOTICES_QUEUE_URL_{channel}"])
    ]


def test_deployed_it_tells_what_the_history_wrote(aws: boto3.Session) -> None:
    """An audit goes into the table; its item, as the stream shows it, comes out as two notices."""
    environ = deployed(aws)
    record = recorded(aws, environ["TABLE_NAME"], "train-1")
    handle = build(environ, session=aws, clock=Clock(), policy=POLICY)
    assert handle(batch(record), None) == DONE
    assert handle(batch(record), None) == DONE
    pk = record["dynamodb"]["NewImage"]["pk"]["S"]
    assert {one.notice_id for one in queued(aws, environ)} == {f"{pk}|1|sns", f"{pk}|1|slack"}


def test_deployed_a_family_reaches_the_floor_with_its_other_runs(aws: boto3.Session) -> None:
    """$2.04 a run: the floor of $6 is reached by the third, whichever the index knows."""
    environ = deployed(aws)
    policy = Policy(floor_usd=Decimal(6))
    handle = build(environ, session=aws, clock=Clock(), policy=policy)
    notices = []
    for name in ("train-1", "train-2", "train-3"):
        assert handle(batch(recorded(aws, environ["TABLE_NAME"], name)), None) == DONE
        notices.append(len(queued(aws, environ)))
    assert notices == [0, 0, 2]


def test_deployed_what_was_set_aside_is_decided_from_the_table(aws: boto3.Session) -> None:
    """Its letter names the audit, whose notices are queued then."""
    environ = deployed(aws)
    change = recorded(aws, environ["TABLE_NAME"], "train-1")
    handle = build(environ, session=aws, clock=Clock(), policy=POLICY)
    assert handle(batch(sqs_record(Change(change).letter)), None) == DONE
    assert {one.channel for one in queued(aws, environ)} == {"sns", "slack"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "malformed_audit"),
        ("[]", "malformed_audit"),
        ('{"pk": 1, "sk": "AUDIT#00001"}', "malformed_audit"),
        (f'{{"pk": "{PK}", "sk": "AUDIT#00001"}}', "no_audit"),
    ],
)
def test_deployed_a_letter_that_names_no_audit_is_kept(
    aws: boto3.Session, body: str, reason: str
) -> None:
    """With its reason."""
    environ = deployed(aws)
    handle = build(environ, session=aws, clock=Clock(), policy=POLICY)
    assert handle(batch(sqs_record(body)), None) == DONE
    [kept] = waiting(aws, environ["UNDECIDED_QUEUE_URL"])
    assert kept["Body"] == body
    assert kept["MessageAttributes"]["reason"]["StringValue"] == reason


def test_deployed_it_keeps_what_cannot_be_read(aws: boto3.Session) -> None:
    """With the reason as an attribute of the message."""
    environ = deployed(aws)
    handle = build(environ, session=aws, clock=Clock(), policy=POLICY)
    assert handle(batch(stream_record("{")), None) == DONE
    [kept] = waiting(aws, environ["UNDECIDED_QUEUE_URL"])
    assert json.loads(kept["Body"])["pk"] == PK
    assert kept["MessageAttributes"]["reason"]["StringValue"] == "malformed_audit"


def test_a_wrong_environment_or_policy_is_named(
    aws: boto3.Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Before any record is taken."""
    with pytest.raises(BadSettings, match="TABLE_NAME"):
        build({}, session=aws)
    monkeypatch.setattr(stored_policy, "IN_ASSET", tmp_path / "policy.json")
    with pytest.raises(BadPolicy, match=r"policy\.json: cannot be read"):
        build(deployed(aws), session=aws)
    (tmp_path / "policy.json").write_text('mode = "tell"', encoding="utf-8")
    with pytest.raises(BadPolicy, match=r"policy\.json: is not a policy"):
        build(deployed(aws), session=aws)


def test_the_entry_point_is_wired_from_the_environment_once(
    aws: boto3.Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """At the first event, with the policy that lies at the asset's root."""
    observing = stored_policy.to_text(Policy(mode="observe"))
    (tmp_path / "policy.json").write_text(observing, encoding="utf-8")
    monkeypatch.setattr(stored_policy, "IN_ASSET", tmp_path / "policy.json")
    environ = deployed(aws)
    record = recorded(aws, environ["TABLE_NAME"], "train-1")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    handle = entry_point(build)
    assert handle(batch(record), None) == DONE
    monkeypatch.delenv("TABLE_NAME")
    assert handle(batch(record), None) == DONE
    assert not queued(aws, environ)
