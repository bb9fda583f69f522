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
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

from msgspec import Struct, field

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
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.ref import AccountRegion, JobEndEvent, parse_job_end_event
from sageaudit.domain.members import AuditScope, Denial, WaitingEvent, parse_heartbeat
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import SentEvent
from sageaudit.errors import AwsError, BadSettings, RejectedEvent, malformed_errors
from sageaudit.ports import History, MemberRegistry, Queue, SweepStore
from sageaudit.rules import catalogue
from sageaudit.rules.judge import RULE_FAILED
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
    """Processes one message of the queue of finished jobs.

    `seen_today` has the members whose event this process has recorded, with the day.
    """

    deps: AuditDependencies
    scope: AuditScope
    queue: Queue
    report: RecordReport
    sweep_store: SweepStore
    registry: MemberRegistry
    clock: Callable[[], datetime]
    seen_today: dict[AccountRegion, date] = field(default_factory=dict)

    def process(self, message: SqsMessage) -> None:
        """Audits the job of one event, sends the event again with a delay, or lets it wait.

        Raises RejectedEvent, AwsError or MalformedData.
        """
        now = self.clock()
        if (heartbeat := parse_heartbeat(message.body)) is not None:
            self.report.info("heartbeat", member=str(heartbeat.account_region))
            seen_at = min(heartbeat.sent_at, now)
            self.registry.record_seen(heartbeat.account_region, seen_at, heartbeat.template_version)
            return
        end_event = parse_job_end_event(message.body, self.scope)
        self.report.set_labels(job=end_event.ref.arn)
        self._record_member(end_event, now)
        wait_counts = {
            reason: message.attribute_number(f"{WAIT_COUNT_PREFIX}{reason}", 0)
            for reason in WaitReason
        }
        caller = AuditTrigger.REDELIVERY if message.receive_count > 1 else AuditTrigger.DELIVERY
        try:
            outcome = audit_finished_job(
                end_event, self.deps, now=now, caller=caller, wait_counts=wait_counts
            )
        except RejectedEvent:
            raise
        except Exception as error:  # after any error the message is redelivered
            if isinstance(error, AwsError) and self._can_wait_for_member(end_event, error):
                self._wait_for_member(message, end_event, error, now)
                return
            _record_event_arrival(end_event, self.sweep_store, now)
            raise
        if isinstance(outcome, AuditDeferred):
            _send_again(message, outcome, wait_counts, self.queue)
            _record_event_arrival(end_event, self.sweep_store, now)
        _report_outcome(outcome, message, caller, self.deps.history, self.report)

    def _record_member(self, end_event: JobEndEvent, now: datetime) -> None:
        """Records that an event of this account and region arrived from AWS, once a day.

        If it cannot be recorded, the next event is.
        """
        account_region = end_event.ref.account_region
        if (
            end_event.is_from_aws
            and account_region != self.scope.home
            and self.seen_today.get(account_region) != now.date()
        ):
            with suppress(AwsError):
                self.registry.record_seen(account_region, now, None)
                self.seen_today[account_region] = now.date()

    def _can_wait_for_member(self, end_event: JobEndEvent, error: AwsError) -> bool:
        is_denied = self.scope.is_denied_by_member(end_event.ref.account_region, error)
        return is_denied and end_event.created_at is not None

    def _wait_for_member(
        self, message: SqsMessage, end_event: JobEndEvent, error: AwsError, now: datetime
    ) -> None:
        # The denial is last: the sweep that it causes then finds the event. Its time is read after
        # the event is stored: a sweep that has not seen the event then does not clear the denial.
        ref = end_event.ref
        key = JobKey(ref.arn, end_event.created_at or now)
        event = WaitingEvent(ref.account_region, ref.kind, message.body, now)
        self.registry.add_waiting_event(key, event)
        last_record = self.sweep_store.event_record(key)
        self.sweep_store.record_event_sent(key, SentEvent(now, None, waited_for_member=True))
        # An event that waits again was just sent by a sweep, to which all actions seemed permitted.
        has_waited = last_record is not None and last_record.waited_for_member
        denial = Denial.from_error(error, self.clock(), is_confirmed=has_waited)
        self.registry.add_denial(ref.account_region, denial)
        self.report.count("EventsWaiting")
        self.report.warning("waits until its member can be read", reason=str(error))


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


def _record_event_arrival(end_event: JobEndEvent, sweep_store: SweepStore, now: datetime) -> None:
    """Records that the end event of a run without an audit arrived, so that the sweep does not send
    the event again.

    Events replayed by hand are not recorded, since their runs may not have ended.
    """
    if end_event.created_at is None or end_event.is_replayed:
        return
    with suppress(AwsError):
        sweep_store.record_event_arrival(JobKey(end_event.ref.arn, end_event.created_at), now)


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
    audit = AuditFunction(
        deps,
        AuditScope(settings.home, policy.members),
        queue,
        report,
        DynamoSweepStore(dynamodb, settings.table_name),
        DynamoMemberRegistry(dynamodb, settings.table_name),
        clock,
    )
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
