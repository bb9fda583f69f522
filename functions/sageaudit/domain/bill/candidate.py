"""An instance type that a run is tried on, with its cost or the reason for its refusal.

They are tuples, which are made in a third of a dataclass's time: each run makes dozens.
"""

from __future__ import annotations

import enum
from decimal import Decimal
from typing import NamedTuple

from sageaudit.domain.bill.change import SetType
from sageaudit.domain.prices.market import InstanceType, Rate

LONGER = Decimal("1.005")
"""A multiple of the run time below this reads as "1.00 times as long"."""
_FAR = 2
"""A break-even this many times the counted run time needs no words."""


class Constraint(enum.Enum):
    """Why a run does not fit on another type."""

    __hash__ = object.__hash__  # each is one object, and looked up for every refused type

    VCPU = "vCPU"
    MEMORY = "host memory"
    GPUS = "GPU count"
    GPU_MEMORY = "GPU memory"
    GPU_MODEL = "GPU model"
    RUN_TIME = "run time"
    STORAGE = "storage"
    GENERATION = "generation"
    ACCELERATOR = "accelerator"
    NOT_RECORDED = "not recorded"
    NOT_OFFERED = "not offered"
    BILL = "no price"


class TypeRefusal(NamedTuple):
    """The broken constraint, and a sentence with its numbers."""

    constraint: Constraint
    reason: str


class Duration(NamedTuple):
    """Run time as a multiple of today's: as counted and at best, with the reason."""

    counted: Decimal
    best: Decimal
    because: str
    tried: bool = False
    """Measured by the family's own runs there."""
    trial: bool = False
    """A guess: only a run there says how long it takes."""


class Candidate(NamedTuple):
    """One type: a refusal, or the run's duration and cost (USD). None means unknown.

    `would_hold`: no larger than today's type, and refused only because no price of it can be
    compared: it may be the cheaper one.
    """

    type: InstanceType
    rate: Rate | None
    refused: TypeRefusal | None = None
    takes: Duration | None = None
    usd: Decimal | None = None
    best_usd: Decimal | None = None
    break_even: Decimal | None = None
    """The multiple of the run time at which the cost equals today's; None without a range."""
    would_hold: bool = False

    @property
    def change(self) -> SetType:
        """The change of the job as counted."""
        if self.takes is None:
            return SetType(self.type.name)
        return SetType(self.type.name, self.takes.counted, self.takes.trial)

    @property
    def because(self) -> str:
        """Why it takes as long as counted, and up to what it pays; empty for a refused one."""
        if self.takes is None:
            return ""
        sentences = [self.takes.because]
        longer = self.takes.counted >= LONGER
        if longer and self.best is not None and self.break_even is not None:
            even = f"; up to {self.break_even:.2f} times as long it still saves money"
            if self.break_even > _FAR * self.takes.counted:
                even = ""
            sentences.append(f"Counted as {self.takes.counted:.2f} times as long{even}.")
        if self.price_note is not None and not self.by_estimate:
            sentences.append(self.price_note)
        return " ".join(sentences)

    @property
    def by_estimate(self) -> bool:
        """Whether its rate is an estimate: SageMaker may not sell it."""
        return self.rate is not None and self.rate.is_estimate

    @property
    def on_trial(self) -> bool:
        """Whether its saving is possible at most."""
        return self.by_estimate or (self.takes is not None and self.takes.trial)

    @property
    def cost_less(self) -> bool:
        """Whether the family's runs there cost less, though it costs more by the hour."""
        return self.takes is not None and self.takes.tried and self.takes.trial

    @property
    def price_note(self) -> str | None:
        """How its rate was computed, where no rate of the job's day, or none at all, is known."""
        if self.rate is None:
            return None
        ratio = self.rate.note if self.rate.by_ratio else None
        sentences = [text for text in (self.rate.estimated, ratio) if text]
        return " ".join(f"{text[0].upper()}{text[1:]}." for text in sentences) or None

    @property
    def best(self) -> SetType | None:
        """The other end of the range, where there is one."""
        if self.takes is None or self.takes.best == self.takes.counted:
            return None
        return SetType(self.type.name, self.takes.best, self.takes.trial)
