"""A batch: each record on its own, and which of them come back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from sageaudit.adapters.lambda_runtime.batch import MESSAGES, STREAM, Batch, Source
from sageaudit.adapters.lambda_runtime.counts import Counts
from sageaudit.errors import Throttled
from tests.fakes.delivering import Lambda, batch, counted, failures

MAILS = batch(*({"messageId": name} for name in "abc"))
CHANGES = batch(*({"dynamodb": {"SequenceNumber": name}} for name in "abc"))
SOURCES = [(MESSAGES, MAILS), (STREAM, CHANGES)]
Work = Callable[[dict[str, Any]], bool]


def a_batch(source: Source = MESSAGES, service: str = "batch-tests") -> Batch:
    """One that stops when a second is left."""
    return Batch(
        source,
        task="work",
        failed="WorkFailed",
        stop_before_ms=1_000,
        logger=Logger(service=service),
        counts=Counts({"POWERTOOLS_SERVICE_NAME": service}),
    )


def failing(source: Source, name: str, error: Exception, begun: list[str]) -> Work:
    """Work that raises over one record and notes which it began."""

    def work(record: dict[str, Any]) -> bool:
        begun.append(source.name(record))
        if begun[-1] == name:
            raise error
        return True

    return work


@pytest.mark.parametrize(("source", "event"), SOURCES)
def test_what_is_done_does_not_come_back(source: Source, event: dict[str, Any]) -> None:
    """The whole batch is done."""
    assert a_batch(source).run(event, None, lambda _: True) == {"batchItemFailures": []}


@pytest.mark.parametrize("error", [Throttled("later"), RuntimeError("defect"), KeyError("defect")])
def test_a_message_that_fails_comes_back_alone(error: Exception) -> None:
    """Whatever was raised; the others are done."""
    begun: list[str] = []
    answer = a_batch().run(MAILS, None, failing(MESSAGES, "b", error, begun))
    assert (failures(answer), begun) == (["b"], ["a", "b", "c"])


@pytest.mark.parametrize("error", [Throttled("later"), RuntimeError("defect")])
def test_a_stream_comes_back_from_the_first_that_fails(error: Exception) -> None:
    """What follows it is not begun: an order must hold."""
    begun: list[str] = []
    answer = a_batch(STREAM).run(CHANGES, None, failing(STREAM, "b", error, begun))
    assert (failures(answer), begun) == (["b"], ["a", "b"])


@pytest.mark.parametrize(
    ("source", "event", "names"), [(MESSAGES, MAILS, ["b", "c"]), (STREAM, CHANGES, ["b"])]
)
def test_when_the_time_is_up_no_further_record_is_begun(
    source: Source, event: dict[str, Any], names: list[str]
) -> None:
    """The rest comes back, of a stream by naming its first."""
    context = Lambda(iter([60_000, 999, 998]))
    assert failures(a_batch(source).run(event, context, lambda _: True)) == names


def test_a_refusal_of_aws_is_one_line_and_a_defect_has_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both are counted as failures; only the defect as what nobody foresaw."""
    errors = {"a": Throttled("busy \x1b[31m\n<!channel>"), "b": RuntimeError("why")}

    def work(record: dict[str, Any]) -> bool:
        raise errors.pop(record["messageId"])

    a_batch(service="batch-log").run(batch(*MAILS["Records"][:2]), None, work)
    printed = capsys.readouterr().out
    refused, defect, *_ = map(json.loads, printed.splitlines())
    assert refused["message"] == defect["message"] == "work failed"
    assert (refused["message_id"], refused["error"]) == ("a", "Throttled")
    assert not {"\x1b", "\n"} & set(refused["reason"])
    assert (defect["message_id"], defect["exception_name"]) == ("b", "RuntimeError")
    assert "Traceback" in defect["exception"]
    assert counted(printed) == {("WorkFailed", None): 2, ("Defects", None): 1}
