"""One instance type that a run is tried on, and what keeps the run from it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.bill.change import SetType
from sageaudit.domain.prices.market import InstanceType, Rate

_ONE = Decimal(1)


class Constraint(enum.Enum):
    """What keeps a run from another type."""

    VCPU = "vCPU"
    MEMORY = "host memory"
    GPUS = "GPU count"
    GPU_MEMORY = "GPU memory"
    GPU_MODEL = "GPU model"
    ACCELERATOR = "accelerator"
    NOT_RECORDED = "not recorded"
    NOT_OFFERED = "not offered"
    BILL = "no price"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The constraint that binds, and a sentence with its numbers."""

    constraint: Constraint
    reason: str


@dataclass(frozen=True, slots=True)
class Duration:
    """How many times as long the run takes: as counted, and at best; and why."""

    counted: Decimal
    best: Decimal
    because: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One type: refused, or how long the run takes and what it costs. None means unknown."""

    type: InstanceType
    rate: Rate | None
    refused: Refusal | None = None
    takes: Duration | None = None
    usd: Decimal | None = None
    best_usd: Decimal | None = None
    break_even: Decimal | None = None
    """Of how many times as long the cost is today's; None where no range is shown."""

    @property
    def change(self) -> SetType:
        """The change of the job as counted."""
        return SetType(self.type.name, self.takes.counted if self.takes else _ONE)

    @property
    def because(self) -> str:
        """Why it takes as long as counted, and up to what it pays; empty for a refused one."""
        if self.takes is None:
            return ""
        if self.best is None or self.break_even is None:
            return self.takes.because
        even = f"it pays while the run takes at most {self.break_even:.2f} times as long"
        return f"{self.takes.because} Counted at {self.takes.counted:.2f} times as long; {even}."

    @property
    def best(self) -> SetType | None:
        """The other end of the range, where there is one."""
        if self.takes is None or self.takes.best == self.takes.counted:
            return None
        return SetType(self.type.name, self.takes.best)
