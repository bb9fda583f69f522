"""Whether Describe's answer is about the job that an event names, and about the same run of it.

Whoever may write to the bus may name any job. So nothing of an answer is used before kind, name,
account and region of event and answer agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import kind_of
from sageaudit.domain.job.ref import JOB_NAME, JobRef
from sageaudit.errors import RejectedEvent

SAME_RUN_WITHIN = timedelta(seconds=1)
"""Creation times of one run differ by less: the event rounds to milliseconds, others to seconds."""


@dataclass(frozen=True, slots=True)
class DescribedRun:
    """The run that Describe answers with; times are None where the answer has none."""

    arn: str
    created_at: datetime | None
    modified_at: datetime | None


def described_run(ref: JobRef, answer: Mapping[str, Any]) -> DescribedRun:
    """The run of an answer about `ref`. Raises RejectedEvent where they disagree, or Malformed."""
    prefix = ref.kind.row.prefix
    if (kind := kind_of(answer)) not in {None, ref.kind}:
        raise _disagrees("kind", ref.kind.value, kind.value if kind else "")
    name = fields.text(answer, f"{prefix}JobName")
    if name is not None and name.lower() != ref.name.lower():
        raise _disagrees("name", ref.name, name if JOB_NAME.match(name) else "no job's name")
    arn = fields.text(answer, f"{prefix}JobArn")
    if arn is not None:
        _check_arn(ref, arn)
    return DescribedRun(
        arn or ref.arn, fields.time(answer, "CreationTime"), fields.time(answer, "LastModifiedTime")
    )


def _check_arn(ref: JobRef, arn: str) -> None:
    """Raises RejectedEvent where the ARN of the answer is not that of the job."""
    described = JobRef.from_arn(arn)
    if described is None:
        raise RejectedEvent("answer_disagrees", "the ARN that Describe answers is no job's ARN")
    for what, asked, answered in (
        ("account", ref.account, described.account),
        ("region", ref.region, described.region),
        ("kind", ref.kind.value, described.kind.value),
        ("name", ref.name.lower(), described.name.lower()),
    ):
        if asked != answered:
            raise _disagrees(what, asked, answered)


def _disagrees(what: str, asked: str, answered: str) -> RejectedEvent:
    return RejectedEvent(
        "answer_disagrees",
        f"Describe answers with a job of another {what}: {answered} instead of {asked}",
    )


def same_run(named_at: datetime | None, described_at: datetime | None) -> bool:
    """Whether creation times name one run; one that is not known names whatever is described."""
    if named_at is None or described_at is None:
        return True
    return abs(named_at - described_at) < SAME_RUN_WITHIN
