"""The instance types and dated prices that are packaged with sageaudit.

Each data file names its sources. An absent region or type has no known price.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import cache, cached_property
from importlib import resources
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.job.ref import region_partition
from sageaudit.domain.prices.known_prices import DatedRate, Quote
from sageaudit.domain.prices.market import GpuPeaks, GpuRatio, InstanceType, Precision, Rate
from sageaudit.domain.prices.price_list import ROLES, STORAGE

HOURLY_TABLE = "hourly_prices.json"
STORAGE_TABLE = "storage_prices.json"
_TRAINING_STORAGE_FACTOR = Decimal("1.4")
"""Training's price of volumes divided by the price of EBS gp2.

Processing volumes cost the price of gp2 itself (bill of 2023-12).
"""


class PackagedPrices(Struct, frozen=True, dict=True):
    """Implements PriceSource and SourcePrices with the packaged tables, which have all regions."""

    hourly_table: Mapping[str, Any]
    storage_table: Mapping[str, Any]
    usage_table: Mapping[str, Any]
    name: str = "packaged"
    """The source's name in notes."""

    @cached_property
    def _quotes(self) -> dict[tuple[str, Component, str], Quote]:
        # A cache, since jobs of many days need the same quotes.
        return {}

    def read(self, region: str | None, component: Component) -> PackagedPrices:
        """Returns itself, since the tables cover every region."""
        del region, component
        return self

    @property
    def version(self) -> str:
        """The source's name and the date of the hourly table."""
        return f"{self.name} {self.as_of}"

    @property
    def as_of(self) -> str:
        """The date of the hourly table."""
        return str(self.hourly_table["provenance"]["as_of"])

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions with at least one hourly price."""
        return tuple(sorted(self.hourly_table["usd_per_hour"]))

    def quote(self, region: str, component: Component, product: str) -> Quote:
        """Returns every known price, the current one last."""
        key = region, component, product
        if key not in self._quotes:
            read_rate = self._hourly if product != STORAGE else self._storage
            quote, reason = read_rate(*key), self._partition_reason(region)
            self._quotes[key] = quote if quote.rates else Quote(absence_reason=reason)
        return self._quotes[key]

    def _partition_reason(self, region: str) -> str | None:
        # Prices of another partition differ, and may be in another currency.
        partition = region_partition(region)
        if any(region_partition(known_region) == partition for known_region in self.regions):
            return None
        return f"the packaged prices have no region of {partition}"

    def _hourly(self, region: str, component: Component, instance_type: str) -> Quote:
        past_rates = (
            DatedRate.from_observation(
                Decimal(row["usd"]), row["seen"], row["source"], row.get("note")
            )
            for row in self.hourly_table["history"]
            if (row["region"], row["type"]) == (region, instance_type)
            and row.get("component", component.value) == component.value
        )
        current_rate = self.current_rate(region, component, instance_type)
        return Quote((*past_rates,) if current_rate is None else (*past_rates, current_rate))

    def current_rate(
        self, region: str, component: Component, instance_type: str
    ) -> DatedRate | None:
        """Returns a type's current hourly price for a component; None if it is not known."""
        listed_rate = self.hourly_table["usd_per_hour"].get(region, {}).get(instance_type)
        component_name = self.hourly_table["provenance"]["component"]
        source = f"packaged from the AWS Price List: {component_name}'s rate, used for all jobs"
        if isinstance(listed_rate, Mapping):
            component_rate = listed_rate.get(component.value)
            return (
                None
                if component_rate is None
                else DatedRate.from_observation(Decimal(component_rate), self.as_of, source)
            )
        note = None
        for row in self._exceptions(region, component, instance_type):
            if "usd" in row:
                usd = Decimal(row["usd"])
                return DatedRate.from_observation(usd, self.as_of, row["source"], row["note"])
            note = row["note"]
        return (
            None
            if listed_rate is None
            else DatedRate.from_observation(Decimal(listed_rate), self.as_of, source, note)
        )

    def _exceptions(
        self, region: str, component: Component, instance_type: str
    ) -> Iterator[Mapping[str, Any]]:
        # Exceptions are reasons to doubt a price, until a later read of the price list confirms it.
        for row in self.hourly_table["exceptions"]:
            family = f"ml.{row['family']}." if "family" in row else None
            is_named = row.get("type") == instance_type or (
                family is not None and instance_type.startswith(family)
            )
            is_component = row.get("component", component.value) == component.value
            if row["region"] == region and is_named and is_component and "settled" not in row:
                yield row

    def _storage(self, region: str, component: Component, _: str) -> Quote:
        # A Processing price that is not known is Training's price / 1.4.
        row = self.storage_table["regions"].get(region)
        if row is None:
            return Quote()
        usd, source = row["training"], f"{self.name}, {row['basis']}"
        if component is Component.PROCESSING and "processing" in row:
            usd = row["processing"]
        elif component is Component.PROCESSING:
            usd = row["training"] / _TRAINING_STORAGE_FACTOR
            source = f"{self.name}, derived: training storage / 1.4"
        as_of = row.get("as_of", self.storage_table["provenance"]["as_of"])
        # No earlier price is known, so this one applies to every day.
        return Quote((DatedRate(Rate(usd, as_of, source), date.min, date.max),))

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        """Returns the usage type as bills print it; None for an unknown region prefix."""
        prefix = self.usage_table["prefixes"].get(region)
        return None if prefix is None else f"{prefix}-{ROLES[component]}:{product}"


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Returns the catalogue of instance types, by name."""
    rows = _read("instance_types.json")["types"]
    return {name: _type(name, row) for name, row in rows.items()}


@cache
def packaged_prices() -> PackagedPrices:
    """Returns the packaged price tables."""
    return PackagedPrices(_read(HOURLY_TABLE), _read(STORAGE_TABLE), _read("usage_types.json"))


def _exact_or_none(amount: Decimal | int | None) -> Decimal | None:
    return None if amount is None else Decimal(amount)


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
        is_ebs_billed=row["ebs_volume_billed"],
        is_legacy=row["legacy_family"],
        gpu_peaks=None if gpu_memory is None else _peaks().get((row["gpu"], Decimal(gpu_memory))),
        gpu_ratios=_ratios().get(row.get("gpu", ""), ()),
        kinds=frozenset(JobKind(kind) for kind in row["kinds"]),
        efa=row.get("efa"),
        network_gbps=_exact_or_none(row.get("network_gbps")),
        successors=tuple(row["successors"]),
        local_gb=row.get("local_nvme_gb"),
    )


@cache
def _throughput() -> Mapping[str, Any]:
    return _read("gpu_throughput.json")


@cache
def _peaks() -> Mapping[tuple[str, Decimal], GpuPeaks]:
    """Returns known peak performance, by GPU model and memory in GiB."""
    return {
        (row["gpu"], Decimal(row["gpu_memory_gib"])): GpuPeaks(
            fp32_tflops=_exact_or_none(row["fp32_tflops"]),
            tf32_tflops=_exact_or_none(row["tf32_tflops"]),
            fp16_tflops=_exact_or_none(row["fp16_tflops"]),
            memory_gb_s=_exact_or_none(row["memory_gb_s"]),
            compute_capability=Decimal(row["compute_capability"]),
            source=row["source"],
        )
        for row in _throughput()["peaks"]
    }


def gpu_ratios() -> tuple[GpuRatio, ...]:
    """Returns every packaged performance ratio between two GPU models."""
    return tuple(
        GpuRatio(
            fast=row["fast"],
            slow=row["slow"],
            precision=Precision(row["precision"]),
            times_low=Decimal(row["times_low"]),
            times_high=Decimal(row["times_high"]),
            works=row["works"],
            via=row.get("via"),
            stand_ins=tuple(row["stand_ins"]),
        )
        for row in _throughput()["ratios"]
    )


@cache
def _ratios() -> Mapping[str, tuple[GpuRatio, ...]]:
    rows = gpu_ratios()
    models = {model for row in rows for model in (row.fast, row.slow)}
    return {model: tuple(row for row in rows if model in (row.fast, row.slow)) for model in models}
