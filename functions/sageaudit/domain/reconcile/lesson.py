"""What a cost report teaches: its rates, and what of it is in no rate and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.own_rates import OwnRate, RateBasis
from sageaudit.domain.prices.price_list import STORAGE


@dataclass(frozen=True, slots=True)
class Product:
    """What a rate is for: an instance type or ML storage of a component in a region."""

    region: str
    component: Component
    what: str

    @property
    def unit(self) -> str:
        """What its quantity counts: instance-hours or GB-months."""
        return "GB-months" if self.what == STORAGE else "hours"


@dataclass(frozen=True, slots=True)
class Learnt:
    """A rate, its cost, and the public price that the report itself names."""

    rate: OwnRate
    usd: Decimal
    list_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class NotLearnt:
    """A product without a rate on some days; `why` is a sentence without a full stop."""

    product: Product
    first: date
    last: date
    why: str


@dataclass(frozen=True, slots=True)
class Seen:
    """SageMaker usage in no rate, because it is no job's or for the reason `why`."""

    text: str
    area: str
    why: str
    quantity: Decimal
    usd: Decimal


@dataclass(frozen=True, slots=True)
class NoUsage:
    """Lines of one kind that are no usage at a price, with their sum."""

    kind: str
    lines: int
    usd: Decimal


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a report teaches, and what of it is in no rate."""

    basis: RateBasis
    learnt: tuple[Learnt, ...]
    not_learnt: tuple[NotLearnt, ...]
    seen: tuple[Seen, ...]
    left_out: tuple[NoUsage, ...]
    notes: tuple[str, ...]
