"""A schedule -> events of due audits and lost jobs in the queue of finished jobs.

The schedule's event has no content. A lease in the table prevents two sweeps at the same time.
`sageaudit doctor --members` sends another event, which asks what is known of the members and what
they deny, and starts no sweep: `{"continue_after": ""}`, or the account and region after which to
continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.accounts import AccountClients
from sageaudit.adapters.aws.clients import (
    PARALLEL_CONFIG,
    RESERVE_S,
    TimeLimitedClients,
    client,
    new_session,
)
from sageaudit.adapters.aws.sagemaker import PacedJobPages
from sageaudit.adapters.aws.sqs import QUEUE_CONFIG, SqsQueue
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.lambda_runtime.batch import DEFECTS, Handler, entry_point
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.adapters.lambda_runtime.settings import SweepSettings
from sageaudit.adapters.threads import OpenWorkers, open_threads
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError
from sageaudit.ports import SweepStore, Workers
from sageaudit.workflows.sweep.lists import ListSweepResult, SweepDependencies
from sageaudit.workflows.sweep.members import describe_members
from sageaudit.workflows.sweep.run import (
    DueAuditsSent,
    MemberChecked,
    RegionStored,
    SweepPart,
    SweepSummary,
    sweep,
)

STOP_BEFORE_MS = (RESERVE_S + 30) * 1000
"""If less time is left, no further page is read: the states of the lists are then stored."""
STORE_MS = (RESERVE_S - 15) * 1000
"""For this time after the last other request, the progress of lists can still be stored."""
_LIST_METRICS = ("JobsEnded", "JobsMissing", "LostEventsFound")
LEASE_S = 660
"""The seconds of a sweep's lease: longer than a sweep may run, shorter than the time between two
sweeps."""
REPORT_AGE_ABOVE = timedelta(minutes=45)
"""The age of the oldest list is counted from here on: three sweeps did not read the list. A metric
with values costs as much as three alarms, so a healthy deployment has none."""
MAX_FAILED_SHARE = 0.05
"""If a larger share of the lists was throttled or not answered, the sweep failed. A single list is
read again 15 minutes later, and has the alarm ListsLate. Our choice."""
MEMBER_CHECK_LIMIT = timedelta(seconds=40)
"""The longest time for which one invocation checks members, since a person waits for the answer."""


class Sweeper(Struct, frozen=True):
    """The sweep function: runs one sweep for each event.

    `make_deps` makes the dependencies of one sweep, from its threads and from a function that says
    whether to stop.
    """

    make_deps: Callable[[Workers, Callable[[], bool]], SweepDependencies]
    sweep_store: SweepStore
    clock: Callable[[], datetime]
    report: RecordReport
    begin: Callable[[float], None] = lambda _: None
    open_workers: OpenWorkers = open_threads

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Returns how many parts of the sweep failed, or what is known of members.

        Raises any error that is not an AwsError.
        """
        self.report.start_invocation(context)
        self.begin(context.get_remaining_time_in_millis())
        try:
            with self.open_workers() as workers:
                deps = self.make_deps(workers, partial(_is_out_of_time, context))
                if (last_place := event.get("continue_after")) is not None:
                    return describe_members(deps, last_place, self.clock() + MEMBER_CHECK_LIMIT)
                failed = self._run_sweep(deps, context.aws_request_id)
        except AwsError as error:
            if "continue_after" in event:  # its caller shows the error
                raise
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

    def _run_sweep(self, deps: SweepDependencies, owner: str) -> int:
        if not self.sweep_store.acquire_lease(owner, self.clock(), LEASE_S):
            self.report.info("another sweep is running")
            return 0
        try:
            failed = sum(self._report_part(part) for part in sweep(deps))
            self.report.unreadable(deps.history.take_unreadable())
            self.report.unreadable(deps.registry.take_unreadable())
            return failed
        finally:
            self.sweep_store.release_lease(owner)

    def _report_part(self, part: SweepPart) -> bool:
        """Logs and counts one part immediately, so that a later failure cannot lose its result.

        Returns whether the part failed.
        """
        match part:
            case DueAuditsSent(sent, error, unreadable):
                self.report.info("due audits sent", sent=sent)
                self._report_unreadable(unreadable)
                failed = self._has_failed("not all due audits sent", error) or bool(unreadable)
            case ListSweepResult():
                failed = self._report_list(part)
            case MemberChecked(account_region, denial, sent, error):
                labels = _labels(account_region) | {"sent": sent}
                if denial is None:
                    self.report.info("member can be read again", **labels)
                else:
                    denied = {"actions": denial.actions, "reason": denial.reason}
                    self.report.warning("member denies access", **labels, **denied)
                failed = self._has_failed("member not checked", error, **labels)
            case RegionStored(account_region, not_stored, error):
                if not_stored:
                    self.report.count("SweepFailed")
                    labels = _labels(account_region)
                    self.report.error("too many running jobs", **labels, not_stored=not_stored)
                failed = self._has_failed("lists not stored", error, **_labels(account_region))
            case SweepSummary():
                failed = self._report_summary(part)
        self.report.flush()
        return failed

    def _report_list(self, result: ListSweepResult) -> bool:
        """Logs a list in which something was found or that was not read to its end.

        Counts only values that are not 0, since a metric with values costs as much as three alarms.
        """
        counts = {
            "ended": result.ended_count,
            "missing": result.missing_count,
            "found": result.lost_events,
        }
        for metric, number in zip(_LIST_METRICS, counts.values(), strict=True):
            # The alarm JobsMissing subtracts lost events. CloudWatch's FILL is not certain to give
            # 0 for a metric that was never published (aws-sdk-js-v3#6873: "emit a 0 datapoint").
            if number or (metric == "LostEventsFound" and result.missing_count):
                self.report.count(metric, number=number)
        sent = {"sent_first": result.sent_without_event, "looked_back": result.sent_from_before}
        labels = _labels(result.job_list.account_region) | {"kind": result.job_list.kind.value}
        if any((counts | sent).values()) or not result.is_complete:
            self.report.info("list swept", **labels, **counts, **sent, whole=result.is_complete)
        if result.denial is not None:
            self.report.warning("member denies access", **labels, reason=str(result.denial))
        self._report_unreadable(result.unreadable)
        if result.defect is not None:
            self.report.count("SweepFailed")
            self.report.count(DEFECTS)
            self.report.defect("list failed", result.defect, **labels)
        if result.error is not None:
            error = {"error": type(result.error).__name__, "reason": str(result.error)}
            self.report.error("list failed", **labels, **error)
        return bool(result.unreadable or result.error or result.defect)

    def _report_summary(self, summary: SweepSummary) -> bool:
        counts = {
            "lists": summary.tried_list_count,
            "failed": summary.failed_list_count,
            "members": summary.member_count,
            "denying": summary.denying_count,
        }
        age_s = round(summary.oldest_list_age.total_seconds())
        self.report.info("swept", oldest_list_s=age_s, **counts)
        if summary.denying_count:
            self.report.count("MembersUnreadable", number=summary.denying_count)
        if summary.oldest_list_age > REPORT_AGE_ABOVE:
            self.report.count("OldestListSeconds", number=age_s)
        if summary.failed_list_count > MAX_FAILED_SHARE * summary.tried_list_count:
            self.report.count("SweepFailed")
        if summary.denying_count == summary.member_count > 1:
            self.report.count("SweepFailed")
            self.report.error("no member can be read, so look at this account's own role")
            return True
        return False

    def _report_unreadable(self, reasons: Sequence[str]) -> None:
        for reason in reasons:
            self.report.count("SweepFailed")
            self.report.error("cannot be read", reason=reason)

    def _has_failed(self, message: str, error: AwsError | None, **labels: Any) -> bool:
        if error is not None:
            self._report_failure(message, error, **labels)
        return error is not None

    def _report_failure(self, message: str, error: AwsError, **labels: Any) -> None:
        self.report.count("SweepFailed")
        self.report.error(message, **labels, error=type(error).__name__, reason=str(error))


def _labels(account_region: AccountRegion) -> dict[str, Any]:
    return {"account": account_region.account, "region": account_region.region}


def _missing_permissions(
    accounts: AccountClients, account: str, region: str
) -> dict[str, AwsError]:
    from sageaudit.adapters.aws.probes import missing_permissions  # noqa: PLC0415 - few sweeps ask

    return missing_permissions(accounts, account, region)


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
    open_workers: OpenWorkers = open_threads,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings or BadPolicy."""
    settings, session = SweepSettings.from_env(environ), session or new_session()
    time_limit = TimeLimitedClients(session, clock)
    policy = policy or stored_policy.load()
    accounts = AccountClients.for_members(
        time_limit, settings.account_id, policy.members, time.time
    )
    store_limit = TimeLimitedClients(session, clock)
    store_client = client(store_limit, "dynamodb", config=PARALLEL_CONFIG)
    sweep_store = DynamoSweepStore(store_client, settings.table_name)

    def begin(remaining_ms: float) -> None:
        # A sweep that runs out of time for other requests still stores its progress.
        time_limit.start(remaining_ms)
        store_limit.start(remaining_ms + STORE_MS)

    lists = accounts.client_factory("sagemaker")
    lists(settings.account_id, settings.region)  # create clients during init, which has a full core
    job_pages = PacedJobPages(lists, seconds, sleep)
    dynamodb = client(time_limit, "dynamodb", config=PARALLEL_CONFIG)
    history = DynamoHistory(dynamodb, settings.table_name)
    sqs = client(session, "sqs", config=QUEUE_CONFIG)
    queue = SqsQueue(sqs, settings.finished_queue_url)

    def make_deps(workers: Workers, is_out_of_time: Callable[[], bool]) -> SweepDependencies:
        return SweepDependencies(
            job_pages=job_pages,
            history=history,
            sweep_store=sweep_store,
            registry=DynamoMemberRegistry(dynamodb, settings.table_name),
            queue=queue,
            scope=AuditScope(settings.home, policy.members),
            check_member=partial(_missing_permissions, accounts),
            workers=workers,
            clock=clock,
            is_out_of_time=is_out_of_time,
        )

    report = RecordReport(environ)
    return Sweeper(make_deps, sweep_store, clock, report, begin, open_workers)


handler = entry_point(build)
