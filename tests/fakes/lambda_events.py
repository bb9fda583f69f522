"""What Lambda hands to a function, and what comes out of it: failures, log lines and counts."""

import base64
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.functions import ProcessKilled
from sageaudit.adapters.files.exact_json import gzip_text
from sageaudit.adapters.history.record_steps import to_stored_json
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobEndEvent, parse_job_end_event
from tests.fakes.calls import NOON
from tests.fakes.jobs import ACCOUNT, REGION

CREATED = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
"""When the job of `jobs.training_answer` and of an event was created."""
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/train-bert-0412"
PK = f"JOB#{ARN}#1779271080000"
QUEUE = "work"
"""The name of the queue that `sqs_record` comes from, and of a queue that has no other name."""


@dataclass
class Lambda:
    """The context: how much time is left."""

    left_ms: Iterator[int]
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return next(self.left_ms)


class RecordedReport(RecordReport):
    """A report that keeps its lines and counts, and prints the lines.

    What a process that dies has counted since its last flush is not counted.
    """

    def __init__(self) -> None:
        super().__init__({"POWERTOOLS_SERVICE_NAME": "recorded"})
        self.clear()

    def clear(self) -> None:
        """Forgets everything: a logger takes long to make."""
        self.counts: Counter[tuple[str, str | None]] = Counter()
        """By metric and channel."""
        self.lines: list[tuple[str, str]] = []
        """Each message, and everything that its line names."""
        self.defects: list[str] = []

    @property
    def names(self) -> Counter[str]:
        """The counts by metric alone."""
        names = Counter[str]()
        for (name, _), number in self.counts.items():
            names[name] += number
        return names

    def _keep(self, message: str, named: Mapping[str, Any]) -> None:
        self.lines.append((message, str({**self._labels, **named})))

    def info(self, message: str, **named: Any) -> None:
        self._keep(message, named)
        super().info(message, **named)

    def warning(self, message: str, **named: Any) -> None:
        self._keep(message, named)
        super().warning(message, **named)

    def error(self, message: str, **named: Any) -> None:
        self._keep(message, named)
        super().error(message, **named)

    def defect(self, message: str, error: Exception, **named: Any) -> None:
        self._keep(message, {**named, "error": repr(error)})
        self.defects.append(f"{type(error).__name__}: {error}")
        super().defect(message, error, **named)

    def flush(self) -> None:
        if not isinstance(sys.exc_info()[1], ProcessKilled):
            for channel, names in self._counts.items():
                self.counts.update({(name, channel): number for name, number in names.items()})
        self._counts.clear()
        super().flush()


def counted(printed: str) -> dict[tuple[str, str | None], int]:
    """The counts among the lines of standard output, by name and channel."""
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith('{"_aws"')]
    counts: Counter[tuple[str, str | None]] = Counter()
    for line in lines:
        for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
            counts[metric["Name"], line.get("channel")] += int(sum(line[metric["Name"]]))
    return dict(counts)


def batch(*records: dict[str, Any]) -> dict[str, Any]:
    """An event."""
    return {"Records": list(records)}


def failures(answer: dict[str, Any]) -> list[str]:
    """Which records come back."""
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def job_event(
    name: str = "train-vision",
    *,
    kind: JobKind = JobKind.TRAINING,
    source: str = "aws.sagemaker",
    envelope: Mapping[str, Any] | None = None,
    **detail: Any,
) -> str:
    """EventBridge's event of a job's end. A detail of None is left out."""
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.spec.arn_word}/{name}"
    prefix = kind.spec.prefix
    said = {
        f"{prefix}JobName": name,
        f"{prefix}JobArn": arn,
        f"{prefix}JobStatus": "Completed",
        "CreationTime": round(CREATED.timestamp() * 1000),
        **detail,
    }
    body = {
        "source": source,
        "detail-type": kind.spec.detail_type,
        "account": ACCOUNT,
        "region": REGION,
        "time": "2026-05-20T11:00:02Z",
        **(envelope or {}),
        "detail": {key: value for key, value in said.items() if value is not None},
    }
    return json.dumps({key: value for key, value in body.items() if value is not None})


def ended(name: str, kind: JobKind = JobKind.TRAINING, **detail: Any) -> JobEndEvent:
    """The same event, read as from the queue."""
    return parse_job_end_event(
        job_event(name, kind=kind, **detail), accounts={ACCOUNT}, regions={REGION}
    )


def sqs_record(
    body: str, *, message_id: str = "m1", received: int = 1, queue: str = QUEUE
) -> dict[str, Any]:
    """A message of a queue."""
    return {
        "messageId": message_id,
        "receiptHandle": message_id,
        "body": body,
        "attributes": {"ApproximateReceiveCount": str(received)},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:111122223333:{queue}",
    }


def stream_record(
    document: AuditDocument | str, *, number: int = 1, version: int = 1, pk: str = PK
) -> dict[str, Any]:
    """The INSERT of an audit in the table's stream."""
    text = document if isinstance(document, str) else to_stored_json(document, version)
    keys = {"pk": {"S": pk}, "sk": {"S": f"AUDIT#{version:05d}"}}
    image = {**keys, "version": {"N": str(version)}, "document": _packed(text)}
    return _insert(number, Keys=keys, NewImage=image)


def notice_record(pk: str, sk: str, channel: str, body: str, *, number: int = 1) -> dict[str, Any]:
    """The INSERT of a notice in the table's stream."""
    keys = {"pk": {"S": pk}, "sk": {"S": sk}}
    return _insert(number, NewImage={**keys, "channel": {"S": channel}, "body": _packed(body)})


def _packed(text: str) -> dict[str, str]:
    return {"B": base64.b64encode(gzip_text(text)).decode()}


def _insert(number: int, **parts: Any) -> dict[str, Any]:
    return {
        "eventID": f"e{number}",
        "eventName": "INSERT",
        "eventSource": "aws:dynamodb",
        "dynamodb": {
            "ApproximateCreationDateTime": NOON.timestamp(),
            "SequenceNumber": str(number),
            **parts,
        },
    }
