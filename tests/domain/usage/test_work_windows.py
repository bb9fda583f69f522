"""The phases in which a job's own code ran."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.job.phases import work_phase
from tests.fakes.jobs import job, phases


def test_the_work_phase_is_the_first_in_which_the_code_ran() -> None:
    """Where no phase is known, it is called Training."""
    assert work_phase(job()) == "Training"
    assert work_phase(job(phases=phases(("Running", 60)))) == "Running"
    assert work_phase(job(phases=phases(("Starting", -60), ("Processing", 60)))) == "Processing"
    assert work_phase(job(phases=(), training_s=Decimal(0))) == "Training"
