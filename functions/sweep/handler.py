"""A schedule -> due audits and lost jobs, as events in the queue of finished jobs; and messages
about running jobs that are idle, take too long or near their limit.

The schedule's event has no content. A lease in the table makes a second sweep at the same time do
nothing. An event of `sageaudit doctor --members` asks instead which permissions the members lack:
`{"members_after": ""}`, or the account after which to continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.accounts import AccountClients
from sageaudit.adapters.aws.clients import RESERVE_S, TimeLimit, client, new_session
from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.aws.probes import missing_permissions
from sageaudit.adapters.aws.sagemaker import PacedJobPages, SageMakerJobs
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG, SqsQueue
from sageaudit.adapters.channels.services import channel_writers
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.lambda_runtime.batch import DEFECTS, Handler, entry_point
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.adapters.lambda_runtime.settings import SweepSettings
from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.price_list import PriceCache, PriceList
from sageaudit.adapters.prices.sources import live_markets
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Metric
from sageaudit.errors import AwsError
from sageaudit.ports import SweepStore
from sageaudit.rules import catalogue
from sageaudit.workflows.sweep import run as sweeping
from sageaudit.workflows.sweep.run import DueAuditsSent, ListSweepResult, SweepDependencies
from sageaudit.workflows.sweep.watch import WatchDependencies, WatchResult

STOP_BEFORE_MS = RESERVE_S * 1000
"""Below this remaining time, no further page is read, since no request would start."""
_LIST_METRICS = ("JobsEnded", "JobsMissing", "ReconcilerFound")
LEASE_S = 660
"""Longer than a sweep may run, shorter than the time to the next one."""


MEMBER_CHECK_LIMIT = timedelta(seconds=40)
"""The limit for a question about members, since a person waits for the answer."""


class Sweeper(Struct, frozen=True):
    """The Lambda function: one sweep for each event. `deps` makes the dependencies of one sweep.

    `lacking` returns the actions that a member refuses; `members` are accounts and regions.
    """

    deps: Callable[[Callable[[], bool]], SweepDependencies]
    notes: SweepStore
    clock: Callable[[], datetime]
    report: RecordReport
    begin: Callable[[float], None] = lambda _: None
    members: Sequence[tuple[str, str]] = ()
    lacking: Callable[[str, str], dict[str, str]] = lambda *_: {}

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Returns how many parts of the sweep failed, or what members lack.

        Raises any error that is not an AwsError.
        """
        self.report.start_invocation(context)
        if (after := event.get("members_after")) is not None:
            self.begin(context.get_remaining_time_in_millis())
            return self._check_members(after)
        try:
            failed = self._run_sweep(context)
        except AwsError as error:
            failed = 1
            self._report_failure("sweep failed", error)
        except Exception as error:
            self.report.count("SweepFailed")
            self.report.count(DEFECTS)
            self.report.defect("sweep failed", error)
            raise
        finally:
            self.report.flush()
        return {"failed": failed}

    def _check_members(self, after: str) -> dict[str, Any]:
        """What each member lacks, until the time is up; `next` is where to continue, or null."""
        until, rows = self.clock() + MEMBER_CHECK_LIMIT, list[dict[str, Any]]()
        for account, region in self.members:
            place = f"{account} {region}"
            if place <= after:
                continue
            if rows and self.clock() >= until:
                return {"members": rows, "next": after}
            lacks = self.lacking(account, region)
            rows.append({"account": account, "region": region, "lacks": lacks})
            after = place
        return {"members": rows, "next": None}

    def _run_sweep(self, context: Any) -> int:
        self.begin(context.get_remaining_time_in_millis())
        owner = context.aws_request_id
        if not self.notes.acquire_lease(owner, self.clock(), LEASE_S):
            self.report.info("another sweep runs")
            return 0
        try:
            parts = sweeping.sweep(self.deps(partial(_is_out_of_time, context)))
            return sum(self._report_part(part) for part in parts)
        finally:
            self.notes.release_lease(owner)

    def _report_part(self, part: DueAuditsSent | ListSweepResult | WatchResult) -> bool:
        """Logs and counts one part immediately, so that a failure of a later one cannot lose it."""
        match part:
            case DueAuditsSent(sent, error):
                self.report.info("due audits sent", sent=sent)
                if error is not None:
                    self._report_failure("due audits not all sent", error)
            case ListSweepResult(error=error):
                self._report_list(part)
                if error is not None:
                    self._report_failure("list failed", error, **_list_labels(part))
            case WatchResult(error=error):
                self._report_watch(part)
                if error is not None:
                    self._report_failure(
                        "running jobs not all looked at", error, **_list_labels(part)
                    )
        for reason in part.unreadable:
            self.report.count("SweepFailed")
            self.report.error("cannot be read", reason=reason)
        self.report.flush()
        defects = isinstance(part, WatchResult) and bool(part.defects)
        return part.error is not None or bool(part.unreadable) or defects

    def _report_list(self, swept: ListSweepResult) -> None:
        """Counts only values that are not 0: a metric with values costs as much as three alarms."""
        counts = {"ended": swept.ended, "missing": swept.missing, "found": swept.lost_events}
        for metric, number in zip(_LIST_METRICS, counts.values(), strict=True):
            if number:
                self.report.count(metric, number=number)
        sent = {"sent_first": swept.sent_without_event, "looked_back": swept.sent_from_before}
        self.report.info(
            "list swept", **_list_labels(swept), **counts, **sent, whole=swept.is_complete
        )

    def _report_watch(self, watched: WatchResult) -> None:
        counts = {
            "running": watched.running,
            "looked": watched.checked,
            "left": watched.not_checked,
        }
        self.report.info("running jobs", **_list_labels(watched), **counts)
        for message in watched.messages:
            labels = {
                "kinds": message.kinds,
                "to": message.destination.channels,
                "routes": message.destination.route_numbers,
            }
            self.report.info("notified", running=message.job, **labels)
            if message.has_no_route:
                self.report.count("MessagesUnrouted")
        for arn, error in watched.defects:
            self.report.count("SweepFailed")
            self.report.count(DEFECTS)
            self.report.defect("running job failed", error, job=arn)

    def _report_failure(self, message: str, error: AwsError, **named: str) -> None:
        self.report.count("SweepFailed")
        self.report.error(message, **named, error=type(error).__name__, reason=str(error))


def _list_labels(swept: ListSweepResult | WatchResult) -> dict[str, str]:
    return {
        "account": swept.job_list.account,
        "region": swept.job_list.region,
        "kind": swept.job_list.kind.value,
    }


def _is_out_of_time(context: Any) -> bool:
    return bool(context.get_remaining_time_in_millis() < STOP_BEFORE_MS)


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    policy: Policy | None = None,
    seconds: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings or BadPolicy."""
    settings, session = SweepSettings.from_env(environ), session or new_session()
    report, limit = RecordReport(environ), TimeLimit(session, clock)
    policy = policy or stored_policy.load()
    members = policy.members
    accounts = AccountClients.for_members(limit, settings.account_id, policy.members, time.time)
    # The notes' client has no time limit: a sweep that runs out of time still stores its progress.
    notes = DynamoSweepStore(client(session, "dynamodb"), settings.table_name)
    lists = accounts.client_factory("sagemaker")
    lists(settings.account_id, settings.region)  # create clients during init, which has a full core
    pages = PacedJobPages(lists, seconds, sleep)
    history = DynamoHistory(client(limit, "dynamodb"), settings.table_name)
    queue = SqsQueue(client(session, "sqs", config=QUEUE_CONFIG), settings.finished_queue_url)

    watching = None
    if policy.watch is not None and policy.mode == "notify":
        watching = _watching(accounts, history, client(limit, "dynamodb"), settings, policy, clock)

    def deps(out_of_time: Callable[[], bool]) -> SweepDependencies:
        return SweepDependencies(
            job_pages=pages,
            history=history,
            sweep_store=notes,
            queue=queue,
            accounts=list(dict.fromkeys([settings.account_id, *members.role_by_account])),
            regions=list(dict.fromkeys([settings.region, *members.regions])),
            clock=clock,
            is_out_of_time=out_of_time,
            watch=watching,
        )

    return Sweeper(
        deps,
        notes,
        clock,
        report,
        limit.start,
        members=sorted(product(members.role_by_account, (settings.region, *members.regions))),
        lacking=partial(missing_permissions, accounts),
    )


def _watching(
    accounts: AccountClients,
    history: DynamoHistory,
    dynamodb: Any,
    settings: SweepSettings,
    policy: Policy,
    clock: Callable[[], datetime],
) -> WatchDependencies:
    """What the watch of running jobs needs: jobs and prices as in `audit`, two metrics."""
    price_list = PriceList(
        lambda endpoint: accounts.client_factory("pricing")(settings.account_id, endpoint)
    )
    return WatchDependencies(
        jobs=SageMakerJobs(accounts.client_factory("sagemaker")),
        metrics=CloudWatchMetrics(
            accounts.client_factory("cloudwatch"),
            packaged.instance_types(),
            metrics=(Metric.CPU, Metric.GPU),
        ),
        markets=live_markets(price_list, PriceCache(dynamodb, settings.table_name), clock),
        history=history,
        decisions=history,
        ledger=DynamoAlertLedger(dynamodb, settings.table_name),
        policy=policy,
        rules=[rule.info for rule in catalogue.ruleset().rules],
        writers=channel_writers(policy.channels),
    )


handler = entry_point(build)
