"""The real audit function over a fake queue, SageMaker, CloudWatch, history and clock.

Its batch handling, retries and workflow are the real ones. Calls to its ports are counted, and fail
or kill the process as a test plans.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from audit import handler
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.lambda_runtime.batch import Batch, QueueRetries
from sageaudit.adapters.lambda_runtime.records import SqsMessage
from sageaudit.adapters.lambda_runtime.settings import AuditSettings
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import JobNotFound
from sageaudit.structs import replace
from sageaudit.workflows.audit.arrivals import EventArrivals
from tests.fakes.audit_flow import END, NAME, Answer, FakeJobs, FakeMetrics, dependencies
from tests.fakes.calls import CallProxy, Clock, Faults
from tests.fakes.jobs import ACCOUNT, REGION, training_answer
from tests.fakes.lambda_events import RecordedReport, job_event
from tests.fakes.memory_ledger import MemoryMemberRegistry, MemorySweepStore
from tests.fakes.queues import FakeQueue

OPERATIONS = {
    "describe": "Describe",
    "tags": "ListTags",
    "read": "GetMetricData",
    "summary": "GetItem",
    "record": "TransactWriteItems",
    "send": "SendMessage",
    "change_visibility": "ChangeMessageVisibility",
    **dict.fromkeys(("audit", "detail", "runs", "recheck_family", "schedule_reaudit"), "Query"),
}
"""AWS's operations by the port methods that call them; other methods keep their names."""
SETTINGS = AuditSettings(
    table_name="table",
    finished_queue_url="finished",
    finished_dlq_url="dead",
    account_id=ACCOUNT,
    region=REGION,
    fingerprint_secret_id=None,
)
_DAYS = 365
"""A limit on the days that `run` simulates."""


@dataclass
class TimedJobs(FakeJobs):
    """Fakes Jobs: answers by job, each valid from a time on; None if the job does not exist."""

    clock: Clock = field(default_factory=Clock)
    timed: dict[str, list[tuple[datetime, Answer | None]]] = field(default_factory=dict)

    def answer(self, name: str) -> Answer:
        valid_answers = [
            answer for since, answer in self.timed.get(name, ()) if since <= self.clock()
        ]
        if not valid_answers or valid_answers[-1] is None:
            return JobNotFound(f"there is no training job {name}")
        return valid_answers[-1]


class AuditFunction:
    """Runs the audit function in simulated time; times are minutes after END."""

    def __init__(
        self, policy: Policy | None = None, report: RecordedReport | None = None, **ports: Any
    ) -> None:
        self.clock = Clock(END)
        self.faults = Faults(self.clock)
        self.jobs, self.metrics = TimedJobs(clock=self.clock), FakeMetrics()
        self.history, self.notes = SqliteHistory(), MemorySweepStore()
        self.report = report or RecordedReport()
        self.queue = FakeQueue("finished", self.clock, delay_s=300, hidden_s=18 * 60)
        self.dead = FakeQueue("dead", self.clock)
        deps = dependencies(
            self._watched(self.jobs),
            self._watched(self.metrics),
            history=self._watched(self.history),
            policy=policy or Policy(),
        )
        self.deps = replace(deps, **ports)
        self.registry = MemoryMemberRegistry()
        queue, dead, notes = map(self._watched, (self.queue, self.dead, self.notes))
        scope = AuditScope(SETTINGS.home, self.deps.policy.members)
        seen: dict[AccountRegion, date] = {}

        def process(message: SqsMessage) -> None:
            registry = self._watched(self.registry)
            arrivals = EventArrivals(scope, registry, notes, self.clock, seen)
            function = handler.AuditFunction(self.deps, arrivals, queue, self.report)
            function.process(message)

        self._function = Batch(
            SqsMessage,
            process,
            failure_metric="AuditFailed",
            stop_before_ms=0,
            retries=QueueRetries([queue], dead, self.clock),
            report=self.report,
        )

    def _watched(self, port: Any) -> Any:
        def name(call: str) -> str:
            return OPERATIONS.get(call, call)

        return CallProxy(
            port,
            lambda call: self.faults.before(name(call)),
            lambda call: self.faults.after(name(call)),
        )

    # Setup

    def job(self, name: str = NAME, *answers: tuple[float, Answer | None]) -> None:
        """Sets SageMaker's answers about a job, each valid from minutes after END."""
        timed_answers = answers or ((-60, describe_answer(name)),)
        self.jobs.timed[name] = [
            (minutes_after_end(minute), timed_answer) for minute, timed_answer in timed_answers
        ]

    def outage(self, operations: str, error: Exception, until_min: float) -> None:
        """Lets these operations (separated by spaces) fail until then."""
        for operation in operations.split():
            self.faults.outage(
                operation, error, minutes_after_end(-60), minutes_after_end(until_min)
            )

    def send(self, body: str | None = None, **attributes: str) -> None:
        """Queues a message; by default the end event of the job NAME."""
        self.queue.put(body or job_event(), attributes)

    # Actions

    def run(self, until_min: float | None = None) -> None:
        """Delivers messages that become visible until then; by default until the queue is empty."""
        until = minutes_after_end(_DAYS * 24 * 60 if until_min is None else until_min)
        while (message := self.queue.next()) is not None and message.visible_at <= until:
            self.clock.now = max(self.clock.now, message.visible_at)
            self.queue.deliver(message, self._function, self.dead)
        if until_min is not None:
            self.clock.now = max(self.clock.now, until)

    # Results

    @property
    def counts(self) -> Counter[str]:
        """The counts by metric."""
        return self.report.names

    def summaries(self) -> list[AuditSummary]:
        """Returns the summaries of all runs in the history."""
        return [
            head
            for account in (ACCOUNT, *self.deps.policy.members.role_by_account)
            for head in self.history.runs(RunQuery.for_account(account))
        ]


def minutes_after_end(minutes: float) -> datetime:
    """Returns the time that is `minutes` after END."""
    return END + timedelta(minutes=minutes)


def describe_answer(name: str = NAME, **changes: Any) -> dict[str, Any]:
    """Returns the Describe answer of a job that ended at END."""
    return training_answer(**{"TrainingJobName": name, **changes})


def stale_answer(name: str = NAME, **changes: Any) -> dict[str, Any]:
    """Returns a stale Describe answer, in which the same job still runs."""
    behind = describe_answer(
        name, TrainingJobStatus="InProgress", SecondaryStatus="Training", **changes
    )
    for key in ("TrainingEndTime", "TrainingTimeInSeconds", "BillableTimeInSeconds"):
        del behind[key]
    return {**behind, "LastModifiedTime": "2026-05-20T10:10:00Z"}
