"""DynamoDB stream batch of the history -> notices on the queue.

Each record is one new version of one audit, as it was inserted:

    {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "100", "NewImage": {
        "pk": {"S": "JOB#<arn>#<created ms>"}, "sk": {"S": "AUDIT#00001"},
        "document": {"S": "{...}"}}}}

The first record that fails is named and Lambda comes back from there: what follows it waits, what
stands before it is done. A document that cannot be read is logged, counted and left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from aws_lambda_powertools import Logger

from sageaudit.adapters import policy_file, stream
from sageaudit.adapters.aws import client
from sageaudit.adapters.counts import Counts
from sageaudit.adapters.dynamo_history import DynamoHistory
from sageaudit.adapters.dynamo_ledger import DynamoLedger
from sageaudit.adapters.sqs import SqsQueue
from sageaudit.domain.policy import Policy
from sageaudit.errors import AwsError, Malformed
from sageaudit.settings import NotifySettings
from sageaudit.telling import Bureau, NewAudit, Queued, tell
from sageaudit.text import untrusted

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

_STOP_BEFORE_MS = 15_000
"""What is left of the function's time when no further record is begun."""
_POLICY = Path(__file__).parent.parent / "policy.toml"


class NotifyBatch:
    """One Lambda's wiring: decides for each record in the stream's order."""

    def __init__(
        self, bureau: Bureau, *, clock: Callable[[], datetime], logger: Logger, counts: Counts
    ) -> None:
        self._bureau = bureau
        self._clock = clock
        self._logger = logger
        self._counts = counts

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answers the first record that failed: Lambda delivers it and what follows again."""
        failed = next(
            (
                stream.sequence_number(record)
                for record in event["Records"]
                if _out_of_time(context) or not self._succeeds(record)
            ),
            None,
        )
        self._counts.flush()
        failures = [] if failed is None else [{"itemIdentifier": failed}]
        return {"batchItemFailures": failures}

    def _succeeds(self, record: dict[str, Any]) -> bool:
        if not stream.is_new_audit(record):
            return True
        try:
            self._one(record)
        except Malformed as error:
            self._counts.add("RejectedEvents")
            self._note("audit cannot be told", record, error)
        except AwsError as error:
            self._note("notify failed", record, error)
            return False
        return True

    def _one(self, record: dict[str, Any]) -> None:
        pk, key, version = stream.read_run(record)
        at = stream.written_at(record, self._clock)
        audit = NewAudit(pk, key, version, at, stream.read_document(record))
        outcome = tell(audit, self._bureau, now=self._clock())
        told = {"job": untrusted.log(key.arn), "version": version}
        if isinstance(outcome, Queued):
            for channel in outcome.channels:
                self._counts.add("NoticesQueued", channel=channel)
            self._logger.info("told", extra={**told, "channels": outcome.channels})
        else:
            self._logger.info("quiet", extra={**told, "reason": untrusted.log(outcome.reason)})

    def _note(self, message: str, record: dict[str, Any], error: Exception) -> None:
        self._logger.error(
            message,
            extra={
                "sequence_number": stream.sequence_number(record),
                "error": type(error).__name__,
                "reason": untrusted.log(str(error)),
            },
        )


def _out_of_time(context: Any) -> bool:
    return context is not None and context.get_remaining_time_in_millis() < _STOP_BEFORE_MS


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    policy: Policy | None = None,
) -> Handler:
    """Wires the Lambda. Raises BadSettings or BadPolicy when it cannot work."""
    settings = NotifySettings.from_env(environ)
    session = session or boto3.Session()
    dynamodb = client(session, "dynamodb")
    bureau = Bureau(
        history=DynamoHistory(dynamodb, settings.table_name),
        ledger=DynamoLedger(dynamodb, settings.table_name),
        queue=SqsQueue(client(session, "sqs"), settings.notices_queue_url),
        policy=policy or policy_file.load(_POLICY),
        channels=settings.channels,
    )
    logger = Logger(service=environ.get("POWERTOOLS_SERVICE_NAME", "notify"))
    return NotifyBatch(bureau, clock=clock, logger=logger, counts=Counts(environ))


@cache
def _built() -> Handler:
    return build(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda's entry point: wired once for each execution environment."""
    return _built()(event, context)
