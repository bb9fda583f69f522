"""A schedule -> events of due audits and lost jobs in the queue of finished jobs; messages about
running jobs.

The schedule's event has no content. A lease in the table prevents two sweeps at the same time.
`sageaudit doctor --members` sends another event, which asks for the members' missing permissions
and starts no sweep: `{"continue_after": ""}`, or the account and region after which to continue.
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
from sageaudit.adapters.aws.clients import RESERVE_S, TimeLimitedClients, client, new_session
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
"""If less time is left, no further page is read."""
_LIST_METRICS = ("JobsEnded", "JobsMissing", "LostEventsFound")
LEASE_S = 660
"""The seconds of a sweep's lease: longer than a sweep may run, shorter than the time between two
sweeps."""


MEMBER_CHECK_LIMIT = timedelta(seconds=40)
"""The longest time for which one invocation checks members, since a person waits for the answer."""


class Sweeper(Struct, frozen=True):
    """The sweep function: runs one sweep for each event.

    `make_deps` makes the dependencies of one sweep, from a function that says whether to stop.
    `members`: the accounts and regions of members. `missing_permissions` returns the actions that a
    member refuses, with the reasons.
    """

    make_deps: Callable[[Callable[[], bool]], SweepDependencies]
    sweep_store: SweepStore
    clock: Callable[[], datetime]
    report: RecordReport
    begin: Callable[[float], None] = lambda _: None
    members: Sequence[tuple[str, str]] = ()
    missing_permissions: Callable[[str, str], dict[str, str]] = lambda *_: {}

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Returns how many parts of the sweep failed, or the missing permissions of members.

        Raises any error that is not an AwsError.
        """
        self.report.start_invocation(context)
        if (last_place := event.get("continue_after")) is not None:
            self.begin(context.get_remaining_time_in_millis())
            return self._check_members(last_place)
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

    def _check_members(self, last_place: str) -> dict[str, Any]:
        """Returns the missing permissions of members, until the time is up. `next`: where to
        continue.
        """
        until, rows = self.clock() + MEMBER_CHECK_LIMIT, list[dict[str, Any]]()
        for account, region in self.members:
            place = f"{account} {region}"
            if place <= last_place:
                continue
            if rows and self.clock() >= until:
                return {"members": rows, "next": last_place}
            missing = self.missing_permissions(account, region)
            rows.append({"account": account, "region": region, "missing_permissions": missing})
            last_place = place
        return {"members": rows, "next": None}

    def _run_sweep(self, context: Any) -> int:
        self.begin(context.get_remaining_time_in_millis())
        owner = context.aws_request_id
        if not self.sweep_store.acquire_lease(owner, self.clock(), LEASE_S):
            self.report.info("another sweep is running")
            return 0
        try:
            deps = self.make_deps(partial(_is_out_of_time, context))
            failed = sum(self._report_part(part) for part in sweeping.sweep(deps))
            self.report.unreadable(deps.history.take_unreadable())
            return failed
        finally:
            self.sweep_store.release_lease(owner)

    def _report_part(self, part: DueAuditsSent | ListSweepResult | WatchResult) -> bool:
        """Logs and counts one part immediately, so that a later failure cannot lose its result.

        Returns whether the part failed.
        """
        match part:
            case DueAuditsSent(sent, error):
                self.report.info("due audits sent", sent=sent)
                if error is not None:
                    self._report_failure("not all due audits sent", error)
            case ListSweepResult(error=error):
                self._report_list(part)
                if error is not None:
                    self._report_failure("list failed", error, **_list_labels(part))
            case WatchResult(error=error):
                self._report_watch(part)
                if error is not None:
                    self._report_failure(
                        "not all running jobs checked", error, **_list_labels(part)
                    )
        for reason in part.unreadable:
            self.report.count("SweepFailed")
            self.report.error("cannot be read", reason=reason)
        self.report.flush()
        has_defects = isinstance(part, WatchResult) and bool(part.defects)
        return part.error is not None or bool(part.unreadable) or has_defects

    def _report_list(self, result: ListSweepResult) -> None:
        """Logs one list, and counts its values that are not 0.

        A metric with values costs as much as three alarms.
        """
        counts = {
            "ended": result.ended_count,
            "missing": result.missing_count,
            "found": result.lost_events,
        }
        for metric, number in zip(_LIST_METRICS, counts.values(), strict=True):
            if number:
                self.report.count(metric, number=number)
        sent = {"sent_first": result.sent_without_event, "looked_back": result.sent_from_before}
        self.report.info(
            "list swept", **_list_labels(result), **counts, **sent, whole=result.is_complete
        )

    def _report_watch(self, result: WatchResult) -> None:
        counts = {
            "running": result.running_count,
            "looked": result.checked_count,
            "left": result.not_checked_count,
        }
        self.report.info("running jobs", **_list_labels(result), **counts)
        for message in result.messages:
            labels = {
                "kinds": message.kinds,
                "to": message.destination.channels,
                "routes": message.destination.route_numbers,
            }
            self.report.info("notified", running=message.job, **labels)
            if message.has_no_route:
                self.report.count("MessagesUnrouted")
        for arn, error in result.defects:
            self.report.count("SweepFailed")
            self.report.count(DEFECTS)
            self.report.defect("running job failed", error, job=arn)

    def _report_failure(self, message: str, error: AwsError, **labels: str) -> None:
        self.report.count("SweepFailed")
        self.report.error(message, **labels, error=type(error).__name__, reason=str(error))


def _list_labels(result: ListSweepResult | WatchResult) -> dict[str, str]:
    return {
        "account": result.job_list.account,
        "region": result.job_list.region,
        "kind": result.job_list.kind.value,
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
    report, time_limit = RecordReport(environ), TimeLimitedClients(session, clock)
    policy = policy or stored_policy.load()
    members = policy.members
    accounts = AccountClients.for_members(
        time_limit, settings.account_id, policy.members, time.time
    )
    # This client has no time limit, so that a sweep that runs out of time still stores its
    # progress.
    sweep_store = DynamoSweepStore(client(session, "dynamodb"), settings.table_name)
    lists = accounts.client_factory("sagemaker")
    lists(settings.account_id, settings.region)  # create clients during init, which has a full core
    job_pages = PacedJobPages(lists, seconds, sleep)
    history = DynamoHistory(client(time_limit, "dynamodb"), settings.table_name)
    queue = SqsQueue(client(session, "sqs", config=QUEUE_CONFIG), settings.finished_queue_url)

    watch = None
    if policy.watch is not None and policy.mode == "notify":
        watch = _watch_dependencies(
            accounts, history, client(time_limit, "dynamodb"), settings, policy, clock
        )

    def make_deps(out_of_time: Callable[[], bool]) -> SweepDependencies:
        return SweepDependencies(
            job_pages=job_pages,
            history=history,
            sweep_store=sweep_store,
            queue=queue,
            accounts=list(dict.fromkeys([settings.account_id, *members.role_by_account])),
            regions=list(dict.fromkeys([settings.region, *members.regions])),
            clock=clock,
            is_out_of_time=out_of_time,
            watch=watch,
        )

    return Sweeper(
        make_deps,
        sweep_store,
        clock,
        report,
        time_limit.start,
        members=sorted(product(members.role_by_account, (settings.region, *members.regions))),
        missing_permissions=partial(missing_permissions, accounts),
    )


def _watch_dependencies(
    accounts: AccountClients,
    history: DynamoHistory,
    dynamodb: Any,
    settings: SweepSettings,
    policy: Policy,
    clock: Callable[[], datetime],
) -> WatchDependencies:
    """Returns the watch's dependencies: as in `audit`, but with only two metrics."""
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
