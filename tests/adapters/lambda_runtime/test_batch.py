"""A batch: each record on its own, and which of them come back."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.lambda_runtime import batch as runtime
from sageaudit.adapters.lambda_runtime.batch import (
    Batch,
    Handler,
    QueueRetries,
    Record,
    RetryRecord,
    StreamRetries,
    entry_point,
)
from sageaudit.adapters.lambda_runtime.records import SqsMessage, TableChange
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.errors import BadSettings, RejectedEvent, Throttled
from tests.fakes.calls import NOON, Clock
from tests.fakes.lambda_events import Lambda, batch, failures, parse_counts, sqs_record
from tests.fakes.queues import FakeQueue

MAILS = batch(*({"messageId": name} for name in "abc"))
CHANGES = batch(*({"dynamodb": {"SequenceNumber": name}} for name in "abc"))
Work = Callable[[Record], None]


def a_batch(
    work: Work,
    record: type[SqsMessage | TableChange] = SqsMessage,
    *,
    dead_letters: FakeQueue | None = None,
    queue: FakeQueue | None = None,
    service: str = "batch-tests",
    begin: Callable[[float | None], None] = lambda _: None,
) -> Handler:
    """One that stops when a second is left."""
    return Batch(
        record,
        work,
        failure_metric="WorkFailed",
        stop_before_ms=1_000,
        retries=retries_of(record, dead_letters or FakeQueue(), queue or FakeQueue()),
        report=RecordReport({"POWERTOOLS_SERVICE_NAME": service}),
        begin=begin,
    )


def retries_of(
    record: type[SqsMessage | TableChange], dead_letters: FakeQueue, queue: FakeQueue
) -> Any:
    """Those of its source."""
    if record is TableChange:
        return StreamRetries(queue, dead_letters)
    return QueueRetries([cast("SqsQueue", queue)], dead_letters, Clock())


def nothing(_: Record) -> None:
    """Work that is done at once."""


def failing(name: str, error: Exception, begun: list[str]) -> Work:
    """Work that raises over one record and notes which it began."""

    def work(record: Record) -> None:
        begun.append(record.identifier)
        if begun[-1] == name:
            raise error

    return work


@pytest.mark.parametrize(
    "error",
    [Throttled("later"), RuntimeError("defect"), KeyError("defect"), RetryRecord("later", 60)],
)
def test_a_message_that_fails_comes_back_alone(error: Exception) -> None:
    """Whatever was raised; the others are done."""
    begun: list[str] = []
    answer = a_batch(failing("b", error, begun))(MAILS, None)
    assert (failures(answer), begun) == (["b"], ["a", "b", "c"])


@pytest.mark.parametrize("error", [Throttled("later"), RuntimeError("defect")])
def test_a_change_that_fails_is_set_aside_and_its_shard_goes_on(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its keys are on the queue of decisions."""
    begun: list[str] = []
    decisions, service = FakeQueue(), f"aside-{type(error).__name__}"
    work = failing("b", error, begun)
    answer = a_batch(work, TableChange, queue=decisions, service=service)(CHANGES, None)
    assert (failures(answer), begun) == ([], ["a", "b", "c"])
    [(letter, _)] = decisions.sent
    assert json.loads(letter)["sequence_number"] == "b"
    assert parse_counts(capsys.readouterr().out)["Requeued", None] == 1


def test_a_stream_comes_back_from_a_change_that_cannot_be_set_aside() -> None:
    """What follows it is not begun: an order must hold."""
    begun: list[str] = []
    decisions = FakeQueue(errors=[Throttled("the queue")])
    answer = a_batch(failing("b", Throttled("later"), begun), TableChange, queue=decisions)(
        CHANGES, None
    )
    assert (failures(answer), begun) == (["b"], ["a", "b"])


@pytest.mark.parametrize(
    ("received", "wait_s"), [(1, 60), (2, 120), (6, 1_920), (7, 3_600), (99, 3_600)]
)
def test_a_message_that_fails_is_hidden_for_longer_each_time(received: int, wait_s: int) -> None:
    """From a minute to an hour; less a part of its own, so that not all come back together."""
    queue, names = FakeQueue(), [f"m{number}" for number in range(50)]
    for name in names:
        handle = a_batch(failing(name, Throttled("later"), []), queue=queue)
        record = sqs_record("{}", message_id=name, received=received)
        assert failures(handle(batch(record), None)) == [name]
    assert 0.8 * wait_s <= min(queue.waits_s) < max(queue.waits_s) <= wait_s
    assert len(set(queue.waits_s)) > 5


@pytest.mark.parametrize(("age_h", "given_up"), [(83.9, False), (84, True), (300, True)])
def test_a_message_that_is_too_old_is_given_up_with_its_reason(
    age_h: float, *, given_up: bool
) -> None:
    """It counts from when it was sent first, also when it was sent again since."""
    sent_ms = int((NOON.timestamp() - age_h * 3600) * 1000)
    record = sqs_record("{}")
    record["attributes"]["SentTimestamp"] = str(int(NOON.timestamp() * 1000))
    record["messageAttributes"] = {"first-sent": {"stringValue": str(sent_ms)}}
    dead = FakeQueue()
    handle = a_batch(failing("m1", Throttled("busy"), []), dead_letters=dead)
    assert failures(handle(batch(record), None)) == ([] if given_up else ["m1"])
    letters = [("{}", {"reason": "abandoned", "why": "busy", "first-sent": str(sent_ms)})]
    assert dead.sent == (letters if given_up else [])


@pytest.mark.parametrize(
    ("record", "event", "names"), [(SqsMessage, MAILS, ["b", "c"]), (TableChange, CHANGES, ["b"])]
)
def test_when_the_time_is_up_no_further_record_is_begun(
    record: type[SqsMessage | TableChange], event: dict[str, Any], names: list[str]
) -> None:
    """The rest comes back, of a stream by naming its first. Who begins one hears what is left."""
    heard: list[float | None] = []
    handle = a_batch(nothing, record, begin=heard.append)
    assert failures(handle(event, Lambda(iter([60_000, 999, 998])))) == names
    assert handle(batch(), None) == {"batchItemFailures": []}
    handle(batch(*event["Records"][:1]), None)
    assert heard == [60_000, None]


def test_a_refusal_of_aws_is_one_line_and_a_defect_has_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both are counted as failures; only the defect as what nobody foresaw.

    AWS's errors and unexpected ones quote what they were given: no line has a secret.
    """
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    errors = {
        "a": Throttled(f"busy \x1b[31m\n<!channel> {key}"),
        "b": RuntimeError(f"no such key: '{key}'"),
    }

    def work(record: Record) -> None:
        raise errors.pop(record.identifier)

    a_batch(work, service="batch-log")(batch(*MAILS["Records"][:2]), None)
    printed = capsys.readouterr().out
    refused, defect = (json.loads(line) for line in printed.splitlines() if "_aws" not in line)
    assert refused["message"] == defect["message"] == "record failed"
    assert (refused["message_id"], refused["error"]) == ("a", "Throttled")
    assert not {"\x1b", "\n"} & set(refused["reason"])
    assert (defect["message_id"], defect["exception_name"]) == ("b", "RuntimeError")
    assert "Traceback" in defect["exception"]
    assert parse_counts(printed) == {("WorkFailed", None): 2, ("Defects", None): 1}
    assert key not in printed
    assert printed.count("[redacted]") >= 2


def test_a_record_that_waits_is_neither_a_failure_nor_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It comes back, and an alarm on failures stays quiet."""
    handle = a_batch(failing("b", RetryRecord("later", 60), []), service="batch-waits")
    assert failures(handle(MAILS, None)) == ["b"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("record", "raw", "letter"),
    [
        (SqsMessage, {"messageId": "b", "body": "as it came"}, "as it came"),
        (
            TableChange,
            {"dynamodb": {"SequenceNumber": "b", "NewImage": {"pk": {"S": "JOB#"}}}},
            '{"pk": "JOB#", "sk": "", "sequence_number": "b"}',
        ),
    ],
)
def test_a_rejected_record_goes_to_the_dead_letters_and_is_done(
    record: type[SqsMessage | TableChange],
    raw: dict[str, Any],
    letter: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With its code and its reason, logged and counted once."""
    dead = FakeQueue()
    rejected = RejectedEvent("forged", "of account \x1b[31m")
    service = f"batch-{record.__name__}"
    handle = a_batch(failing("b", rejected, []), record, dead_letters=dead, service=service)
    assert handle(batch(raw), None) == {"batchItemFailures": []}
    assert dead.sent == [(letter, {"reason": "forged", "why": "of account \x1b[31m"})]
    printed = capsys.readouterr().out
    line = json.loads(printed.splitlines()[0])
    assert (line["message"], line["error"]) == ("record rejected", "forged")
    assert (line[record.LABEL], line["level"]) == ("b", "ERROR")
    assert line["location"].startswith("_is_processed:")
    assert "\x1b" not in line["reason"]
    assert parse_counts(printed) == {("RejectedEvents", None): 1}


def test_the_entry_point_is_wired_at_the_first_event_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not at import; an environment that is incomplete is read again at the next event."""
    wired: list[str | None] = []

    def build(environ: Mapping[str, str]) -> Handler:
        wired.append(environ.get("TABLE_NAME"))
        if wired[-1] is None:
            raise BadSettings("TABLE_NAME")
        return a_batch(nothing)

    monkeypatch.delenv("TABLE_NAME", raising=False)
    handle = entry_point(build)
    assert wired == []
    with pytest.raises(BadSettings):
        handle(batch(), None)
    monkeypatch.setenv("TABLE_NAME", "history")
    for _ in range(2):
        assert handle(batch(), None) == {"batchItemFailures": []}
    assert wired == [None, "history"]


def test_on_lambda_the_function_is_built_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start has a full core."""
    monkeypatch.setattr(runtime, "ON_LAMBDA", True)
    wired: list[str] = []

    def build(_: Mapping[str, str]) -> Handler:
        wired.append("at the start")
        return a_batch(nothing)

    handle = entry_point(build)
    assert wired == ["at the start"]
    assert handle(batch(), None) == {"batchItemFailures": []}
    assert len(wired) == 1
