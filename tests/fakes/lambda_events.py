"""Lambda's events and context, and readers of a function's failures, log lines and counts."""

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
from sageaudit.domain.job.ref import AccountRegion, JobEndEvent, parse_job_end_event
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.scope import MemberAccounts
from tests.fakes.calls import NOON
from tests.fakes.jobs import ACCOUNT, REGION

CREATED = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
"""Creation time of the job in `jobs.training_answer` and in events."""
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/train-bert-0412"
PK = f"JOB#{ARN}#1779271080000"
QUEUE = "work"
"""The default name of queues and of the source of `sqs_record`."""
HOME = AccountRegion(ACCOUNT, REGION)
HOME_ONLY = AuditScope(HOME, MemberAccounts())
"""A deployment without other accounts and regions."""


@dataclass
class Lambda:
    """Lambda's context with the remaining times to return."""

    left_ms: Iterator[int]
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return next(self.left_ms)


class RecordedReport(RecordReport):
    """A report that prints its lines, and keeps lines and counts.

    Counts since the last flush are lost if the process dies.
    """

    def __init__(self) -> None:
        super().__init__({"POWERTOOLS_SERVICE_NAME": "recorded"})
        self.clear()

    def clear(self) -> None:
        """Forgets all lines and counts: a new logger takes long to create."""
        self.counts: Counter[tuple[str, str | None]] = Counter()
        """Counts by metric and channel."""
        self.lines: list[tuple[str, str]] = []
        """Each message with all named values of its line."""
        self.defects: list[str] = []

    @property
    def names(self) -> Counter[str]:
        """The counts by metric, over all channels."""
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


def parse_counts(printed: str) -> dict[tuple[str, str | None], int]:
    """Returns the counts in the lines of standard output, by metric and channel."""
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith('{"_aws"')]
    counts: Counter[tuple[str, str | None]] = Counter()
    for line in lines:
        for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
            counts[metric["Name"], line.get("channel")] += int(sum(line[metric["Name"]]))
    return dict(counts)


def batch(*records: dict[str, Any]) -> dict[str, Any]:
    """Returns an event of these records."""
    return {"Records": list(records)}


def failures(answer: dict[str, Any]) -> list[str]:
    """Returns the ids of the records that the function returns as failed."""
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def job_event(
    name: str = "train-vision",
    *,
    kind: JobKind = JobKind.TRAINING,
    source: str = "aws.sagemaker",
    envelope: Mapping[str, Any] | None = None,
    **detail: Any,
) -> str:
    """Returns EventBridge's event of a job's end, as JSON.

    A detail of None is left out.
    """
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.spec.arn_word}/{name}"
    prefix = kind.spec.prefix
    fields = {
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
        "detail": {key: value for key, value in fields.items() if value is not None},
    }
    return json.dumps({key: value for key, value in body.items() if value is not None})


def end_event(name: str, kind: JobKind = JobKind.TRAINING, **detail: Any) -> JobEndEvent:
    """Returns the same event, parsed as from the queue."""
    return parse_job_end_event(job_event(name, kind=kind, **detail), HOME_ONLY)


def sqs_record(
    body: str, *, message_id: str = "m1", received: int = 1, queue: str = QUEUE
) -> dict[str, Any]:
    """Returns an SQS record as Lambda gets it."""
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
    """Returns the stream record of an inserted audit."""
    text = document if isinstance(document, str) else to_stored_json(document, version)
    keys = {"pk": {"S": pk}, "sk": {"S": f"AUDIT#{version:05d}"}}
    image = {**keys, "version": {"N": str(version)}, "document": _packed(text)}
    return _insert(number, Keys=keys, NewImage=image)


def notice_record(pk: str, sk: str, channel: str, body: str, *, number: int = 1) -> dict[str, Any]:
    """Returns the stream record of an inserted notice."""
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
