"""A training job of a tuning job, as input of the tuning rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, estimates
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.job.parts import Objective

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Trial:
    """What one trial cost and reached. None means unknown.

    `objective` is the last value of the tuning job's metric. `claimed_usd` is the part of its bill
    in the trial's own findings (avoidable and lost), `possible_usd` the part in possible ones;
    tuning findings take from the rest. A trial that was not judged has claimed nothing.
    """

    name: str
    status: str
    started_at: datetime | None
    ended_at: datetime | None
    elapsed_s: Decimal | None
    total_usd: Decimal | None
    claimed_usd: Decimal | None
    objective: Decimal | None
    possible_usd: Decimal | None = _ZERO
    estimated: bool = False
    """Its dollars rest on an estimated rate."""


def trial_of(
    document: AuditDocument, final_metrics: Mapping[str, Decimal], objective: Objective | None
) -> Trial:
    """Reads one child's audit; `final_metrics` are the last values that it reported."""
    job = document["job"]
    avoidable, lost = document["avoidable_usd"], document["lost_usd"]
    if document["judged"] == Judged.NO:
        avoidable = _ZERO
    billed = [part["seconds"] for part in document["phases"] if part["billed"]]
    known = [seconds for seconds in billed if seconds is not None]
    return Trial(
        name=job["name"],
        status=job["status"],
        started_at=_moment(job["started_at"]),
        ended_at=_moment(job["ended_at"]),
        elapsed_s=sum(known, _ZERO) if billed and len(known) == len(billed) else None,
        total_usd=document["bill"]["total_usd"],
        claimed_usd=None if avoidable is None or lost is None else avoidable + lost,
        objective=final_metrics.get(objective.metric) if objective else None,
        possible_usd=document["possible_usd"],
        estimated=bool(estimates(document["bill"])),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
