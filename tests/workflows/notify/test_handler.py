"""Records of the stream and letters of the queue: in order, past what cannot be read, counted."""

import json
from typing import Any

import pytest

from sageaudit.adapters.history.record_steps import to_stored_json
from sageaudit.errors import Throttled
from tests.fakes.documents import document, job
from tests.fakes.family import run_document
from tests.fakes.lambda_events import (
    ARN,
    PK,
    Lambda,
    batch,
    failures,
    notice_record,
    parse_counts,
    sqs_record,
    stream_record,
)
from tests.fakes.stream import Stream

DONE: dict[str, list[Any]] = {"batchItemFailures": []}
SIXTY = run_document(avoidable="60")


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> Stream:
    """With a log of its own."""
    return Stream(service=f"handler {request.node.name}")


def run_of(stream: Stream, number: int) -> dict[str, Any]:
    """The record of another family's audit; its sequence number is `number`."""
    name = f"train-{number:04d}"
    whole = {**SIXTY, "job": job(name=name, family=f"family-{number}")}
    audit = stream.story.audit(whole, stream.clock())  # type: ignore[arg-type]
    return stream_record(audit.document, number=number, pk=audit.pk)


def notified(stream: Stream) -> set[int]:
    """The numbers of the runs with an alert."""
    return {int(pk.rpartition("/")[2].split("#")[0][-4:]) for pk, _ in stream.story.ledger.notices}


def test_an_audit_is_decided_about_and_its_notices_are_queued(
    stream: Stream, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line names the job. What is sent is counted, and costs a metric, in `deliver` alone."""
    stream.write_audit(SIXTY)
    stream.read()
    assert [len(queue.sent) for queue in stream.story.queues.values()] == [0, 0]
    stream.read()
    printed = capsys.readouterr().out
    assert not parse_counts(printed)
    lines = [json.loads(line) for line in printed.splitlines() if "_aws" not in line]
    assert [line["message"] for line in lines] == ["notified", "queued", "queued"]
    assert {(line["job"], line["version"]) for line in lines} == {(ARN, 1)}
    assert [line.get("channel") for line in lines] == [None, "sns", "slack"]


def test_what_is_no_insert_of_an_audit_or_a_notice_is_passed_over(stream: Stream) -> None:
    """Heads, deliveries, changes, and notices that expire."""
    head, moved, gone = (run_of(stream, number) for number in (1, 2, 3))
    head["dynamodb"]["NewImage"]["sk"] = {"S": "HEAD"}
    expired = notice_record(f"ALERT#{PK}", "NOTICE#00001#ml-platform2", "sns", "{}")
    expired["eventName"] = "REMOVE"
    records = head, {**moved, "eventName": "MODIFY"}, {**gone, "eventName": "REMOVE"}, expired
    assert stream.handler()(batch(*records), None) == DONE
    assert not stream.story.ledger.notices
    assert not stream.story.sns.sent


def test_a_record_that_cannot_be_read_does_not_stop_its_shard(
    stream: Stream, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is kept with its reason, logged and counted; the others are decided about."""
    poison = [
        stream_record("{", number=2),
        stream_record('{"job": {}}', number=3),
        stream_record(document(), number=4, pk="HEAD"),
        {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "5"}},
        {"eventName": "INSERT"},
        stream_record(document(), number=7, pk=f"JOB#{ARN}#{'9' * 15}"),
        notice_record(f"ALERT#{PK}", "NOTICE#00001#sns", "sns", ""),
        notice_record(f"ALERT#{PK}", "NOTICE#00001#sns", "", "{}"),
        notice_record("ALERT#HEAD", "NOTICE#00001#ml-platform2", "sns", "{}"),
    ]
    records = run_of(stream, 1), *poison, run_of(stream, 6)
    assert stream.handler()(batch(*records), None) == DONE
    assert notified(stream) == {1, 6}
    printed = capsys.readouterr().out
    assert parse_counts(printed)["RejectedEvents", None] == len(poison)
    assert printed.count('"record rejected"') == len(poison)
    body, attributes = stream.undecided.sent[0]
    assert json.loads(body) == {"pk": PK, "sk": "AUDIT#00001", "sequence_number": "2"}
    assert attributes == {"reason": "malformed_audit", "why": "document cannot be unpacked"}
    reasons = [attributes["reason"] for _, attributes in stream.undecided.sent]
    assert reasons == ["malformed_audit"] * 6 + ["malformed_notice"] * 2 + ["malformed_audit"]


def _corrupt(path: list[str | int], junk: Any) -> str:
    """A stored document with something else inside."""
    whole: Any = json.loads(to_stored_json(document(), 1))
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
    "a list": "[]",
    "nothing": "null",
    "empty": "",
    "too deep": DEEP,
    "too deep inside": json.dumps({"job": 1})[:-1] + f', "findings": {DEEP}}}',
    "no job": _corrupt(["job"], MISSING),
    "a finding is a text": _corrupt(["findings", 0], "x"),
    "a severity of later": _corrupt(["findings", 0, "severity"], "worst"),
    "a summary is a list": _corrupt(["findings", 0, "summary"], []),
    "a fix is a number": _corrupt(["findings", 0, "fix"], [7]),
    "dollars are a list": _corrupt(["lost_usd"], [1]),
    "the bill is a text": _corrupt(["bill", "total_usd"], "much"),
    "no hours": _corrupt(["idle_capacity", "paid"], 0),
    "a unit of later": _corrupt(["idle_capacity", "unit"], "tpu_hours"),
    "the end is no time": _corrupt(["job", "ended_at"], "yesterday"),
    "coverage is missing": _corrupt(["audit"], {}),
    **{
        f"dollars of {number[:9]}": to_stored_json(document(), 1).replace(
            '"avoidable_usd":2.035', f'"avoidable_usd":{number}'
        )
        for number in ("1E+999999", "-1E+400", "9" * 5_000, "NaN", "Infinity")
    },
}


@pytest.mark.parametrize("text", CORRUPT.values(), ids=CORRUPT)
def test_no_corrupt_document_holds_its_shard(stream: Stream, text: str) -> None:
    """It is decided about, or kept with its keys; its neighbours are decided about."""
    run_of(stream, 9)
    record = stream_record(text, number=2, pk=PK.replace("train-bert-0412", "train-0009"))
    records = run_of(stream, 1), record, run_of(stream, 3)
    assert stream.handler()(batch(*records), None) == DONE
    assert notified(stream) >= {1, 3}
    set_aside = [*stream.undecided.sent, *stream.decisions.sent]
    assert len(set_aside) <= 1
    assert all("train-0009" in json.loads(body)["pk"] for body, _ in set_aside)


def test_a_failure_is_set_aside_and_counted(
    stream: Stream, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its keys are decided about from the queue; what is after it in the shard at once."""
    stream.story.ledger.past_alerts = failing_once(
        stream.story.ledger.past_alerts, RuntimeError("no such part")
    )
    assert stream.handler()(batch(run_of(stream, 1), run_of(stream, 2)), None) == DONE
    assert notified(stream) == {2}
    printed = capsys.readouterr().out
    assert parse_counts(printed) == {
        ("NotDecided", None): 1,
        ("Defects", None): 1,
        ("Requeued", None): 1,
    }
    assert "no such part" in printed
    stream.read_decisions()
    assert notified(stream) == {1, 2}


def failing_once(call: Any, error: Exception) -> Any:
    """The first call raises."""
    left = [error]

    def failing(*args: Any) -> Any:
        if left:
            raise left.pop()
        return call(*args)

    return failing


def test_a_failure_names_the_first_record_that_can_be_kept_nowhere(stream: Stream) -> None:
    """Lambda comes back from there: nothing after it was begun. Without a number, the batch."""
    records = [run_of(stream, number) for number in (1, 2, 3)]
    handle = stream.handler()
    assert handle(batch(records[0]), None) == DONE
    past = stream.story.ledger.past_alerts
    stream.story.ledger.past_alerts = failing_once(past, Throttled("table"))
    stream.decisions.errors.append(Throttled("queue"))
    assert failures(handle(batch(*records[1:]), None)) == ["2"]
    assert notified(stream) == {1}
    stream.undecided.errors.append(Throttled("queue"))
    assert failures(handle(batch(stream_record("{", number=4)), None)) == ["4"]
    del records[1]["dynamodb"]["SequenceNumber"]
    stream.story.ledger.past_alerts = failing_once(past, Throttled("table"))
    stream.decisions.errors.append(Throttled("queue"))
    assert failures(handle(batch(records[1]), None)) == [""]


def test_when_the_time_is_up_the_rest_comes_back(stream: Stream) -> None:
    """From the first record that was not begun."""
    records = [run_of(stream, number) for number in (1, 2, 3)]
    answer = stream.handler()(batch(*records), Lambda(iter([120_000, 74_000])))
    assert failures(answer) == ["2"]
    assert notified(stream) == {1}


@pytest.mark.parametrize(
    ("letter", "reason"),
    [
        ("{", "malformed_audit"),
        ('{"pk": 1, "sk": "AUDIT#00001"}', "malformed_audit"),
        (json.dumps({"pk": PK, "sk": "AUDIT#00001"}), "not_found"),
        (json.dumps({"pk": f"ALERT#{PK}", "sk": "NOTICE#00001#sns"}), "not_found"),
    ],
)
def test_a_letter_that_leads_to_nothing_is_kept(stream: Stream, letter: str, reason: str) -> None:
    """With its reason."""
    assert stream.handler()(batch(sqs_record(letter)), None) == DONE
    [(body, attributes)] = stream.undecided.sent
    assert (body, attributes["reason"]) == (letter, reason)
    assert attributes["why"]


def test_a_letter_that_fails_waits_longer_each_time(stream: Stream) -> None:
    """And goes to the undecided ones at an age of 3.5 days."""
    pk = stream.story.audit(SIXTY, stream.clock()).pk
    record = sqs_record(json.dumps({"pk": pk, "sk": "AUDIT#00001"}), queue="work", received=4)
    stream.story.ledger.past_alerts = failing_once(
        stream.story.ledger.past_alerts, Throttled("table")
    )
    assert failures(stream.handler()(batch(record), None)) == ["m1"]
    assert 384 <= stream.decisions.waits_s[0] <= 480
    sent_ms = int((stream.clock().timestamp() - 84 * 3_600) * 1_000)
    record["attributes"]["SentTimestamp"] = str(sent_ms)
    stream.story.ledger.past_alerts = failing_once(
        stream.story.ledger.past_alerts, Throttled("table")
    )
    assert stream.handler()(batch(record), None) == DONE
    assert [attributes["reason"] for _, attributes in stream.undecided.sent] == ["abandoned"]
