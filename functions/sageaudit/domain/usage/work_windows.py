"""When the job's own code ran: the other phases wait, copy data or tear down."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sageaudit.domain.job.job import Job, Phase
from sageaudit.domain.job.kinds import BILLED_KINDS

_WORK_PHASES = frozenset({"Running", *(kind.row.prefix for kind in BILLED_KINDS)})


def work_phase(job: Job) -> str:
    """The first phase in which the job's own code ran; "Training" where no phase is known."""
    return next((phase.name for phase in job.phases if is_work(phase)), "Training")


def is_work(phase: Phase) -> bool:
    """Whether the job's own code runs in this phase."""
    return phase.name in _WORK_PHASES


def work_windows(job: Job) -> Iterator[tuple[datetime, datetime]]:
    """Start and end of each period in which the job's own code ran."""
    for phase in job.phases:
        if is_work(phase) and phase.started_at is not None and phase.seconds:
            yield phase.started_at, phase.started_at + timedelta(seconds=float(phase.seconds))
