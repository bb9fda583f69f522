"""How much of a run's billed seconds and dollars one phase took, and when that is much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from sageaudit.domain.bill.bill import Bill
from sageaudit.rules import api

_ZERO = Decimal(0)
DEAR_FROM = api.Threshold(
    "dear_from_usd", 10, "USD of the phase", "a medium finding, whatever its share", "our choice"
)
DEAR_OVER = api.Threshold(
    "dear_over_s", 600, "seconds", "twice the longest recorded image pull", "recorded jobs"
)
"""A phase that passes both is long on a large cluster, where its share may be small."""


@dataclass(frozen=True, slots=True)
class PhaseShare:
    """Seconds of all occurrences of a phase, and the billed seconds that they are part of.

    `dear_usd`: the phase's dollars, where these are what makes it large.
    """

    seconds: Decimal
    billed_s: Decimal
    dear_usd: Decimal | None = None

    @property
    def percent(self) -> Decimal:
        """0..100; 0 when nothing was billed."""
        return 100 * self.seconds / self.billed_s if self.billed_s else _ZERO

    @property
    def text(self) -> str:
        """For a sentence: `15 min of 1 h billed (25%)`, or `(9%, $41.26)` where dollars count."""
        of_billed = f"{api.duration(self.seconds)} of {api.duration(self.billed_s)} billed"
        dollars = "" if self.dear_usd is None else f", ${self.dear_usd:,.2f}"
        return f"{of_billed} ({self.percent:.0f}%{dollars})"


def range_caution(reason: str) -> str:
    """The caution of a range that begins at nothing: the reason why, without a full stop."""
    return (
        f"{reason}, so the saving is between nothing and the whole phase: nothing of it is counted."
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


def phase_usd(billed: Bill, *names: str) -> Decimal | None:
    """The dollars of the phases of these names together; None when they are not known."""
    parts = [cost.usd for cost in billed.phases if cost.phase.name in names]
    known = [usd for usd in parts if usd is not None]
    return sum(known, _ZERO) if parts and len(known) == len(parts) else None


def large_share(
    case: api.JobCase, *names: str, over_s: float, from_percent: float
) -> PhaseShare | api.Clear | api.Unknown:
    """The share of these phases when it is large: Clear under the limits, Unknown without phases.

    Large by its share (`over_s` and `from_percent`), or by its dollars (DEAR_OVER and DEAR_FROM).
    """
    share = phase_share(case.job, *names)
    if share is None:
        return api.PHASES_MISSING
    if share.seconds > over_s and share.percent >= from_percent:
        return share
    usd = phase_usd(case.bill, *names)
    dear = usd is not None and usd >= case.limit(DEAR_FROM)
    if dear and share.seconds > case.limit(DEAR_OVER):
        return replace(share, dear_usd=usd)
    return api.Clear()
