"""An office for the flow: SageMaker and CloudWatch that say what a test tells them to."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobEnded, JobRef, job_ended
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Missing
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditDependencies, Audited, Caller, Outcome
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.entries import due
from tests.fakes.jobs import ACCOUNT, REGION, flat, market, usage

Answer = Mapping[str, Any] | Exception
NAME = "train-vision"
END = datetime(2026, 5, 20, 11, 0, tzinfo=UTC)
CREATED = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
FAR = END + timedelta(days=400)
KEY = JobKey(f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{NAME}", CREATED)
"""Of the job that `training_answer` is of."""


@dataclass
class SaidJobs:
    """Each job's answers, one a call; the last one stays."""

    answers: dict[str, list[Answer]] = field(default_factory=dict)
    tag_answer: Mapping[str, str] | Exception = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def describe(self, ref: JobRef) -> dict[str, Any]:
        self.asked.append(ref.name)
        queue = self.answers[ref.name]
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
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
class SaidMetrics:
    """Even use over so many minutes of every job; `missing` says why there is none."""

    minutes: int = 60
    use: Mapping[str, float] = field(default_factory=lambda: {"cpu": 60, "memory": 60, "gpu": 90})
    missing: Missing | None = None
    asked: int = 0

    def read(self, job: Job, now: datetime) -> Measurements:
        self.asked += 1
        if self.missing is not None:
            return replace(usage(job), missing=dict.fromkeys(usage(job).missing, self.missing))
        return flat(job, self.minutes, hosts=job.instance_count or 1, **self.use)


class OneMarket:
    """The same made-up prices for every job."""

    def market(self, job: Job, now: datetime) -> Market:
        return market()


def dependencies(
    jobs: SaidJobs, metrics: SaidMetrics | None = None, **changes: Any
) -> AuditDependencies:
    """An office with the history in memory and made-up prices."""
    plain = AuditDependencies(
        jobs=jobs,
        metrics=metrics or SaidMetrics(),
        history=SqliteHistory(),
        markets=OneMarket(),
        policy=Policy(),
        ruleset=Ruleset(catalogue.load(), "test"),
        fingerprint_key=lambda: b"key",
    )
    return replace(plain, **changes)


def ended(name: str, kind: JobKind = JobKind.TRAINING, **detail: Any) -> JobEnded:
    """The event of a job, read as from the queue."""
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.row.arn_word}/{name}"
    body = {
        "source": "aws.sagemaker",
        "detail-type": kind.row.detail_type,
        "account": ACCOUNT,
        "time": "2026-05-20T11:00:02Z",
        "detail": {
            f"{kind.row.prefix}JobName": name,
            f"{kind.row.prefix}JobArn": arn,
            f"{kind.row.prefix}JobStatus": "Completed",
            "CreationTime": 1779271080000,
            **detail,
        },
    }
    return job_ended(json.dumps(body), accounts={ACCOUNT}, regions={REGION})


class House:
    """Jobs as SageMaker says them, and what becomes of their events in a history.

    `answers` by name, or those of the one job in their order.
    """

    def __init__(
        self, answers: Mapping[str, Any] | list[Any], metrics: Any = None, **changes: Any
    ) -> None:
        named = answers if isinstance(answers, Mapping) else {NAME: answers}
        self.jobs = SaidJobs(
            {name: list(said) if isinstance(said, list) else [said] for name, said in named.items()}
        )
        self.metrics = metrics or SaidMetrics()
        self.of = dependencies(self.jobs, self.metrics, **changes)
        self.reaudits = 0

    def event(
        self,
        at: datetime,
        name: str = NAME,
        kind: JobKind = JobKind.TRAINING,
        *,
        caller: Caller = Caller.DELIVERY,
        waited: Mapping[Any, int] | None = None,
        **detail: Any,
    ) -> Outcome:
        """One delivery of a job's event, after so many waits."""
        event = ended(name, kind, **detail)
        result = audit_finished_job(event, self.of, now=at, caller=caller, waited=waited or {})
        self.reaudits += isinstance(result, Audited) and result.reaudited
        return result

    def audited(self, at: datetime, name: str = NAME, **how: Any) -> Audited:
        """A delivery that ends in a record."""
        result = self.event(at, name, **how)
        assert isinstance(result, Audited), result
        return result

    def sweeps(self, since: datetime, *, days: int = 40) -> int:
        """Everything is audited again when it is due; how often that was."""
        before, now = self.reaudits, since
        while now < since + timedelta(days=days) and (heads := due(self.of.history, FAR)):
            late = min(head.due_at or now for head in heads)
            now = max(now, late) + timedelta(minutes=15)
            for head in due(self.of.history, now):
                created = int(head.key.created_at.timestamp() * 1000)
                self.event(now, head.job, JobKind(head.kind), CreationTime=created)
        return self.reaudits - before

    @property
    def history(self) -> Any:
        """Where the audits are."""
        return self.of.history

    @property
    def head(self) -> AuditSummary:
        """Of the one job's run."""
        head = self.of.history.head(KEY)
        assert head is not None
        return head

    def is_open(self) -> bool:
        """Whether it is audited again."""
        return not self.head.settled

    @property
    def document(self) -> AuditDocument:
        """Its newest audit."""
        document = self.of.history.audit(KEY)
        assert document is not None
        return document
