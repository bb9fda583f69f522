"""How much of a run's billed seconds one phase took."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.rules import api

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class PhaseShare:
    """Seconds of all occurrences of a phase, and the billed seconds that they are part of."""

    seconds: Decimal
    billed_s: Decimal

    @property
    def percent(self) -> Decimal:
        """0..100; 0 when nothing was billed."""
        return 100 * self.seconds / self.billed_s if self.billed_s else _ZERO

    @property
    def text(self) -> str:
        """For a sentence: `15 min of 1 h billed (25%)`."""
        of_billed = f"{api.duration(self.seconds)} of {api.duration(self.billed_s)} billed"
        return f"{of_billed} ({self.percent:.0f}%)"


def range_caution(reason: str) -> str:
    """The caution of a range that begins at nothing: the reason why, without a full stop."""
    return (
        f"{reason}, so the saving is between nothing and the whole phase; nothing is counted "
        "until a run shows it."
    )


def phase_share(job: api.Job, *names: str) -> PhaseShare | None:
    """The share of the phases of these names together; None when the run is not split.

    A job that never started has nothing billed, and nothing in any phase.
    """
    if job.never_started:
        return PhaseShare(_ZERO, _ZERO)
    billed = [phase for phase in job.phases if phase.billed]
    seconds = billed_s = _ZERO
    for phase in billed:
        if phase.name == "Running" or phase.seconds is None:
            return None
        billed_s += phase.seconds
        seconds += phase.seconds if phase.name in names else _ZERO
    return PhaseShare(seconds, billed_s) if billed else None


def large_share(
    job: api.Job, *names: str, over_s: float, from_percent: float
) -> PhaseShare | api.Clear | api.Unknown:
    """The share of these phases when it is large: Clear under a limit, Unknown without phases."""
    share = phase_share(job, *names)
    if share is None:
        return api.PHASES_MISSING
    small = share.seconds <= over_s or share.percent < from_percent
    return api.Clear() if small else share
