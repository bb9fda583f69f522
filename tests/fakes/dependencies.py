"""An office for the flow: SageMaker and CloudWatch that say what a test tells them to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.job.event import JobEnded, job_ended
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Missing
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.workflows.audit.attempt import AuditDependencies
from tests.fakes.jobs import ACCOUNT, REGION, flat, market, usage

Answer = Mapping[str, Any] | Exception


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

    def read(self, job: Job, now: datetime) -> Measurements:
        if self.missing is not None:
            return replace(usage(job), missing=dict.fromkeys(usage(job).missing, self.missing))
        return flat(job, self.minutes, hosts=job.instance_count or 1, **self.use)


@dataclass
class SaidBuckets:
    """S3 that knows these regions and counts what it is asked."""

    known: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def regions(self, account: str, region: str, names: Sequence[str]) -> Mapping[str, str]:
        self.asked += names
        return {name: self.known[name] for name in names if name in self.known}


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
        buckets=SaidBuckets(),
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
    return job_ended(json.dumps(body), accounts={ACCOUNT}, region=REGION)
