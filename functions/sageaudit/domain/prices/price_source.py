"""A source of prices: what it knows of a type or a volume, or why it knows nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_history import KnownRate


@dataclass(frozen=True, slots=True)
class Quote:
    """The rates that a source knows, with their days. Without any, `why` may say the reason."""

    rates: tuple[KnownRate, ...] = ()
    why: str | None = None


class KnownPrices(Protocol):
    """What a source knows, already read: these methods ask nobody."""

    @property
    def name(self) -> str:
        """How a note names the source."""

    @property
    def version(self) -> str | None:
        """Source and date, for the audit's record; None when nothing was read."""

    def hourly(self, region: str, component: Component, instance_type: str) -> Quote:
        """USD per instance-hour, on demand."""

    def storage(self, region: str, component: Component) -> Quote:
        """USD per GB-month of ML storage."""

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """The usage type as bills print it; None where it is not known."""


class PriceSource(Protocol):
    """Where prices come from: a table, a file, an API."""

    def read(self, region: str | None, component: Component) -> KnownPrices:
        """What is known for jobs of a region and component. Never raises: the quotes say why."""
