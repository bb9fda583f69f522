"""The workflow of an audit over fakes of SageMaker, CloudWatch and prices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, MissingMetrics
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import (
    AuditDependencies,
    AuditOutcome,
    AuditRecorded,
    AuditTrigger,
)
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.entries import due_audits
from tests.fakes.jobs import ACCOUNT, REGION, flat, market, usage
from tests.fakes.lambda_events import CREATED, end_event

Answer = Mapping[str, Any] | Exception
NAME = "train-vision"
END = datetime(2026, 5, 20, 11, 0, tzinfo=UTC)
FAR = END + timedelta(days=400)
KEY = JobKey(f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{NAME}", CREATED)
"""The key of `training_answer`'s job."""


@dataclass
class FakeJobs:
    """Fakes Jobs: each describe call takes a job's next answer; the last one repeats."""

    answers: dict[str, list[Answer]] = field(default_factory=dict)
    tag_answer: Mapping[str, str] | Exception = field(default_factory=dict)
    describe_calls: list[str] = field(default_factory=list)

    def answer(self, name: str) -> Answer:
        queue = self.answers[name]
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def describe(self, ref: JobRef) -> dict[str, Any]:
        self.describe_calls.append(ref.name)
        answer = self.answer(ref.name)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def tags(self, ref: JobRef) -> dict[str, str]:
        if isinstance(self.tag_answer, Exception):
            raise self.tag_answer
        return dict(self.tag_answer)

    def children(self, ref: JobRef) -> Iterator[JobRef]:
        yield from ()


@dataclass
class FakeMetrics:
    """Fakes Metrics: constant utilisation for `minutes` of every job, or `missing` metrics."""

    minutes: int = 60
    use: Mapping[str, float] = field(default_factory=lambda: {"cpu": 60, "memory": 60, "gpu": 90})
    missing: MissingMetrics | None = None
    whole_at: datetime | None = None
    """The time from which all 60 minutes are available."""
    read_count: int = 0

    def read(self, job: Job, now: datetime) -> Measurements:
        self.read_count += 1
        if self.missing is not None:
            return replace(usage(job), missing=dict.fromkeys(usage(job).missing, self.missing))
        minutes = 60 if self.whole_at and now >= self.whole_at else self.minutes
        return flat(job, minutes, hosts=job.instance_count or 1, **self.use)


class FakeMarkets:
    """Fakes Markets with the same made-up prices for every job."""

    def market(self, job: Job, now: datetime) -> Market:
        return market()


def dependencies(
    jobs: FakeJobs, metrics: FakeMetrics | None = None, **changes: Any
) -> AuditDependencies:
    """Returns an audit's dependencies: fakes, all rules and an in-memory history."""
    plain = AuditDependencies(
        jobs=jobs,
        metrics=metrics or FakeMetrics(),
        history=SqliteHistory(),
        markets=FakeMarkets(),
        policy=Policy(),
        ruleset=Ruleset(catalogue.load(), "test"),
        fingerprint_key=lambda: b"key",
    )
    return replace(plain, **changes)


class AuditFlow:
    """Audits jobs from given Describe answers, as their events arrive.

    `answers`: lists of answers by job name, or one list for the job NAME.
    """

    def __init__(
        self,
        answers: Mapping[str, Any] | list[Any],
        metrics: Any = None,
        *,
        tags: Mapping[str, str] | Exception | None = None,
        **changes: Any,
    ) -> None:
        named = answers if isinstance(answers, Mapping) else {NAME: answers}
        self.jobs = FakeJobs(
            {
                name: list(job_answers) if isinstance(job_answers, list) else [job_answers]
                for name, job_answers in named.items()
            },
            tags or {},
        )
        self.metrics = metrics or FakeMetrics()
        self.deps = dependencies(self.jobs, self.metrics, **changes)
        self.reaudits = 0

    def deliver(
        self,
        at: datetime,
        name: str = NAME,
        kind: JobKind = JobKind.TRAINING,
        *,
        caller: AuditTrigger = AuditTrigger.DELIVERY,
        waited: Mapping[Any, int] | None = None,
        **detail: Any,
    ) -> AuditOutcome:
        """Delivers a job's event once, after the given numbers of waits by reason."""
        event = end_event(name, kind, **detail)
        result = audit_finished_job(
            event, self.deps, now=at, caller=caller, wait_counts=waited or {}
        )
        self.reaudits += isinstance(result, AuditRecorded) and result.is_reaudit
        return result

    def deliver_and_record(self, at: datetime, name: str = NAME, **how: Any) -> AuditRecorded:
        """Delivers the event and returns the outcome, which must be a recorded audit."""
        result = self.deliver(at, name, **how)
        assert isinstance(result, AuditRecorded), result
        return result

    def reaudit_due(self, since: datetime, *, days: int = 40) -> int:
        """Reaudits all jobs when they are due, for at most `days`; returns how often."""
        before, now = self.reaudits, since
        while now < since + timedelta(days=days) and (summaries := due_audits(self.history, FAR)):
            late = min(summary.due_at or now for summary in summaries)
            now = max(now, late) + timedelta(minutes=15)
            for summary in due_audits(self.history, now):
                created = int(summary.key.created_at.timestamp() * 1000)
                self.deliver(now, summary.job, JobKind(summary.kind), CreationTime=created)
        return self.reaudits - before

    @property
    def history(self) -> Any:
        """The history that audits are recorded in."""
        return self.deps.history

    @property
    def summary(self) -> AuditSummary:
        """The stored summary of the job NAME."""
        summary = self.history.summary(KEY)
        assert isinstance(summary, AuditSummary)
        return summary

    def is_open(self) -> bool:
        """Whether the job NAME will be audited again."""
        return not self.summary.settled

    @property
    def document(self) -> AuditDocument:
        """The newest audit of the job NAME."""
        document: AuditDocument | None = self.history.audit(KEY)
        assert document is not None
        return document
