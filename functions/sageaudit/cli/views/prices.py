"""Rates of an instance type, and rates that were learnt, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.market import PriceKind, Prices, Rate
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.domain.reconcile.learning import Learnt
from sageaudit.output.terminal.layout import plain_table, signed_percent
from sageaudit.output.text.money import about
from sageaudit.output.text.money import rate as shown_rate
from sageaudit.output.text.untrusted import terminal
from sageaudit.structs import replace


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
        """True for a rate that nobody has read."""
        return self.kind == "estimate"


def rows_of(
    book: Prices, instance_type: str, region: str, component: Component
) -> Iterator[TypeRate]:
    """The rate of a type by one kind of job, if it is known or estimated."""
    rate = book.hourly(region, component, instance_type)
    if rate is not None:
        yield TypeRate(
            instance_type, region, component.value, rate.usd, rate.as_of or "-", rate.source,
            _note(rate), rate.kind,
        )  # fmt: skip


def _note(rate: Rate) -> str | None:
    """What to know of the rate: how it was estimated, and why the type may not be sold."""
    noted = rate.unlisted is not None and rate.unlisted in (rate.note or "")
    unlisted = None if noted else rate.unlisted
    return " · ".join(filter(None, (rate.estimated, rate.note, unlisted))) or None


def table_of(rows: list[TypeRate]) -> Group:
    """A table with one line for components of equal price; below it, the sources of the prices."""
    table = plain_table("Region", "USD/hour", "As of", "For")
    merged: dict[TypeRate, list[str]] = {}
    for row in rows:
        merged.setdefault(replace(row, component=""), []).append(row.component)
    sources: dict[str, list[str]] = {}
    for row, components in sorted(merged.items(), key=lambda pair: pair[0].region):
        table.add_row(
            row.region,
            about(shown_rate(row.usd_per_hour), estimated=row.is_estimate),
            row.as_of,
            ", ".join(components),
        )
        source = " · ".join(filter(None, (row.source, row.note)))
        sources.setdefault(source, []).append(row.region)
    if len(sources) == 1:
        return Group(table, *(Text(terminal(source), "dim") for source in sources))
    lines = (f"{', '.join(dict.fromkeys(names))}: {source}" for source, names in sources.items())
    return Group(table, *(Text(terminal(line), "dim") for line in lines))


def learnt_table(learnt: list[Learnt]) -> Table:
    """A line for each rate, beside the list price."""
    numbers, days = ("Own rate", "List", "Diff", "Used"), ("From", "To")
    table = plain_table(
        "Type", "Region", "For", *numbers, *days, right=numbers, unbroken=(*numbers, *days)
    )
    for one in learnt:
        rate, listed = one.rate, one.list_usd
        difference = None if listed is None else 100 * (rate.usd - listed) / listed
        unit = "GB-mo" if rate.what == STORAGE else "h"
        table.add_row(
            *(rate.what, rate.region, rate.component.value),
            *(shown_rate(rate.usd), shown_rate(listed), signed_percent(difference)),
            *(f"{rate.quantity:,.2f} {unit}", str(rate.first), str(rate.last)),
        )
    return table
