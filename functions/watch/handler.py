"""A schedule -> messages about running jobs and budgets, in the outbox.

The schedule's event has no content. The sweeps' last lists tell which jobs run. Budgets are checked
by the first watch of an hour. Two watches at the same time write each message once, since a message
changes the state of its job or budget under a condition.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
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
from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.aws.sagemaker import SageMakerJobs
from sageaudit.adapters.channels.services import channel_writers
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.budget_ledger import DynamoBudgetLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.lambda_runtime.batch import DEFECTS, Handler, entry_point
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.adapters.lambda_runtime.settings import HomeSettings
from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.price_list import PriceCache, PriceList
from sageaudit.adapters.prices.sources import live_markets
from sageaudit.adapters.threads import OpenWorkers, open_threads
from sageaudit.domain.members import AuditScope, Denial
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import WatchSettings
from sageaudit.domain.usage.measurements import Metric
from sageaudit.errors import AwsError, MalformedData
from sageaudit.output.text.links import HistoryLocation
from sageaudit.ports import MemberRegistry, SweepStore, Workers
from sageaudit.rules import catalogue
from sageaudit.workflows.budgets import BudgetCheck, BudgetDependencies, check_budgets
from sageaudit.workflows.watch.run import check_running_jobs, watched_jobs
from sageaudit.workflows.watch.running_job import JobCheck, WatchDependencies, WatchMessage

_STOP_BEFORE_MS = (RESERVE_S + 10) * 1000
"""If less time is left, no further job is checked."""

_BUDGET_MINUTES = 15
"""Budgets are checked by the watch that starts in these first minutes of an hour. Our choice:
nobody acts on a budget sooner, and AWS's own budgets are updated up to three times a day (AWS Cost
Management user guide, "Managing your costs with AWS Budgets")."""

MAX_UNANSWERED_SHARE = 0.1
"""If AWS throttled or did not answer a larger share of the checks, the watch failed. The next watch
checks single jobs again. Our choice."""


class Watcher(Struct, frozen=True):
    """The watch function: checks the running jobs once for each event.

    `make_deps` makes the dependencies of one watch, from a function that says whether to stop; None
    if the policy sends no messages about running jobs. `check_budgets` checks all budgets at a
    time; None if the policy sends no messages about budgets.
    """

    make_deps: Callable[[Callable[[], bool]], WatchDependencies] | None
    sweep_store: SweepStore
    registry: MemberRegistry
    scope: AuditScope
    clock: Callable[[], datetime]
    report: RecordReport
    begin: Callable[[float], None] = lambda _: None
    open_workers: OpenWorkers = open_threads
    check_budgets: Callable[[Workers, datetime], Iterable[BudgetCheck]] | None = None

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Returns how many jobs and budgets could not be checked.

        Raises any error in the check of jobs that is not an AwsError.
        """
        del event
        self.report.start_invocation(context)
        self.begin(context.get_remaining_time_in_millis())
        failed_budgets = self._check_budgets()
        if self.make_deps is None:
            return {"failed": failed_budgets}
        try:
            deps = self.make_deps(partial(_is_out_of_time, context))
            failed = failed_budgets + self._watch(deps)
            self.report.unreadable(deps.history.take_unreadable())
        except AwsError as error:
            failed = failed_budgets + 1
            self._count(failed=1)
            self._report_failure("watch failed", error)
        except Exception as error:
            self._count(failed=1)
            self.report.count(DEFECTS)
            self.report.defect("watch failed", error)
            raise
        finally:
            self.report.flush()
        return {"failed": failed}

    def _check_budgets(self) -> int:
        """Checks the budgets in the first quarter of an hour. Returns how many failed.

        No failure stops the check of running jobs.
        """
        now, failed = self.clock(), 0
        if self.check_budgets is None or now.minute >= _BUDGET_MINUTES:
            return 0
        try:
            with self.open_workers() as workers:
                for check in self.check_budgets(workers, now):
                    failed += check.error is not None
                    self._report_budget(check)
        except (AwsError, MalformedData) as error:
            failed += 1
            self._report_failure("budgets not checked", error)
        except Exception as error:  # noqa: BLE001 - a bug here must not stop the check of jobs
            failed += 1
            self.report.count(DEFECTS)
            self.report.defect("budgets failed", error)
        if failed:
            self.report.count("BudgetsFailed", number=failed)
        self.report.flush()
        return failed

    def _report_budget(self, check: BudgetCheck) -> None:
        """Logs the message or the failure of one budget."""
        labels = {"budget": check.budget, "month": check.month}
        if check.threshold is not None:
            self.report.info(
                "notified", **labels, threshold=check.threshold.value, to=check.channels
            )
        if check.error is not None:
            self._report_failure("budget not checked", check.error, **labels)

    def _watch(self, deps: WatchDependencies) -> int:
        swept, members = self.sweep_store.swept_regions(), self.registry.members()
        rows = watched_jobs(self.scope, swept, members)
        counts = Counter[str](running=len(rows), expensive=0, failed=0, left=0)
        unanswered_count = 0
        with self.open_workers() as workers:
            for check in check_running_jobs(deps, rows, workers):
                has_failed = self._report_check(check)
                counts["failed"] += has_failed
                counts["expensive"] += check.is_expensive is True
                counts["left"] += check.was_out_of_time
                unanswered_count += has_failed and check.error is not None
        checked_count = counts["expensive"] + unanswered_count
        if unanswered_count > MAX_UNANSWERED_SHARE * checked_count:
            self._count(failed=unanswered_count)
        if counts["left"]:
            self._count(left=counts["left"])
        self.report.info("running jobs", **counts)
        return counts["failed"]

    def _count(self, *, failed: int = 0, left: int = 0) -> None:
        # The alarm WatchFailing adds both metrics, so both are published if one is.
        self.report.count("WatchFailed", number=failed)
        self.report.count("RunningJobsNotChecked", number=left)

    def _report_check(self, check: JobCheck) -> bool:
        """Logs and counts one job immediately. Returns whether its check failed."""
        if check.message is not None:
            self._report_message(check.message)
        has_failed = check.unreadable is not None or check.defect is not None
        if check.unreadable is not None:
            self._count(failed=1)
            self.report.error("cannot be read", reason=check.unreadable)
        if check.defect is not None:
            self._count(failed=1)
            self.report.count(DEFECTS)
            self.report.defect("running job failed", check.defect, job=check.ref.arn)
        if check.error is not None:
            has_failed |= self._report_error(check, check.error)
        self.report.flush()
        return has_failed

    def _report_error(self, check: JobCheck, error: AwsError) -> bool:
        """Returns False if a member denies the job: the sweep asks the member again each hour."""
        account_region = check.ref.account_region
        if not self.scope.is_denied_by_member(account_region, error):
            self._report_failure("running job not checked", error, job=check.ref.arn)
            return True
        self.registry.add_denial(account_region, Denial.from_error(error, self.clock()))
        self.report.warning("member denies access", job=check.ref.arn, reason=str(error))
        return False

    def _report_message(self, message: WatchMessage) -> None:
        labels = {
            "kinds": message.kinds,
            "to": message.destination.channels,
            "routes": message.destination.route_numbers,
        }
        self.report.info("notified", running=message.job, **labels)
        if message.has_no_route:
            self.report.count("MessagesUnrouted")

    def _report_failure(self, text: str, error: AwsError | MalformedData, **labels: str) -> None:
        self.report.error(text, **labels, error=type(error).__name__, reason=str(error))


def _is_out_of_time(context: Any) -> bool:
    return bool(context.get_remaining_time_in_millis() < _STOP_BEFORE_MS)


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    policy: Policy | None = None,
    open_workers: OpenWorkers = open_threads,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings or BadPolicy."""
    settings, session = HomeSettings.from_env(environ), session or new_session()
    time_limit, policy = TimeLimitedClients(session, clock), policy or stored_policy.load()
    accounts = AccountClients.for_members(
        time_limit, settings.account_id, policy.members, time.time
    )
    dynamodb = client(time_limit, "dynamodb", config=PARALLEL_CONFIG)
    sweep_store = DynamoSweepStore(dynamodb, settings.table_name, clock=clock)
    report, make_deps, check_all = RecordReport(environ), None, None
    if policy.budgets and policy.mode == "notify":
        budget_deps = _budget_dependencies(dynamodb, settings, policy)
        check_all = partial(check_all_budgets, budget_deps, sweep_store.installed_at, report)
    if policy.watch is not None and policy.mode == "notify":
        make_deps = partial(
            _dependencies, accounts, dynamodb, settings, policy, policy.watch, clock
        )
    return Watcher(
        make_deps,
        sweep_store,
        DynamoMemberRegistry(dynamodb, settings.table_name),
        AuditScope(settings.home, policy.members),
        clock,
        report,
        time_limit.start,
        open_workers,
        check_all,
    )


def _budget_dependencies(
    dynamodb: Any, settings: HomeSettings, policy: Policy
) -> BudgetDependencies:
    return BudgetDependencies(
        history=DynamoHistory(dynamodb, settings.table_name),
        ledger=DynamoBudgetLedger(dynamodb, settings.table_name),
        policy=policy,
        writers=channel_writers(policy.channels),
        history_location=HistoryLocation.for_table(settings.table_name, settings.region),
    )


def check_all_budgets(
    deps: BudgetDependencies,
    installed_at: Callable[[], datetime | None],
    report: RecordReport,
    workers: Workers,
    now: datetime,
) -> Iterator[BudgetCheck]:
    """Yields the check of each budget, then reports the stored items that could not be read."""
    yield from check_budgets(deps, workers, installed_at=installed_at(), now=now)
    report.unreadable(deps.history.take_unreadable())


def _dependencies(
    accounts: AccountClients,
    dynamodb: Any,
    settings: HomeSettings,
    policy: Policy,
    watch_settings: WatchSettings,
    clock: Callable[[], datetime],
    is_out_of_time: Callable[[], bool],
) -> WatchDependencies:
    """Returns the watch's dependencies: as in `audit`, but with only two metrics."""
    history = DynamoHistory(dynamodb, settings.table_name)
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
        settings=watch_settings,
        clock=clock,
        is_out_of_time=is_out_of_time,
    )


handler = entry_point(build)
