"""How much of a run's billed seconds one phase took."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.job import Job

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class PhaseShare:
    """Seconds of all occurrences of a phase, and the billed seconds that they are part of."""

    seconds: Decimal
    billed_s: Decimal

    @property
    def percent(self) -> Decimal:
        """0..100; 0 of nothing."""
        return 100 * self.seconds / self.billed_s if self.billed_s else _ZERO


def phase_share(job: Job, *names: str) -> PhaseShare | None:
    """The share of the phases of these names together; None where the run is not split.

    A job that never started has nothing billed, and nothing in any phase.
    """
    if job.never_started:
        return PhaseShare(_ZERO, _ZERO)
    seconds = billed_s = _ZERO
    for phase in (one for one in job.phases if one.billed):
        if phase.name == "Running" or phase.seconds is None:
            return None
        billed_s += phase.seconds
        seconds += phase.seconds if phase.name in names else _ZERO
    return PhaseShare(seconds, billed_s) if any(one.billed for one in job.phases) else None


def large_share(
    job: Job, *names: str, over_s: float, from_percent: float
) -> PhaseShare | Clear | Unknown:
    """The share of these phases where it is large: Clear under a limit, Unknown without phases."""
    share = phase_share(job, *names)
    if share is None:
        return Unknown("phases_missing", "the answer does not split the run into phases")
    small = share.seconds <= over_s or share.percent < from_percent
    return Clear() if small else share
