"""The rates of an instance type, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import product
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Group
from rich.text import Text

from sageaudit.adapters.aws.clients import known_regions
from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.job.kinds import BILLED_KINDS, Component
from sageaudit.domain.money import format_rate
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.prices.market import PriceKind, Prices, Rate
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.money import about_text
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.structs import replace

COMPONENTS = {kind.value: kind.spec.component for kind in BILLED_KINDS}
"""The priced component of each kind of job with instances."""


class TypeRate(Struct, frozen=True):
    """One rate, as --output json prints it."""

    type: str
    region: str
    component: str
    usd_per_hour: Decimal
    as_of: str
    source: str
    note: str | None
    kind: PriceKind

    @property
    def is_estimate(self) -> bool:
        """True if the rate is estimated, not read from a price list."""
        return self.kind == "estimate"


def find_rates(
    instance_type: str, region: str | None = None, component: str | None = None
) -> list[TypeRate]:
    """Returns the known and estimated rates of a type, by default of all regions and components.

    Raises BadUsage for a type or region that does not exist.
    """
    _check_type_and_region(instance_type, region)
    components = [COMPONENTS[component]] if component else list(Component)
    regions = [region] if region else list(packaged.packaged_prices().regions)
    rates = (
        _rate_of_type(
            sources.offline_book(region_name, job_component, None),
            instance_type,
            region_name,
            job_component,
        )
        for job_component, region_name in product(components, regions)
    )
    return [rate for rate in rates if rate is not None]


def no_rate_text(instance_type: str, region: str | None, component: str | None) -> str:
    """Returns the sentence for a type without a rate."""
    kind = f"{component} " if component else ""
    place = f"in {region}" if region else "in any region"
    return f"no {kind}price is known for {instance_type} {place}: it is unknown, not 0"


def rates_document(rates: Sequence[TypeRate]) -> dict[str, Any]:
    """Returns the document of --output json."""
    return {"schema": 1, "rates": [asdict(rate) for rate in rates]}


def rates_table(rates: Sequence[TypeRate]) -> Group:
    """Returns the table of rates, with their sources below."""
    # Components of equal price share a line. The sources are below the table.
    table = plain_table("Region", "USD/hour", "As of", "For")
    components_by_rate: dict[TypeRate, list[str]] = {}
    for rate in rates:
        components_by_rate.setdefault(replace(rate, component=""), []).append(rate.component)
    sources: dict[str, list[str]] = {}
    for rate, components in sorted(components_by_rate.items(), key=lambda pair: pair[0].region):
        table.add_row(
            rate.region,
            about_text(format_rate(rate.usd_per_hour), estimated=rate.is_estimate),
            rate.as_of,
            ", ".join(components),
        )
        source = " · ".join(filter(None, (rate.source, rate.note)))
        sources.setdefault(source, []).append(rate.region)
    if len(sources) == 1:
        return Group(table, *(Text(for_terminal(source), "dim") for source in sources))
    lines = (f"{', '.join(dict.fromkeys(names))}: {source}" for source, names in sources.items())
    return Group(table, *(Text(for_terminal(line), "dim") for line in lines))


def _check_type_and_region(instance_type: str, region: str | None) -> None:
    """Raises BadUsage for a type or region that does not exist."""
    table = packaged.packaged_prices().hourly_table["usd_per_hour"]
    known_types = {
        *packaged.instance_types(),
        *(name for rates in table.values() for name in rates),
    }
    if instance_type not in known_types:
        raise BadUsage(
            f"{instance_type} is not an instance type that SageMaker jobs are known to use"
            f"{did_you_mean(instance_type, known_types)}"
        )
    if region is not None and region not in {*table, *known_regions()}:
        raise BadUsage(f"{region} is not a known AWS region")


def _rate_of_type(
    prices_book: Prices, instance_type: str, region: str, component: Component
) -> TypeRate | None:
    """Returns None if the rate is neither known nor estimated."""
    rate = prices_book.hourly_rate(region, component, instance_type)
    if rate is None:
        return None
    return TypeRate(
        instance_type, region, component.value, rate.usd, rate.as_of or "-", rate.source,
        _note(rate), rate.kind,
    )  # fmt: skip


def _note(rate: Rate) -> str | None:
    is_in_note = rate.unlisted_reason is not None and rate.unlisted_reason in (rate.note or "")
    unlisted_reason = None if is_in_note else rate.unlisted_reason
    return " · ".join(filter(None, (rate.estimate_basis, rate.note, unlisted_reason))) or None
