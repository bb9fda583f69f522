"""A source of prices: returns the rates of an instance type or volume, or why it has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_history import KnownRate


@dataclass(frozen=True, slots=True)
class Quote:
    """A source's dated rates for one product. Without rates, `why` may give the reason.

    `absent`: the source was read as a whole, and the product is not in it.
    """

    rates: tuple[KnownRate, ...] = ()
    why: str | None = None
    absent: bool = False


class KnownPrices(Protocol):
    """Prices read from a source; these methods make no network calls."""

    @property
    def name(self) -> str:
        """The source's name, as notes print it."""

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
        """The prices of a region and component. Never raises: quotes say why a rate is absent."""
