"""The market as packaged: instance types and dated prices that ship with the project.

Provenance stands inside each data file. A region or type that is absent has no known price.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from sageaudit.domain.market import Component, InstanceType, Market, Rate

_PROCESSING_DISCOUNT = Decimal("1.4")
"""Training volumes cost EBS gp2 x 1.4, Processing volumes the plain gp2 price (bill of 2023-12)."""


@dataclass(frozen=True, slots=True)
class PackagedPrices:
    """Implements Prices over the packaged tables."""

    hourly_table: Mapping[str, Any]
    storage_table: Mapping[str, Any]
    usage_table: Mapping[str, Any]

    @property
    def version(self) -> str:
        """The date of the hourly table."""
        return f"packaged {self.hourly_table['provenance']['as_of']}"

    def hourly(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """The exception for this component, else the Hosting rate that stands in for it."""
        provenance = self.hourly_table["provenance"]
        usd = self.hourly_table["usd_per_hour"].get(region, {}).get(instance_type)
        note = None
        for row in self.hourly_table["exceptions"]:
            applies = row["region"] == region and (
                row.get("type") == instance_type
                or ("family" in row and instance_type.startswith(f"ml.{row['family']}."))
            )
            if not applies or row.get("component", component.value) != component.value:
                continue
            if "usd" in row:
                return Rate(row["usd"], provenance["as_of"], row["source"], row["note"])
            note = row["note"]
        if usd is None:
            return None
        return Rate(usd, provenance["as_of"], "packaged Price List rates (Hosting)", note)

    def storage(self, region: str, component: Component) -> Rate | None:
        """Training's figure; Processing's own where observed, else Training's divided by 1.4."""
        row = self.storage_table["regions"].get(region)
        if row is None:
            return None
        as_of, source = self.storage_table["provenance"]["as_of"], f"packaged, {row['basis']}"
        if component is not Component.PROCESSING:
            return Rate(row["training"], as_of, source)
        if "processing" in row:
            return Rate(row["processing"], as_of, source)
        derived = row["training"] / _PROCESSING_DISCOUNT
        return Rate(derived, as_of, "packaged, derived: training storage / 1.4")

    def usage_type(self, region: str, component: Component, what: str) -> str | None:
        """Observed prefixes only; batch transform has no storage usage type."""
        prefix = self.usage_table["prefixes"].get(region)
        if prefix is None:
            return None
        return f"{prefix}-{self.usage_table['roles'][component.value]}:{what}"


@cache
def market() -> Market:
    """Types and prices, read once."""
    return Market(
        types={
            name: _type(name, row) for name, row in _read("instance_types.json")["types"].items()
        },
        prices=PackagedPrices(
            hourly_table=_read("hourly_prices.json"),
            storage_table=_read("storage_prices.json"),
            usage_table=_read("usage_types.json"),
        ),
    )


def _read(name: str) -> dict[str, Any]:
    text = resources.files("sageaudit.data").joinpath(name).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return document


def _type(name: str, row: Mapping[str, Any]) -> InstanceType:
    gpu_memory = row.get("gpu_memory_gib")
    return InstanceType(
        name=name,
        family=row["family"],
        category=row["category"],
        vcpu=row["vcpu"],
        memory_gib=Decimal(row["memory_gib"]),
        gpus=row["gpus"],
        gpu_model=row.get("gpu"),
        gpu_memory_gib=None if gpu_memory is None else Decimal(gpu_memory),
        accelerator=row.get("accelerator"),
        ebs_billed=row["ebs_volume_billed"],
        legacy=row["legacy_family"],
    )
