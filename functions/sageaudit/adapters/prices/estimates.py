"""Estimated rates as packaged: EC2's rates of a region times the families' tested factors.

The last of the sources: it answers for types of which no rate was ever seen. That a type has an
estimate does not say that SageMaker sells it; where a price list is known to lack it, `unlisted`
says so. `python -m tools.ec2_rates` renews the EC2 rates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import Factor, Quote, estimated, factor_of

TABLE = "estimated_prices.json"
"""File name in the package's data."""


@dataclass(frozen=True, slots=True)
class EstimatedPrices:
    """Implements PriceSource and KnownPrices over the packaged EC2 rates and factors."""

    table: Mapping[str, Any]
    factors: Mapping[tuple[str, str | None], Factor]

    def read(self, region: str | None, component: Component) -> EstimatedPrices:
        """These prices: the table is already in memory."""
        del region, component
        return self

    @property
    def name(self) -> str:
        """The source's name, as notes print it."""
        return "estimate of"

    @property
    def version(self) -> str | None:
        """None: an audit is billed at estimates only where the sources before have no rate."""
        return None

    def hourly(self, region: str, component: Component, instance_type: str) -> Quote:
        """USD per instance-hour; none where EC2's rate or a tested factor is missing."""
        ec2_usd = self.table["ec2_usd_per_hour"].get(region, {}).get(instance_type)
        factor = factor_of(instance_type, component, self.factors)
        if ec2_usd is None or factor is None:
            return Quote()
        provenance = self.table["provenance"]
        source = f"EC2's on-demand rate in {region} x {factor.factor:.2f}: {provenance['source']}"
        known = estimated(instance_type, Decimal(ec2_usd), factor, provenance["as_of"], source)
        why = next(self._unlisted(region, component, factor), None)
        return Quote((replace(known, rate=replace(known.rate, unlisted=why)),))

    def storage(self, region: str, component: Component) -> Quote:
        """None: no factor was tested on volumes."""
        del region, component
        return Quote()

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """None: an estimate has no product."""
        del region, component, what
        return None

    def _unlisted(self, region: str, component: Component, factor: Factor) -> Iterator[str]:
        for row in self.table["unlisted"]:
            named = (row["region"], row["family"]) == (region, factor.family)
            if named and component.value in row["components"]:
                yield row["why"]


@cache
def estimates() -> EstimatedPrices:
    """The packaged table, read once per process."""
    text = resources.files("sageaudit.data").joinpath(TABLE).read_text(encoding="utf-8")
    return of_table(json.loads(text, parse_float=Decimal))


def of_table(table: Mapping[str, Any]) -> EstimatedPrices:
    """The estimates of a table in the form of the packaged one."""
    factors = [
        Factor(
            family=row["family"],
            size=row.get("size"),
            factor=Decimal(row["factor"]),
            pairs=row["pairs"],
            lowest=Decimal(row["lowest"]),
            highest=Decimal(row["highest"]),
        )
        for row in table["factors"]
    ]
    return EstimatedPrices(table, {(factor.family, factor.size): factor for factor in factors})
