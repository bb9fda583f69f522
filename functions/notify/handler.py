"""DynamoDB stream batch of the history -> notices on the queue.

Each record is one new version of one audit, as it was inserted:

    {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "100", "NewImage": {
        "pk": {"S": "JOB#<arn>#<created ms>"}, "sk": {"S": "AUDIT#00001"},
        "document": {"S": "{...}"}}}}

The answer names the first record that failed, and Lambda starts again there: the records before it
are done, those after it wait. A record that fails until its retries end goes to the queue of
undecided audits. A document that cannot be read goes there at once, so that it does not block its
shard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import boto3

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.channels.catalogue import writers
from sageaudit.adapters.dynamo.history import DynamoHistory
from sageaudit.adapters.dynamo.ledger import DynamoLedger
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.lambda_runtime.batch import Batch, Handler, entry_point
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.adapters.lambda_runtime.stream import Change
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import Malformed, RejectedEvent
from sageaudit.notifying import NewAudit, NotifyDependencies, Queued, notify
from sageaudit.ports import Queue
from sageaudit.settings import NotifySettings

_STOP_BEFORE_MS = 15_000
"""Below this remaining time, no further record is started."""


def decide(change: Change, deps: NotifyDependencies, report: Report, *, now: datetime) -> None:
    """Decides whether one new audit is notified; ignores every other change."""
    if not change.is_new_audit():
        return
    try:
        pk, key, version = change.run()
        audit = NewAudit(pk, key, version, change.written_at(now), change.document())
        outcome = notify(audit, deps, now=now)
    except Malformed as error:
        raise RejectedEvent("malformed_audit", str(error)) from error
    named = {"job": key.arn, "version": version}
    if isinstance(outcome, Queued):
        for channel in outcome.channels:
            report.count("NoticesQueued", channel=channel)
        report.info("queued", **named, channels=outcome.channels)
    else:
        report.info("quiet", **named, reason=outcome.reason)


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    policy: Policy | None = None,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings or BadPolicy."""
    settings, session = NotifySettings.from_env(environ), session or boto3.Session()
    dynamodb, sqs = client(session, "dynamodb"), client(session, "sqs")
    deps = NotifyDependencies(
        history=DynamoHistory(dynamodb, settings.table_name),
        ledger=DynamoLedger(dynamodb, settings.table_name),
        queue=SqsQueue(sqs, settings.notices_queue_url),
        policy=policy or stored_policy.load(),
        writers=writers(settings.channels),
    )
    undecided = SqsQueue(sqs, settings.undecided_queue_url)
    return wired(deps, undecided=undecided, clock=clock, report=Report(environ))


def wired(
    deps: NotifyDependencies,
    *,
    undecided: Queue,
    clock: Callable[[], datetime],
    report: Report,
) -> Handler:
    """The Lambda function with these dependencies."""
    return Batch(
        Change,
        lambda change: decide(change, deps, report, now=clock()),
        failed="NotDecided",
        stop_before_ms=_STOP_BEFORE_MS,
        dead_letters=undecided,
        report=report,
    )


handler = entry_point(build)
