"""The seconds that are billed for each instance of a job, and how they are known."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from sageaudit.domain.job.job import Job, Purchase

Basis = Literal["billable_seconds", "estimated_from_times", "upper_bound", "prepaid", "none"]

_ZERO = Decimal(0)


def billed_seconds(job: Job) -> tuple[Decimal | None, Basis]:
    """Wall-clock seconds billed for each instance, and the basis of this figure.

    Of a job that still runs: until `running_until`.
    """
    if job.purchase is Purchase.SERVERLESS:
        return None, "none"
    elapsed_s = job.elapsed_s if job.finished else _seconds_so_far(job)
    if job.purchase is Purchase.TRAINING_PLAN:
        return job.billable_s if job.billable_s is not None else elapsed_s, "prepaid"
    if job.billable_s is not None:
        return job.billable_s, "billable_seconds"
    if elapsed_s is None:
        return None, "none"
    spot = job.purchase is Purchase.SPOT
    return elapsed_s, "upper_bound" if spot else "estimated_from_times"


def _seconds_so_far(job: Job) -> Decimal | None:
    """Billed seconds of a job that still runs; waiting for capacity is not billed."""
    if only_waited(job):
        return _ZERO
    seconds = job.billed_phases_s
    return job.elapsed_s if seconds is None else seconds


def only_waited(job: Job) -> bool:
    """True for a job that still waits for its instances, as its phases show."""
    waited = bool(job.phases) and not any(phase.billed for phase in job.phases)
    return not job.finished and job.started_at is None and waited
