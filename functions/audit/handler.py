"""SQS batch of ended jobs -> audits in the history.

Each message is one EventBridge event:

    {"source": "aws.sagemaker", "detail-type": "SageMaker Training Job State Change",
     "detail": {"TrainingJobName": "...", "TrainingJobArn": "...",
                "TrainingJobStatus": "Completed"}}

A message that is not about a finished job of an audited account goes to the dead-letter queue with
its reason. A message that arrives too early is sent again with a delay. A message that fails is
redelivered. If another account or region denies access to the job, the event waits in the table,
and a sweep sends it when the member can be read again. Heartbeats of members are only recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.accounts import AccountClients
from sageaudit.adapters.aws.clients import RESERVE_S, TimeLimitedClients, client, new_session
from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.aws.sagemaker import SageMakerJobs
from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG, SqsQueue
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.lambda_runtime.batch import Batch, Handler, QueueRetries, entry_point
from sageaudit.adapters.lambda_runtime.records import FIRST_SENT_ATTRIBUTE, SqsMessage
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.adapters.lambda_runtime.settings import AuditSettings
from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.price_list import PriceCache, PriceList
from sageaudit.adapters.prices.sources import live_markets
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import RecordOutcome, RecordResult
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.ref import parse_job_end_event
from sageaudit.domain.members import AuditScope, parse_heartbeat
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError, BadSettings, RejectedEvent, malformed_errors
from sageaudit.ports import History, Queue
from sageaudit.rules import catalogue
from sageaudit.rules.judge import RULE_FAILED
from sageaudit.workflows.audit.arrivals import EventArrivals
from sageaudit.workflows.audit.attempt import (
    AlreadyAudited,
    AuditDeferred,
    AuditDependencies,
    AuditOutcome,
    AuditRecorded,
    AuditTrigger,
    EventDropped,
    WaitReason,
)
from sageaudit.workflows.audit.run import audit_finished_job

WAIT_COUNT_PREFIX = "waited-"
"""The prefix of the message attributes that count waits, one for each reason."""
_STOP_BEFORE_MS = (RESERVE_S + 20) * 1000
"""If less time is left, no further record is started."""
_MESSAGE_BY_METRIC = {
    "JobsAudited": "audited",
    "DueAudited": "audited again",
    "DuplicateEvents": "already audited",
}
"""The log text for each metric that counts an audit."""


class AuditFunction(Struct, frozen=True):
    """Processes one message of the queue of finished jobs."""

    deps: AuditDependencies
    arrivals: EventArrivals
    queue: Queue
    report: RecordReport

    def process(self, message: SqsMessage) -> None:
        """Audits the job of one event, sends the event again with a delay, or lets it wait.

        Raises RejectedEvent, AwsError or MalformedData.
        """
        if (heartbeat := parse_heartbeat(message.body)) is not None:
            self.report.info("heartbeat", member=str(heartbeat.account_region))
            self.arrivals.record_heartbeat(heartbeat)
            return
        end_event = parse_job_end_event(message.body, self.arrivals.scope)
        self.report.set_labels(job=end_event.ref.arn)
        self.arrivals.record_member(end_event)
        wait_counts = {
            reason: message.attribute_number(f"{WAIT_COUNT_PREFIX}{reason}", 0)
            for reason in WaitReason
        }
        caller = AuditTrigger.REDELIVERY if message.receive_count > 1 else AuditTrigger.DELIVERY
        now = self.arrivals.clock()
        try:
            outcome = audit_finished_job(
                end_event, self.deps, now=now, caller=caller, wait_counts=wait_counts
            )
        except RejectedEvent:
            raise
        except Exception as error:  # after any error the message is redelivered
            if self.arrivals.wait_for_member(message.body, end_event, error):
                self.report.count("EventsWaiting")
                self.report.warning("waits until its member can be read", reason=str(error))
                return
            self.arrivals.record_unaudited(end_event)
            raise
        if isinstance(outcome, AuditDeferred):
            _send_again(message, outcome, wait_counts, self.queue)
            self.arrivals.record_unaudited(end_event)
        _report_outcome(outcome, message, caller, self.deps.history, self.report)


def _report_outcome(
    outcome: AuditOutcome,
    message: SqsMessage,
    caller: AuditTrigger,
    history: History,
    report: RecordReport,
) -> None:
    match outcome:
        case AuditDeferred():
            report.count("EventsWaiting")
            report.info("later", wait=outcome.wait_reason, reason=outcome.explanation)
        case EventDropped(reason):
            report.count("UnknownJobs")
            report.warning("nothing to audit", reason=reason)
        case AlreadyAudited(summary):
            _report_repeat(summary, message, history, report)
        case AuditRecorded(result, _, document):
            is_repeated = (
                result.outcome is not RecordOutcome.RECORDED and caller is AuditTrigger.DELIVERY
            )
            metric = "DuplicateEvents" if is_repeated else "JobsAudited"
            _report_audit(result, document, report, "DueAudited" if outcome.is_reaudit else metric)


def _send_again(
    message: SqsMessage,
    deferred: AuditDeferred,
    wait_counts: Mapping[WaitReason, int],
    queue: Queue,
) -> None:
    """Sends the event as a new message, with its wait counts and its first send time."""
    counts = {**wait_counts, deferred.wait_reason: wait_counts[deferred.wait_reason] + 1}
    attributes = {
        f"{WAIT_COUNT_PREFIX}{reason}": str(count) for reason, count in counts.items() if count
    }
    if message.first_sent_ms:
        attributes[FIRST_SENT_ATTRIBUTE] = str(message.first_sent_ms)
    queue.send(message.body, delay_s=deferred.delay_s, attributes=attributes)


def _report_repeat(
    summary: AuditSummary, message: SqsMessage, history: History, report: RecordReport
) -> None:
    """Reports an event whose run is already audited.

    For a redelivered message, counts the stored audit, since an earlier delivery may have been
    killed before it counted. So each audit is counted at least once.
    """
    document = history.audit(summary.key, summary.version) if message.receive_count > 1 else None
    if document is None:
        report.count("DuplicateEvents")
        report.info("already audited", version=summary.version)
        return
    earlier_result = RecordResult(RecordOutcome.DUPLICATE, summary.version)
    with malformed_errors("document"):
        _report_audit(
            earlier_result,
            document,
            report,
            "JobsAudited" if summary.version == 1 else "DueAudited",
        )


def _report_audit(
    result: RecordResult, document: AuditDocument, report: RecordReport, metric: str
) -> None:
    report.count(metric)
    for unknown_outcome in document["unknown"]:
        if unknown_outcome["code"] == RULE_FAILED:
            report.count("RuleFailed")
            report.error(
                "rule failed", rule=unknown_outcome["rule"], reason=unknown_outcome["reason"]
            )
    if document["unauditable"] is not None:
        report.count("JobsUnauditable")
        report.error("unauditable", reason=document["unauditable"])
    report.info(
        _MESSAGE_BY_METRIC[metric],
        verdict=result.outcome.value,
        version=result.version,
        total_usd=document["bill"]["total_usd"],
        estimated=bool(document["bill"]["estimated"]),
        judged=document["judged"],
        avoidable_usd=document["avoidable_usd"],
        lost_usd=document["lost_usd"],
        rules=[finding["rule"] for finding in document["findings"]],
        unauditable=document["unauditable"],
    )


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    policy: Policy | None = None,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings or BadPolicy."""
    settings, time_limit = (
        AuditSettings.from_env(environ),
        TimeLimitedClients(session or new_session(), clock),
    )
    report, policy = RecordReport(environ), policy or stored_policy.load()
    sqs, dynamodb = client(time_limit, "sqs", config=QUEUE_CONFIG), client(time_limit, "dynamodb")
    accounts = AccountClients.for_members(
        time_limit, settings.account_id, policy.members, time.time
    )
    jobs, metrics = accounts.client_factory("sagemaker"), accounts.client_factory("cloudwatch")
    for client_for in (jobs, metrics):  # create clients during init, which has a full core
        client_for(settings.account_id, settings.region)
    deps = AuditDependencies(
        jobs=SageMakerJobs(jobs),
        metrics=CloudWatchMetrics(metrics, packaged.instance_types()),
        history=DynamoHistory(dynamodb, settings.table_name),
        markets=live_markets(
            PriceList(
                lambda endpoint: accounts.client_factory("pricing")(settings.account_id, endpoint)
            ),
            PriceCache(dynamodb, settings.table_name),
            clock,
        ),
        policy=policy,
        ruleset=catalogue.ruleset(),
        fingerprint_key=_fingerprint_key(settings, time_limit, report),
    )
    queue = SqsQueue(sqs, settings.finished_queue_url)
    arrivals = EventArrivals(
        AuditScope(settings.home, policy.members),
        DynamoMemberRegistry(dynamodb, settings.table_name),
        DynamoSweepStore(dynamodb, settings.table_name),
        clock,
    )
    audit = AuditFunction(deps, arrivals, queue, report)
    return Batch(
        SqsMessage,
        audit.process,
        failure_metric="AuditFailed",
        stop_before_ms=_STOP_BEFORE_MS,
        retries=QueueRetries([queue], SqsQueue(sqs, settings.finished_dlq_url), clock),
        report=report,
        begin=time_limit.start,
        take_unreadable=deps.history.take_unreadable,
    )


def _fingerprint_key(
    settings: AuditSettings, session: TimeLimitedClients, report: RecordReport
) -> Callable[[], bytes | None]:
    """Returns a function that reads the fingerprint key.

    That function returns None if there is no key or if the key cannot be read. Without a key, jobs
    are audited without a fingerprint.
    """
    if settings.fingerprint_secret_id is None:
        return lambda: None
    store = client(session, "secretsmanager")
    secret = SecretReader(store, settings.fingerprint_secret_id, time.monotonic)

    def key() -> bytes | None:
        try:
            return secret.value().encode()
        except (AwsError, BadSettings) as error:
            report.warning("no fingerprint", reason=str(error))
            return None

    return key


handler = entry_point(build)
