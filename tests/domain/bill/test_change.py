"""What a change leaves of a job."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.change import CutPhase
from tests.fakes.jobs import job


def test_a_cut_leaves_the_other_phases_as_they_are() -> None:
    """Only the named phase loses seconds, and the job as many billed ones."""
    before = job()
    after = CutPhase("Downloading", Decimal(600)).apply(before)
    seconds = {phase.name: phase.seconds for phase in before.phases}
    assert {phase.name: phase.seconds for phase in after.phases} == {
        **seconds,
        "Downloading": Decimal(600),
    }
    assert after.billable_s == Decimal(10200)
