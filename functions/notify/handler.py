"""DynamoDB stream batch of the history -> notices on the queues of the channels.

Each record of the stream is one new version of one audit, as it was inserted:

    {"eventName": "INSERT", "dynamodb": {"SequenceNumber": "100", "NewImage": {
        "pk": {"S": "JOB#<arn>#<created ms>"}, "sk": {"S": "AUDIT#00001"},
        "document": {"S": "{...}"}}}}

A record that fails does not hold its shard: its keys go to the queue of decisions, which this
function also reads. Each of its messages is one audit to decide about:

    {"pk": "JOB#<arn>#<created ms>", "sk": "AUDIT#00001", "written_at": 1779282000}

A document that cannot be read, and an audit that cannot be decided about for days, goes to the
queue of undecided audits with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import boto3

from sageaudit.adapters.aws.clients import QUICK, client
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG, SqsQueue
from sageaudit.adapters.aws.time_limit import RESERVE_S, TimeLimit
from sageaudit.adapters.channels.catalogue import writers
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.installation import DynamoInstallation
from sageaudit.adapters.history.dynamo.tell_ledger import DynamoTellLedger
from sageaudit.adapters.lambda_runtime.batch import Batch, ComesBack, Handler, entry_point
from sageaudit.adapters.lambda_runtime.decision import read_decision
from sageaudit.adapters.lambda_runtime.message import SqsMessage
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.adapters.lambda_runtime.retries import (
    QueueRetries,
    StreamRetries,
    longer_each_time_s,
)
from sageaudit.adapters.lambda_runtime.stream import Change
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import Malformed, RejectedEvent
from sageaudit.ports import Queue
from sageaudit.settings import NotifySettings
from sageaudit.workflows.notify.decide import (
    Later,
    NewAudit,
    NotifyDependencies,
    Queued,
    notify,
    stored_audit,
)

_STOP_BEFORE_MS = (RESERVE_S + 15) * 1000
"""Below this remaining time, no further record is started."""
_QUEUE = "aws:sqs"
"""The event source of the queue of decisions."""


def decide_change(
    change: Change, deps: NotifyDependencies, report: Report, *, now: datetime
) -> None:
    """Decides whether one new audit is notified; ignores every other change."""
    if not change.is_new_audit():
        return
    try:
        pk, key, version = change.run()
        audit = NewAudit(pk, key, version, change.written_at(now), change.document())
        decide(audit, deps, report, now=now)
    except Malformed as error:
        raise RejectedEvent("malformed_audit", str(error)) from error


def decide_message(
    message: SqsMessage, deps: NotifyDependencies, report: Report, *, now: datetime
) -> None:
    """Decides about an audit that could not be decided about when it was written."""
    try:
        asked = read_decision(message.body, sent_at=now)
        document = stored_audit(deps.history, asked.key, asked.version)
        if document is None:
            raise RejectedEvent("no_audit", "the table has no such audit")
        audit = NewAudit(asked.pk, asked.key, asked.version, asked.at, document)
        decide(audit, deps, report, now=now)
    except ComesBack as waits:
        # SQS gives a message up after 120 receives, whoever it waits for.
        raise ComesBack(str(waits), max(waits.wait_s, longer_each_time_s(message))) from None
    except Malformed as error:
        raise RejectedEvent("malformed_audit", str(error)) from error


def decide(audit: NewAudit, deps: NotifyDependencies, report: Report, *, now: datetime) -> None:
    """Decides whether one new audit is notified. Raises Malformed, AwsError or ComesBack."""
    named = {"job": audit.key.arn, "version": audit.version}
    report.about(**named)
    outcome = notify(audit, deps, now=now)
    if isinstance(outcome, Queued):
        for channel in outcome.channels:
            report.count("NoticesQueued", channel=channel)
        report.info("queued", **named, channels=outcome.channels)
    elif isinstance(outcome, Later):
        raise ComesBack(outcome.reason, outcome.wait_s)
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
    settings, limit = NotifySettings.from_env(environ), TimeLimit(session or boto3.Session(), clock)
    dynamodb = client(limit, "dynamodb", config=QUICK)
    sqs = client(limit, "sqs", config=QUEUE_CONFIG)
    deps = NotifyDependencies(
        history=DynamoHistory(dynamodb, settings.table_name),
        ledger=DynamoTellLedger(dynamodb, settings.table_name),
        queues={name: SqsQueue(sqs, url) for name, url in settings.notices_queue_urls.items()},
        policy=policy or stored_policy.load(),
        writers=writers(settings.notices_queue_urls),
        installed_at=DynamoInstallation(dynamodb, settings.table_name, clock=clock).installed_at,
    )
    return wired(
        deps,
        decisions=SqsQueue(sqs, settings.decisions_queue_url),
        undecided=SqsQueue(sqs, settings.undecided_queue_url),
        clock=clock,
        report=Report(environ),
        begin=limit.begin,
    )


def wired(
    deps: NotifyDependencies,
    *,
    decisions: SqsQueue,
    undecided: Queue,
    clock: Callable[[], datetime],
    report: Report,
    begin: Callable[[float | None], None] = lambda _: None,
) -> Handler:
    """The Lambda function with these dependencies; `begin` as in Batch."""
    changes = Batch(
        Change,
        lambda change: decide_change(change, deps, report, now=clock()),
        failed="NotDecided",
        stop_before_ms=_STOP_BEFORE_MS,
        retries=StreamRetries(decisions, undecided),
        report=report,
        begin=begin,
    )
    messages = Batch(
        SqsMessage,
        lambda message: decide_message(message, deps, report, now=clock()),
        failed="NotDecided",
        stop_before_ms=_STOP_BEFORE_MS,
        retries=QueueRetries([decisions], undecided, clock),
        report=report,
        begin=begin,
    )

    def of_its_source(event: dict[str, Any], context: Any) -> dict[str, Any]:
        from_queue = any(record.get("eventSource") == _QUEUE for record in event["Records"])
        return (messages if from_queue else changes)(event, context)

    return of_its_source


handler = entry_point(build)
