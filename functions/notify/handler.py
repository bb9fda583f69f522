"""DynamoDB stream batch of the history -> notices on the queue.

Each record is one new version of one audit, as it was inserted:

    {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "100", "NewImage": {
        "pk": {"S": "JOB#<arn>#<created ms>"}, "sk": {"S": "AUDIT#00001"},
        "document": {"S": "{...}"}}}}

The first record that fails is named and Lambda comes back from there: what follows it waits, what
stands before it is done. What fails until the retries end goes to the queue of undecided audits;
a document that cannot be read goes there at once, with its reason, so that its shard goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from aws_lambda_powertools import Logger

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.channels.catalogue import writers
from sageaudit.adapters.dynamo.history import DynamoHistory
from sageaudit.adapters.dynamo.ledger import DynamoLedger
from sageaudit.adapters.files import policy_file
from sageaudit.adapters.lambda_runtime import stream
from sageaudit.adapters.lambda_runtime.batch import STREAM, Batch, Handler, Record
from sageaudit.adapters.lambda_runtime.counts import Counts
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import Malformed
from sageaudit.notifying import NewAudit, NotifyDependencies, Queued, Quiet, notify
from sageaudit.ports import Queue
from sageaudit.settings import NotifySettings
from sageaudit.text import untrusted

_STOP_BEFORE_MS = 15_000
"""What is left of the function's time when no further record is begun."""
_POLICY = Path(__file__).parent.parent / "policy.toml"


class NotifyBatch:
    """One Lambda's wiring: decides for each record in the stream's order."""

    def __init__(
        self,
        deps: NotifyDependencies,
        *,
        undecided: Queue,
        clock: Callable[[], datetime],
        logger: Logger,
        counts: Counts,
    ) -> None:
        self._deps = deps
        self._undecided = undecided
        self._clock = clock
        self._logger = logger
        self._counts = counts
        self._batch = Batch(
            STREAM,
            task="notify",
            failed="NotDecided",
            stop_before_ms=_STOP_BEFORE_MS,
            logger=logger,
            counts=counts,
        )

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answers the first record that failed: Lambda delivers it and what follows again."""
        return self._batch.run(event, context, self._one)

    def _one(self, record: Record) -> bool:
        if not stream.is_new_audit(record):
            return True
        try:
            audit = self._read(record)
            outcome = notify(audit, self._deps, now=self._clock())
        except Malformed as error:
            return self._reject(record, error)
        self._say(audit, outcome)
        return True

    def _read(self, record: Record) -> NewAudit:
        pk, key, version = stream.read_run(record)
        at = stream.written_at(record, self._clock)
        return NewAudit(pk, key, version, at, stream.read_document(record))

    def _say(self, audit: NewAudit, outcome: Queued | Quiet) -> None:
        audited = {"job": untrusted.log(audit.key.arn), "version": audit.version}
        if isinstance(outcome, Queued):
            for channel in outcome.channels:
                self._counts.add("NoticesQueued", channel=channel)
            self._logger.info("queued", extra={**audited, "channels": outcome.channels})
        else:
            self._logger.info("quiet", extra={**audited, "reason": untrusted.log(outcome.reason)})

    def _reject(self, record: Record, error: Malformed) -> bool:
        """Straight to the undecided: a second try would find the same, and the shard waits."""
        self._undecided.send(
            json.dumps(stream.place(record)),
            attributes={"reason": "malformed_audit", "why": str(error)},
        )
        self._counts.add("RejectedEvents")
        self._batch.note("audit cannot be read", record, type(error).__name__, str(error))
        return True


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
    dynamodb, sqs = client(session, "dynamodb"), client(session, "sqs")
    deps = NotifyDependencies(
        history=DynamoHistory(dynamodb, settings.table_name),
        ledger=DynamoLedger(dynamodb, settings.table_name),
        queue=SqsQueue(sqs, settings.notices_queue_url),
        policy=policy or policy_file.load(_POLICY),
        writers=writers(settings.channels),
    )
    logger = Logger(service=environ.get("POWERTOOLS_SERVICE_NAME", "notify"))
    return NotifyBatch(
        deps,
        undecided=SqsQueue(sqs, settings.undecided_queue_url),
        clock=clock,
        logger=logger,
        counts=Counts(environ),
    )


@cache
def _built() -> Handler:
    return build(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda's entry point: wired once for each execution environment."""
    return _built()(event, context)
