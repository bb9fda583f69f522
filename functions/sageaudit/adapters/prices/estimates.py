"""Estimated rates as packaged: EC2's rates of a region times the families' tested factors.

An estimate stands for a rate that nobody has read: EC2's on-demand rate times the factor of the
instance family. SageMaker's rate over EC2's is one constant for a family, sometimes with another
one for a size: of 2,186 pairs of rates in 37 regions 98.6% lie within 1% of their family's
constant, and it predicted 60 of 60 Training rates that nobody had looked at within 0.5%. A family
without a pair has none.

The last of the sources: it answers for types of which no rate was ever seen. That a type has an
estimate does not say that SageMaker sells it; where a price list is known to lack it, `unlisted`
says so. `python -m tools.ec2_rates` renews the EC2 rates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cache, cached_property
from importlib import resources
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import KnownRate, Quote
from sageaudit.structs import replace

TABLE = "estimated_prices.json"
"""File name in the package's data."""
_STANDS_FOR_ALL = "Hosting"
"""Its rates stand in for Training, Processing and Transform, as in the packaged table."""


class EstimatedPrices(Struct, frozen=True, dict=True):
    """Implements PriceSource and KnownPrices over a table in the form of the packaged one."""

    table: Mapping[str, Any]
    name: str = "estimate of"
    version: None = None
    """An audit is billed at estimates only where the sources before have no rate."""

    @cached_property
    def _quotes(self) -> dict[tuple[str, Component, str], Quote]:
        """Made once each, as those of the packaged prices."""
        return {}

    def read(self, region: str | None, component: Component) -> EstimatedPrices:
        """These prices: the table is already in memory."""
        del region, component
        return self

    def factor(self, instance_type: str, component: Component) -> Mapping[str, Any] | None:
        """The row of a type's size, else of its family; None if none was tested.

        Tested is one with a pair of rates of this component, or of the one that stands in for it.
        """
        family, _, size = instance_type.partition(".")[2].partition(".")
        rows = {row.get("size"): row for row in self.table["factors"] if row["family"] == family}
        row = rows.get(size) or rows.get(None)
        tested = row and (row["pairs"].get(component.value) or row["pairs"].get(_STANDS_FOR_ALL))
        return row if tested else None

    def quote(self, region: str, component: Component, what: str) -> Quote:
        """An estimate; none where EC2's rate or a tested factor is missing, as for all volumes."""
        asked = region, component, what
        if asked not in self._quotes:
            self._quotes[asked] = self._estimated(*asked)
        return self._quotes[asked]

    def _estimated(self, region: str, component: Component, what: str) -> Quote:
        ec2_usd = self.table["ec2_usd_per_hour"].get(region, {}).get(what)
        row = self.factor(what, component)
        if ec2_usd is None or row is None:
            return Quote()
        provenance, usd, factor = self.table["provenance"], Decimal(ec2_usd), Decimal(row["factor"])
        times, tested = f"x {factor:.2f}", sum(row["pairs"].values())
        compared = "1 pair of rates" if tested == 1 else f"{tested} pairs of rates"
        span = f"{Decimal(row['lowest']):f} to {Decimal(row['highest']):f}"
        source = f"EC2's on-demand rate in {region} {times}: {provenance['source']}"
        note = f"EC2's ${usd:f} {times}; {compared} of its family: {span}"
        how = f"SageMaker's rate for {what} is not known here; estimated from EC2's rate {times}"
        known = KnownRate.seen(usd * factor, provenance["as_of"], source, note)
        why = self._unlisted(region, component, row["family"])
        rate = known.rate._replace(kind="estimate", estimated=how, unlisted=why)
        return Quote((replace(known, rate=rate),))

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """None: an estimate has no product."""
        del region, component, what
        return None

    def _unlisted(self, region: str, component: Component, family: str) -> str | None:
        for row in self.table["unlisted"]:
            named = (row["region"], row["family"]) == (region, family)
            if named and component.value in row["components"]:
                return str(row["why"])
        return None


@cache
def estimates() -> EstimatedPrices:
    """The packaged table, read once per process."""
    text = resources.files("sageaudit.data").joinpath(TABLE).read_text(encoding="utf-8")
    return EstimatedPrices(json.loads(text, parse_float=Decimal))
