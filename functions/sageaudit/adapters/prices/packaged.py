"""The market as packaged: instance types and dated prices that ship with the project.

Provenance stands inside each data file. A region or type that is absent has no known price.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.prices.gpu import GpuPeaks
from sageaudit.domain.prices.market import InstanceType, Market, Rate
from sageaudit.domain.prices.price_history import KnownRate, day_of, rate_on

HOURLY = "hourly_prices.json"
STORAGE_TABLE = "storage_prices.json"
"""The hourly table's file among the package's data."""
_PROCESSING_DISCOUNT = Decimal("1.4")
"""Training volumes cost EBS gp2 x 1.4, Processing volumes the plain gp2 price (bill of 2023-12)."""


@dataclass(frozen=True, slots=True)
class PackagedPrices:
    """Implements Prices over the packaged tables, as of a day; without one, as of the tables."""

    hourly_table: Mapping[str, Any]
    storage_table: Mapping[str, Any]
    usage_table: Mapping[str, Any]
    day: date | None = None

    @property
    def version(self) -> str:
        """The date of the hourly table."""
        return f"packaged {self.as_of}"

    @property
    def as_of(self) -> str:
        """The date of the hourly table."""
        return str(self.hourly_table["provenance"]["as_of"])

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions with at least one hourly price."""
        return tuple(sorted(self.hourly_table["usd_per_hour"]))

    def hourly(self, region: str, component: Component, instance_type: str) -> Rate | None:
        """The price that held on the day; marked where two are known and neither is sure."""
        return rate_on(self.known(region, component, instance_type), self.day)

    def known(self, region: str, component: Component, instance_type: str) -> tuple[KnownRate, ...]:
        """Every price that was ever seen: those of the history, then the table's."""
        past = (
            KnownRate.seen(_exact(row["usd"]), row["seen"], row["source"], row.get("note"))
            for row in self.hourly_table["history"]
            if (row["region"], row["type"]) == (region, instance_type)
            and row.get("component", component.value) == component.value
        )
        present = self.present(region, component, instance_type)
        return (*past,) if present is None else (*past, present)

    def present(self, region: str, component: Component, instance_type: str) -> KnownRate | None:
        """The table's price. One figure stands for all components, unless each has its own."""
        listed = self.hourly_table["usd_per_hour"].get(region, {}).get(instance_type)
        source = f"packaged Price List rates ({self.hourly_table['provenance']['component']})"
        if isinstance(listed, Mapping):
            own = listed.get(component.value)
            return None if own is None else KnownRate.seen(_exact(own), self.as_of, source)
        note = None
        for row in self._exceptions(region, component, instance_type):
            if "usd" in row:
                usd = _exact(row["usd"])
                return KnownRate.seen(usd, self.as_of, row["source"], row["note"])
            note = row["note"]
        return None if listed is None else KnownRate.seen(_exact(listed), self.as_of, source, note)

    def _exceptions(
        self, region: str, component: Component, instance_type: str
    ) -> Iterator[Mapping[str, Any]]:
        """What speaks against a figure, while no later read of the price list settled it."""
        for row in self.hourly_table["exceptions"]:
            family = f"ml.{row['family']}." if "family" in row else None
            named = row.get("type") == instance_type or (
                family is not None and instance_type.startswith(family)
            )
            component_agrees = row.get("component", component.value) == component.value
            if row["region"] == region and named and component_agrees and "settled" not in row:
                yield row

    def storage(self, region: str, component: Component) -> Rate | None:
        """Training's figure; Processing's own where observed, else Training's divided by 1.4."""
        row = self.storage_table["regions"].get(region)
        if row is None:
            return None
        as_of = row.get("as_of", self.storage_table["provenance"]["as_of"])
        source = f"packaged, {row['basis']}"
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


class PackagedMarkets:
    """Implements Markets without asking anybody: each job at the packaged prices of its day."""

    def market(self, job: Job, now: datetime) -> Market:
        """The packaged tables, bound to the job's day."""
        return Market(types(), replace(prices(), day=day_of(job, now)))


@cache
def market() -> Market:
    """Types and the tables' own prices, read once."""
    return Market(types(), prices())


@cache
def types() -> Mapping[str, InstanceType]:
    """The catalogue of instance types."""
    rows = _read("instance_types.json")["types"]
    return {name: _type(name, row) for name, row in rows.items()}


@cache
def prices() -> PackagedPrices:
    """The packaged price book, as of its own date."""
    return PackagedPrices(
        hourly_table=_read(HOURLY),
        storage_table=_read(STORAGE_TABLE),
        usage_table=_read("usage_types.json"),
    )


def _exact(amount: Decimal | int) -> Decimal:
    return Decimal(amount)


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
        gpu_peaks=None if gpu_memory is None else _peaks().get((row["gpu"], Decimal(gpu_memory))),
        kinds=frozenset(JobKind(kind) for kind in row["kinds"]),
        efa=row.get("efa"),
        successors=tuple(row["successors"]),
    )


@cache
def _peaks() -> Mapping[tuple[str, Decimal], GpuPeaks]:
    """Throughput by GPU model and memory; a model that is absent has no known throughput."""
    return {
        (row["gpu"], Decimal(row["gpu_memory_gib"])): GpuPeaks(
            fp32_tflops=_exact(row["fp32_tflops"]),
            matmul32_tflops=_exact(row["matmul32_tflops"]),
            matmul16_tflops=_exact(row["matmul16_tflops"]),
            held_share=_exact(row["held_share"]),
            memory_gb_s=_exact(row["memory_gb_s"]),
            link_gb_s=None if row["link_gb_s"] is None else _exact(row["link_gb_s"]),
            source=row["source"],
            as_of=row["as_of"],
        )
        for row in _read("gpu_throughput.json")["models"]
    }
