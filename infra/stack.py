"""The stack: composes the constructs and grants each function its permissions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.alarm_list import AlarmSpec, alarm_specs
from infra.alarms import Alarms
from infra.channels import channel_address, channel_permissions, secret_arn
from infra.dashboard import Dashboard
from infra.functions import HandlerFunction
from infra.history import HistoryTable
from infra.members import assumable_roles, check_members
from infra.names import AUDIT_TIMEOUT_S, FINGERPRINT_KEY, MEMBER_REGIONS, SEND_MESSAGES
from infra.notices import Notices
from infra.options import apply_settings
from infra.schedule import SWEEP_SCHEDULE, Schedule, digest_schedule, watch_schedule
from infra.settings import Settings
from infra.sources import feed_from_queue, feed_from_stream
from infra.trigger import Trigger
from sageaudit.adapters.aws import accounts, cloudwatch, report_store, sagemaker, secrets, sqs
from sageaudit.adapters.aws.stack_outputs import (
    AUDITS_AT_ONCE,
    CHANNEL,
    QUEUE_URL_PREFIX,
    pascal_case,
)
from sageaudit.adapters.channels.services import ChannelChoices
from sageaudit.adapters.history.dynamo import (
    alert_ledger,
    budget_ledger,
    member_registry,
    send_ledger,
    sweep_notes,
)
from sageaudit.adapters.history.dynamo import history as dynamo_history
from sageaudit.adapters.history.dynamo.keys import (
    CHANNEL_PREFIX,
    DELIVERY_PREFIX,
    MEMBERS_PK,
    RECOMMENDATIONS_PK,
    SUMS_PREFIX,
    SWEEP_PK,
)
from sageaudit.adapters.history.dynamo.table_writes import (
    TableWrites,
    partition_key_condition,
    write_grants,
)
from sageaudit.adapters.lambda_runtime.settings import notices_queue_variable
from sageaudit.adapters.prices import price_list
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.routes import OWN_TOPIC
from sageaudit.domain.policy.scope import DigestSchedule, MemberAccounts

AUDIT_TIMEOUT = cdk.Duration.seconds(AUDIT_TIMEOUT_S)
NOTIFY_TIMEOUT = cdk.Duration.minutes(3)
DELIVER_TIMEOUT = cdk.Duration.minutes(2)
SWEEP_TIMEOUT = cdk.Duration.minutes(10)
DIGEST_TIMEOUT = cdk.Duration.minutes(15)


class SageAuditStack(cdk.Stack):
    """The stack: from the event of a finished job to an audit in the table and notices on the
    channels.

    `members`, `channels`: as in the policy. `digest`: when the digest is sent; None means never.
    `is_watch_on`: whether running jobs are checked. `has_budgets`: whether budgets are.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        code: lambda_.Code,
        settings: Settings,
        members: MemberAccounts,
        channels: ChannelChoices,
        digest: DigestSchedule | None,
        is_watch_on: bool,
        has_budgets: bool,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Audits what finished SageMaker jobs cost",
            analytics_reporting=False,
        )
        self._code = code
        self._settings = settings
        self._members = check_members(members)
        self._channels = channels
        self._is_watch_on = is_watch_on
        self._has_budgets = has_budgets
        self.history = HistoryTable(self, "History", existing_table=settings.table)
        self.trigger = Trigger(
            self,
            "Trigger",
            delay=self._audit_delay(),
            consumer_timeout=AUDIT_TIMEOUT,
            members=members,
        )
        self.notices = Notices(
            self,
            "Notices",
            channels=list(channels),
            notify_timeout=NOTIFY_TIMEOUT,
            deliver_timeout=DELIVER_TIMEOUT,
            own_key=channels[OWN_TOPIC].key_arn or settings.kms_key_arn,
        )
        workers = {
            "audit": self._create_audit_function(),
            "sweep": self._create_sweep_function(),
            "watch": self._create_watch_function(),
            "notify": self._create_notify_function(),
            "deliver": self._create_deliver_function(),
            "digest": self._create_digest_function(digest),
        }
        self.schedules = {}
        group = scheduler.CfnScheduleGroup(self, "Schedules", name=cdk.Aws.STACK_NAME)
        specs = {
            "sweep": SWEEP_SCHEDULE,
            "watch": watch_schedule(is_enabled=is_watch_on or has_budgets),
            "digest": digest_schedule(digest),
        }
        for name, spec in specs.items():
            function, schedule_id = workers[name].function, f"{name.capitalize()}Schedule"
            self.schedules[name] = Schedule(
                self, schedule_id, function=function, group=group, spec=spec
            )
            # Lambda sends failed asynchronous invocations there with the function's role.
            workers[name].allow(SEND_MESSAGES, self.schedules[name].dead_letters.queue_arn)
        alarm_list = list(self._alarm_specs(workers))
        self.alarms = Alarms(self, "Alarms", specs=alarm_list)
        Dashboard(
            self,
            "Dashboard",
            specs=alarm_list,
            alarms=self.alarms.all,
            log_groups={name: worker.log_group for name, worker in workers.items()},
            is_shown=settings.dashboard,
        )
        for name, value in {
            "TableName": self.history.table.table_name,
            "NoticesTopicArn": self.notices.topic.topic_arn,
            "AlarmsTopicArn": self.alarms.topic.topic_arn,
            "FinishedJobsQueueUrl": self.trigger.queue.queue_url,
            "FinishedJobsDeadLettersUrl": self.trigger.dead_letters.queue_url,
            "DecisionsQueueUrl": self.notices.decisions.queue_url,
            "UndecidedAuditsUrl": self.notices.undecided.queue_url,
            "NoticesDeadLettersUrl": self.notices.dead_letters.queue_url,
            "SweepDeadLettersUrl": self.schedules["sweep"].dead_letters.queue_url,
            "WatchDeadLettersUrl": self.schedules["watch"].dead_letters.queue_url,
            "DigestDeadLettersUrl": self.schedules["digest"].dead_letters.queue_url,
            MEMBER_REGIONS: ",".join(members.regions) or "none",
            AUDITS_AT_ONCE: str(self._settings.audits_at_once),
            "SweepFunctionName": workers["sweep"].function.function_name,
            **{
                f"{QUEUE_URL_PREFIX}{pascal_case(name)}": queue.queue_url
                for name, queue in self.notices.queues.items()
            },
            **{
                f"{CHANNEL}{pascal_case(name)}": (
                    f"{channel.service} {channel_address(channel, self.notices.topic.topic_arn)}"
                )
                for name, channel in channels.items()
            },
        }.items():
            cdk.CfnOutput(self, name, value=value)
        apply_settings(self, settings)

    def _worker(self, construct_id: str, **options: Any) -> HandlerFunction:
        return HandlerFunction(
            self, construct_id, code=self._code, settings=self._settings, **options
        )

    def _trusted_role_name(self, function: str) -> str:
        """Returns the name of a role that members trust, unique for stack and region."""
        return f"{cdk.Aws.STACK_NAME}-{cdk.Aws.REGION}-{function}"

    def _alarm_specs(self, workers: Mapping[str, HandlerFunction]) -> Iterator[AlarmSpec]:
        return alarm_specs(
            functions={name: worker.function.function_name for name, worker in workers.items()},
            work_queues={
                "FinishedJobs": self.trigger.queue.queue_name,
                "Decisions": self.notices.decisions.queue_name,
            },
            notices_queues={name: queue.queue_name for name, queue in self.notices.queues.items()},
            dead_letters={
                "FinishedJobsDeadLetters": self.trigger.dead_letters.queue_name,
                "UndecidedAudits": self.notices.undecided.queue_name,
                "NoticesDeadLetters": self.notices.dead_letters.queue_name,
                "SweepDeadLetters": self.schedules["sweep"].dead_letters.queue_name,
                "WatchDeadLetters": self.schedules["watch"].dead_letters.queue_name,
                "DigestDeadLetters": self.schedules["digest"].dead_letters.queue_name,
            },
            is_watch_on=self._is_watch_on,
            has_budgets=self._has_budgets,
        )

    def _audit_delay(self) -> cdk.Duration:
        seconds = cdk.CfnParameter(
            self,
            "AuditDelaySeconds",
            type="Number",
            default=300,
            min_value=0,
            max_value=900,
            description="Seconds that a finished job waits for its last metrics before its audit",
        )
        return cdk.Duration.seconds(seconds.value_as_number)

    def _create_audit_function(self) -> HandlerFunction:
        queue, dead_letters = self.trigger.queue, self.trigger.dead_letters
        table = self.history.table.table_arn
        audit = self._worker(
            "Audit",
            name="audit",
            timeout=AUDIT_TIMEOUT,
            memory_mib=1024,
            role_name=self._trusted_role_name("audit"),
            environment={
                "TABLE_NAME": self.history.table.table_name,
                "FINISHED_QUEUE_URL": queue.queue_url,
                "FINISHED_DLQ_URL": dead_letters.queue_url,
                "ACCOUNT_ID": self.account,
                "FINGERPRINT_SECRET_ID": FINGERPRINT_KEY,
            },
        )
        audit.allow(sagemaker.JOB_PERMISSIONS, *self._job_arns())
        audit.allow(sagemaker.COUNT_PERMISSIONS, "*")
        audit.allow(cloudwatch.PERMISSIONS, "*")
        audit.allow(price_list.PERMISSIONS, "*")
        audit.allow(price_list.CACHE_READ_PERMISSIONS, table)
        audit.allow(dynamo_history.READ_PERMISSIONS, table)
        # The sweep's items include the events that arrived.
        _allow_writes(
            audit,
            table,
            dynamo_history.RECORD_WRITES,
            price_list.CACHE_WRITES,
            sweep_notes.WRITES,
            member_registry.MEMBER_WRITES,
            member_registry.ADD_EVENT_WRITES,
        )
        audit.allow(dynamo_history.INDEX_PERMISSIONS, f"{table}/index/by-family")
        audit.allow(sqs.SEND_PERMISSIONS, queue.queue_arn, dead_letters.queue_arn)
        audit.allow(sqs.WAIT_PERMISSIONS, queue.queue_arn)
        audit.allow(secrets.PERMISSIONS, secret_arn(self, FINGERPRINT_KEY))
        self._allow_members(audit)
        feed_from_queue(audit, queue, max_concurrency=self._settings.audits_at_once)
        return audit

    def _sweep_memory_mib(self) -> int:
        # Lambda gives CPU by memory. Other accounts need a client each, so that listing a thousand
        # of them takes minutes of CPU; one account takes well below a second.
        return 1024 if self._members.has_other_accounts else 512

    def _create_sweep_function(self) -> HandlerFunction:
        queue, table = self.trigger.queue, self.history.table.table_arn
        sweep = self._worker(
            "Sweep",
            name="sweep",
            timeout=SWEEP_TIMEOUT,
            memory_mib=self._sweep_memory_mib(),
            role_name=self._trusted_role_name("sweep"),
            environment={
                "TABLE_NAME": self.history.table.table_name,
                "FINISHED_QUEUE_URL": queue.queue_url,
                "ACCOUNT_ID": self.account,
            },
        )
        sweep.allow(sagemaker.LIST_PERMISSIONS, "*")
        sweep.allow(sweep_notes.READ_PERMISSIONS, table)
        sweep.allow(
            sweep_notes.LIST_PERMISSIONS,
            table,
            conditions=partition_key_condition([SWEEP_PK, *member_registry.READ_KEYS]),
        )
        sweep.allow(dynamo_history.INDEX_PERMISSIONS, f"{table}/index/due")
        sweep.allow(sqs.SEND_PERMISSIONS, queue.queue_arn)
        _allow_writes(
            sweep,
            table,
            sweep_notes.WRITES,
            member_registry.MEMBER_WRITES,
            member_registry.REMOVE_EVENT_WRITES,
        )
        self._allow_members(sweep)
        return sweep

    def _create_watch_function(self) -> HandlerFunction:
        """Creates the watch function. It reads of running jobs what `audit` reads of ended ones."""
        table = self.history.table.table_arn
        watch = self._worker(
            "Watch",
            name="watch",
            timeout=SWEEP_TIMEOUT,
            memory_mib=self._sweep_memory_mib(),
            role_name=self._trusted_role_name("watch"),
            environment={"TABLE_NAME": self.history.table.table_name, "ACCOUNT_ID": self.account},
        )
        watch.allow(sagemaker.JOB_PERMISSIONS, *self._job_arns())
        watch.allow(cloudwatch.PERMISSIONS, "*")
        watch.allow(price_list.PERMISSIONS, "*")
        watch.allow(price_list.CACHE_READ_PERMISSIONS, table)
        watch.allow(dynamo_history.INDEX_PERMISSIONS, f"{table}/index/by-family")
        watch.allow(
            dynamo_history.READ_DECISIONS_PERMISSIONS,
            table,
            conditions=partition_key_condition(
                [RECOMMENDATIONS_PK, SWEEP_PK, MEMBERS_PK, SUMS_PREFIX]
            ),
        )
        _allow_writes(
            watch,
            table,
            price_list.CACHE_WRITES,
            alert_ledger.WATCH_WRITES,
            budget_ledger.WRITES,
            member_registry.MEMBER_WRITES,
        )
        self._allow_members(watch)
        return watch

    def _allow_members(self, function: HandlerFunction) -> None:
        for role_arns, condition in assumable_roles(self._members):
            function.allow(accounts.PERMISSIONS, *role_arns, conditions=condition)

    def _create_digest_function(self, schedule: DigestSchedule | None) -> HandlerFunction:
        """Creates the digest function. Its report needs the memory: up to 20,000 jobs have rows."""
        table = self.history.table.table_arn
        report_key = self._settings.kms_key_arn if schedule and schedule.report_bucket else None
        digest = self._worker(
            "Digest",
            name="digest",
            timeout=DIGEST_TIMEOUT,
            memory_mib=1024,
            environment={
                "TABLE_NAME": self.history.table.table_name,
                "ACCOUNT_ID": self.account,
                **({"REPORT_KEY_ARN": report_key} if report_key else {}),
            },
        )
        digest.allow(dynamo_history.SUMS_PERMISSIONS, table)
        digest.allow(dynamo_history.READ_DECISIONS_PERMISSIONS, table)
        _allow_writes(digest, table, alert_ledger.DIGEST_WRITES)
        indexes = ("by-account", "by-day", "by-family", "by-owner")
        digest.allow(
            dynamo_history.INDEX_PERMISSIONS, *(f"{table}/index/{name}" for name in indexes)
        )
        if schedule and schedule.report_bucket:
            reports_arn = (
                f"arn:{self.partition}:s3:::{schedule.report_bucket}/{report_store.PREFIX}*"
            )
            digest.allow(report_store.PERMISSIONS, reports_arn)
        return digest

    def _create_notify_function(self) -> HandlerFunction:
        table, notices = self.history.table.table_arn, self.notices
        notify = self._worker(
            "Notify",
            name="notify",
            timeout=NOTIFY_TIMEOUT,
            memory_mib=512,
            environment={
                "TABLE_NAME": self.history.table.table_name,
                "DECISIONS_QUEUE_URL": notices.decisions.queue_url,
                "UNDECIDED_QUEUE_URL": notices.undecided.queue_url,
                **self._notices_queues(),
            },
        )
        notify.allow(dynamo_history.SUMS_PERMISSIONS, table)
        notify.allow(dynamo_history.INDEX_PERMISSIONS, f"{table}/index/by-family")
        notify.allow(alert_ledger.READ_PERMISSIONS, table)
        _allow_writes(notify, table, alert_ledger.ALERT_WRITES)
        notify.allow(dynamo_history.READ_DECISIONS_PERMISSIONS, table)
        notify.allow(sweep_notes.INSTALLATION_PERMISSIONS, table)
        notify.allow(
            sqs.SEND_PERMISSIONS,
            *(queue.queue_arn for queue in notices.queues.values()),
            notices.decisions.queue_arn,
            notices.undecided.queue_arn,
        )
        notify.allow(sqs.WAIT_PERMISSIONS, notices.decisions.queue_arn)
        feed_from_stream(notify, self.history.stream_arn, failure_queue=notices.undecided)
        feed_from_queue(notify, notices.decisions, max_concurrency=2, construct_id="Decisions")
        return notify

    def _notices_queues(self) -> dict[str, str]:
        """Returns the environment variables that name the channels and their queues."""
        queues = self.notices.queues
        urls = {notices_queue_variable(name): queue.queue_url for name, queue in queues.items()}
        return {"CHANNELS": ",".join(queues), **urls}

    def _create_deliver_function(self) -> HandlerFunction:
        dead_letters = self.notices.dead_letters
        deliver = self._worker(
            "Deliver",
            name="deliver",
            timeout=DELIVER_TIMEOUT,
            memory_mib=256,
            environment={
                "TABLE_NAME": self.history.table.table_name,
                "NOTICES_DLQ_URL": dead_letters.queue_url,
                "TOPIC_ARN": self.notices.topic.topic_arn,
                **self._notices_queues(),
            },
        )
        table = self.history.table.table_arn
        own_items = partition_key_condition([CHANNEL_PREFIX, DELIVERY_PREFIX])
        deliver.allow(send_ledger.READ_PERMISSIONS, table, conditions=own_items)
        _allow_writes(deliver, table, send_ledger.WRITES)
        deliver.allow(sqs.SEND_PERMISSIONS, dead_letters.queue_arn)
        own_topic_arn = self.notices.topic.topic_arn
        for permissions, resources in channel_permissions(self, self._channels, own_topic_arn):
            deliver.allow(permissions, *resources)
        for name, queue in self.notices.queues.items():
            deliver.allow(sqs.WAIT_PERMISSIONS, queue.queue_arn)
            # Slack accepts one message per second and channel, so more concurrency would be
            # refused.
            feed_from_queue(
                deliver, queue, max_concurrency=2, construct_id=f"Source{pascal_case(name)}"
            )
        return deliver

    def _job_arns(self) -> Iterator[str]:
        """Yields the ARN patterns of all jobs, in this region or in every region.

        The audit function checks the account and region of each job.
        """
        region = "*" if self._members.all_regions else self.region
        for kind in JobKind:
            arn_word = kind.spec.arn_word
            yield self.format_arn(
                service="sagemaker", region=region, resource=arn_word, resource_name="*"
            )


def _allow_writes(function: HandlerFunction, table_arn: str, *writes: TableWrites) -> None:
    """Allows a function these writes to the table, each only for its own partition keys."""
    for actions, condition in write_grants(writes):
        function.allow(actions, table_arn, conditions=condition)
