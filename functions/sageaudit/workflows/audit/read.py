"""The run that an event names, as Describe and ListTags answer, or why there is none to audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sageaudit.domain.job.event import DescribedRun, JobEnded, described_run, same_run
from sageaudit.errors import AccessDenied, JobNotFound, Malformed, Throttled, Unavailable
from sageaudit.ports import Jobs


@dataclass(frozen=True, slots=True)
class Described:
    """Describe's answer; `ended` names the run as Describe does, with its ARN and creation time."""

    ended: JobEnded
    answer: Mapping[str, Any]
    modified_at: datetime | None


@dataclass(frozen=True, slots=True)
class Gone:
    """Why the run of `ended` cannot be audited.

    `proven`: the run existed, as SageMaker itself or Describe has said; a person's word is no
    proof. `may_come`: Describe may answer with it later.
    """

    ended: JobEnded
    reason: str
    proven: bool
    may_come: bool = False


@dataclass(frozen=True, slots=True)
class Tags:
    """A job's tags. `notes` say why they could not be read; `late`: they may be read later."""

    tags: Mapping[str, str]
    notes: tuple[str, ...] = ()
    late: bool = False


def describe(ended: JobEnded, jobs: Jobs) -> Described | Gone:
    """Asks Describe for the run that ended.

    Raises RejectedEvent where it answers with another job, or AccessDenied, Throttled, Unavailable.
    """
    told = not ended.replayed
    try:
        answer = jobs.describe(ended.ref)
    except JobNotFound as error:
        return Gone(ended, str(error), proven=told, may_come=told)
    try:
        run = described_run(ended.ref, answer)
    except Malformed as error:
        return Gone(ended, unreadable(error), proven=True, may_come=True)
    if not same_run(ended.created_at, run.created_at):
        return _other_run(ended, run)
    named = replace(
        ended,
        ref=replace(ended.ref, arn=run.arn),
        created_at=run.created_at or ended.created_at,
    )
    return Described(named, answer, run.modified_at)


def _other_run(ended: JobEnded, run: DescribedRun) -> Gone:
    """The name is another run's: of a later one for good, of an earlier one while Describe lags."""
    told, at = not ended.replayed, run.created_at
    later = at is not None and ended.created_at is not None and at > ended.created_at
    which = f"the run that was created at {at:%Y-%m-%d %H:%M:%S} UTC" if at else "another run"
    reason = f"its name now belongs to {which}" if later else f"Describe still answers with {which}"
    return Gone(ended, reason, proven=told, may_come=told and not later)


def unreadable(error: Malformed) -> str:
    """The sentence about an answer with an impossible value."""
    return f"its Describe answer cannot be read: {error}"


def read_tags(ended: JobEnded, jobs: Jobs) -> Tags:
    """The job's tags; the event's, and a sentence that says so, where they cannot be read."""
    try:
        return Tags(jobs.tags(ended.ref))
    except AccessDenied as denied:
        why, late = f"{denied.action} is not permitted", False
    except (Throttled, Unavailable) as error:
        why, late = str(error).rstrip("."), True
    instead = "; the event's tags are used" if ended.tags else ""
    return Tags(ended.tags, (f"tags: {why}{instead}",), late)
