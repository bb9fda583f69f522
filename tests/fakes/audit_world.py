"""The audit function between a queue, SageMaker, CloudWatch and a history, in a clock of its own.

The function is the real one: its batch, its retries and its flow. Around it everything is a fake
that counts what it is asked, and fails or dies as a story wants.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from audit.handler import audit_message
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.lambda_runtime.batch import Batch, QueueRetries
from sageaudit.adapters.lambda_runtime.records import SqsMessage
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.adapters.lambda_runtime.settings import AuditSettings
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import Members
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from sageaudit.errors import JobNotFound
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies
from tests.fakes.dependencies import OneMarket
from tests.fakes.jobs import ACCOUNT, REGION, flat, training_answer
from tests.fakes.queues import FakeQueue, Killed
from tests.fakes.sweeps import MemoryNotes

END = datetime(2026, 5, 20, 11, 0, tzinfo=UTC)
"""When jobs end, unless a story says otherwise."""
CREATED = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
OTHER_ACCOUNT = "222233334444"
_DAYS = 365
"""No story is longer."""


class _Report(Report):
    """Keeps the counts that were printed, and the lines."""

    def __init__(self, world: "World") -> None:
        super().__init__({"POWERTOOLS_SERVICE_NAME": "audit-world"})
        self._world, self._pending = world, Counter[str]()

    def count(self, name: str, *, channel: str | None = None, number: int = 1) -> None:
        self._pending[name] += number

    def flush(self) -> None:
        if not self._world.dying:
            self._world.counts += self._pending
        self._pending.clear()
        super().flush()


class _History:
    """A history in memory, as DynamoDB: counted, and away when the story says so."""

    def __init__(self, world: "World") -> None:
        self._world, self.kept = world, SqliteHistory()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.kept, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            operation = {"head": "GetItem", "record": "TransactWriteItems"}.get(name, "Query")
            self._world.asked(operation)
            answer = method(*args, **kwargs)
            self._world.done(operation)
            return list(answer) if isinstance(answer, Iterator) else answer

        return call


Said = Mapping[str, Any] | Exception | None
"""An answer, an error, or None where there is no such job."""


class World:
    """One story. Times are END plus minutes."""

    def __init__(self, policy: Policy | None = None, **changes: Any) -> None:
        self.now = END
        self.calls: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.dying = False
        self.kill_at: str | None = None
        self.minutes_of_metrics: list[tuple[datetime, int]] = [(END, 60)]
        self.metrics_missing: Missing | None = None
        self.tags_said: Mapping[str, str] = {}
        self._answers: dict[str, list[tuple[datetime, Said]]] = {}
        self._fails: list[tuple[frozenset[str], Exception, datetime, datetime]] = []
        self.queue, self.dead = (
            FakeQueue(name, lambda: self.now, 300, 18 * 60, asked=self.asked, done=self.done)
            for name in ("finished", "dead")
        )
        self.history = _History(self)
        self.notes = MemoryNotes()
        deps = AuditDependencies(
            jobs=cast("Any", self),
            metrics=cast("Any", self),
            history=cast("Any", self.history),
            markets=OneMarket(),
            policy=policy or Policy(members=Members({OTHER_ACCOUNT: "read"})),
            ruleset=Ruleset(catalogue.load(), "test"),
            fingerprint_key=lambda: b"key",
        )
        self.deps = replace(deps, **changes)
        self.settings = AuditSettings(
            table_name="table",
            finished_queue_url="finished",
            finished_dlq_url="dead",
            account_id=ACCOUNT,
            region=REGION,
            fingerprint_secret_id=None,
        )
        self._report = _Report(self)
        self._function = Batch(
            SqsMessage,
            lambda message: audit_message(
                message,
                self.deps,
                self.settings,
                cast("Any", self.queue),
                self._report,
                self.notes,
                now=self.now,
            ),
            failed="AuditFailed",
            stop_before_ms=0,
            retries=QueueRetries(
                [cast("SqsQueue", self.queue)], cast("Any", self.dead), lambda: self.now
            ),
            report=self._report,
        )

    # What a story arranges.

    def job(self, name: str = "train-vision", *answers: tuple[float, Said]) -> None:
        """SageMaker's answers about a job, each from a minute after END on."""
        said = answers or ((-60, answer(name)),)
        self._answers[name] = [(at(minute), one) for minute, one in said]

    def fails(
        self, operations: str, error: Exception, until_min: float, since_min: float = -60
    ) -> None:
        """These operations, separated by spaces, fail in this time."""
        names = frozenset(operations.split())
        self._fails.append((names, error, at(since_min), at(until_min)))

    def send(self, body: str | None = None, **attributes: str) -> None:
        """A message of the bus or of the sweep; without a body the event of the job."""
        self.queue.put(body or event(), attributes)

    # What happens.

    def run(self, until_min: float | None = None) -> None:
        """Delivers what becomes visible until then; without a time, until no message is left."""
        until = at(_DAYS * 24 * 60 if until_min is None else until_min)
        while (one := self.queue.next()) is not None and one.visible_at <= until:
            self.now = max(self.now, one.visible_at)
            self.queue.deliver(one, self._function, self.dead)
            self.dying = False
        if until_min is not None:
            self.now = max(self.now, until)

    def asked(self, operation: str) -> None:
        """A request begins."""
        self.calls[operation] += 1
        self._die(f"before {operation}")
        for names, error, since, until in self._fails:
            if operation in names and since <= self.now < until:
                raise error

    def done(self, operation: str) -> None:
        """A request has had its effect."""
        self._die(f"after {operation}")

    def _die(self, step: str) -> None:
        if self.kill_at == step:
            self.kill_at, self.dying = None, True
            raise Killed

    # SageMaker and CloudWatch.

    def describe(self, ref: JobRef) -> dict[str, Any]:
        self.asked("Describe")
        said = [one for since, one in self._answers.get(ref.name, ()) if since <= self.now]
        if not said or said[-1] is None:
            raise JobNotFound(f"there is no {ref.kind.value} job {ref.name}")
        if isinstance(said[-1], Exception):
            raise said[-1]
        self.done("Describe")
        return dict(said[-1])

    def tags(self, ref: JobRef) -> dict[str, str]:
        self.asked("ListTags")
        return dict(self.tags_said)

    def children(self, ref: JobRef) -> Iterator[JobRef]:
        yield from ()

    def read(self, job: Job, now: datetime) -> Measurements:
        self.asked("GetMetricData")
        if self.metrics_missing is not None:
            whole = flat(job, 60, cpu=60)
            return replace(whole, missing=dict.fromkeys(Metric, self.metrics_missing))
        minutes = [count for since, count in self.minutes_of_metrics if since <= self.now][-1]
        return flat(job, minutes, hosts=job.instance_count or 1, cpu=60, memory=60, gpu=90)

    # What came of it.

    def heads(self) -> list[AuditSummary]:
        """All runs that the history knows."""
        return [
            head
            for account in (ACCOUNT, OTHER_ACCOUNT)
            for head in self.history.kept.runs(RunQuery.of_account(account))
        ]


def at(minutes: float) -> datetime:
    """Minutes after END."""
    return END + timedelta(minutes=minutes)


def answer(name: str = "train-vision", **changes: Any) -> dict[str, Any]:
    """Describe of a job that ended at END."""
    return training_answer(**{"TrainingJobName": name, **changes})


def running(name: str = "train-vision", **changes: Any) -> dict[str, Any]:
    """Describe of the same job, behind its event."""
    behind = answer(name, TrainingJobStatus="InProgress", SecondaryStatus="Training", **changes)
    for gone in ("TrainingEndTime", "TrainingTimeInSeconds", "BillableTimeInSeconds"):
        del behind[gone]
    return {**behind, "LastModifiedTime": "2026-05-20T10:10:00Z"}


def event(
    name: str = "train-vision",
    *,
    kind: JobKind = JobKind.TRAINING,
    source: str = "aws.sagemaker",
    envelope: Mapping[str, Any] | None = None,
    **detail: Any,
) -> str:
    """The event of a job's end. A detail of None is left out."""
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.row.arn_word}/{name}"
    prefix = kind.row.prefix
    said = {
        f"{prefix}JobName": name,
        f"{prefix}JobArn": arn,
        f"{prefix}JobStatus": "Completed",
        "CreationTime": round(CREATED.timestamp() * 1000),
        **detail,
    }
    body = {
        "source": source,
        "detail-type": kind.row.detail_type,
        "account": ACCOUNT,
        "region": REGION,
        "time": "2026-05-20T11:00:02Z",
        **(envelope or {}),
        "detail": {key: value for key, value in said.items() if value is not None},
    }
    return json.dumps({key: value for key, value in body.items() if value is not None})
