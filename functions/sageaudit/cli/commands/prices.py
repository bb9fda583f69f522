"""`sageaudit prices`: what the price book says of a type, how complete it is, and a fresh table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import resources
from itertools import product
from pathlib import Path

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from sageaudit.adapters.aws.clients import known_regions
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.prices import packaged, price_table, sources
from sageaudit.cli.exits import Exit, exit_of, first_that_applies
from sageaudit.cli.sources import live_prices
from sageaudit.domain.job.kinds import BILLED_KINDS, Component
from sageaudit.domain.prices.market import Prices
from sageaudit.errors import BadUsage
from sageaudit.text.money import rate as shown_rate
from sageaudit.text.untrusted import terminal

COMPONENTS = {kind.value: kind.row.component for kind in BILLED_KINDS}
_TYPE = re.compile(r"ml\.[a-z0-9-]{1,30}\.[a-z0-9-]{1,30}")
_OUTPUT = click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True,
    help="json: for scripts.",
)  # fmt: skip
_PROFILE = click.option("--profile", help="AWS profile, where AWS is asked.")


@dataclass(frozen=True, slots=True)
class Priced:
    """One rate as it is shown."""

    type: str
    region: str
    component: str
    usd_per_hour: Decimal
    as_of: str
    source: str
    note: str | None
    other_usd: Decimal | None


class _TypeOrCommand(click.Group):
    """`prices TYPE` is `prices show TYPE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_TypeOrCommand)
def prices() -> None:
    """What an instance type costs by the hour: `prices TYPE`, or one of the commands below."""


@prices.command()
@click.argument("instance_type", metavar="TYPE")
@click.option("--region", help="One region; all that have a price by default.")
@click.option("--component", type=click.Choice(list(COMPONENTS)), help="One kind of job.")
@click.option(
    "--on", "on", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE",
    help="The price of a day in the past.",
)  # fmt: skip
@click.option("--live", is_flag=True, help="Ask the Price List API; needs a region.")
@_PROFILE
@_OUTPUT
def show(
    instance_type: str,
    region: str | None,
    component: str | None,
    on: datetime | None,
    live: bool,
    profile: str | None,
    output: str,
) -> int:
    """The rates of a type, with date, source and what else is known.

    Without --live only the packaged table is read, and nobody is asked.
    """
    day = _past_day(on)
    _check(instance_type, region, live=live)
    wanted = [COMPONENTS[component]] if component else list(Component)
    regions = [region] if region else list(packaged.tables().regions)
    found: list[Priced] = []
    codes = [Exit.DONE]
    of = live_prices.clients(profile)
    for one, where in product(wanted, regions):
        book = sources.offline_book(where, one, day)
        if live:
            book, error = live_prices.book(
                instance_type, where, one, of, day=day, now=_now(), say=_say
            )
            if error is not None:
                _say(f"{where}, {one.value}: {error}")
                codes.append(exit_of(error))
        found += _priced(book, instance_type, where, one)
    if not found:
        kind = f"{component} " if component else ""
        place = f"in {region}" if region else "in any region"
        _say(f"no {kind}price is known for {instance_type} {place}: it is unknown, not 0")
        codes.append(Exit.NOT_FOUND)
    elif output == "json":
        click.echo(to_json([asdict(row) for row in found]))
    else:
        Console().print(_rates(found))
    return first_that_applies(codes)


@prices.command()
@_OUTPUT
def coverage(output: str) -> int:
    """How many of the types that a job can ask for have a packaged price, by region."""
    tables, book, types = packaged.tables(), packaged.prices(), _types()
    counts = {
        region: {
            component.value: sum(book.hourly(region, component, name) is not None for name in names)
            for component, names in types.items()
        }
        for region in tables.regions
    }
    totals = {component.value: len(names) for component, names in types.items()}
    if output == "json":
        click.echo(to_json({"as_of": tables.as_of, "types": totals, "priced": counts}))
        return Exit.DONE
    table = _table("Region", *totals)
    for region, row in counts.items():
        table.add_row(region, *(f"{row[name]} of {count}" for name, count in totals.items()))
    Console().print(table)
    _say(f"packaged prices of {tables.as_of}; a type without one is unknown, never 0")
    return Exit.DONE


@prices.command()
@click.option(
    "--to", "path", type=click.Path(path_type=Path, dir_okay=False),
    help="The hourly table to write; storage goes beside it. The packaged ones by default.",
)  # fmt: skip
@_PROFILE
def refresh(path: Path | None, profile: str | None) -> int:
    """Write the packaged tables anew from the Price List API.

    Figures that changed go to its history, with the date on which they were seen. Nothing is
    written when fewer than 80 % of the known prices came back.
    """
    old = packaged.tables()
    of = live_prices.clients(profile)
    listings = list(live_prices.listings(of, sorted({*old.regions, *known_regions()}), _say))
    done = price_table.refreshed(old, listings, _now().date())
    path = path or Path(str(resources.files("sageaudit.data"))) / packaged.HOURLY
    day, beside = _now().date(), path.parent / packaged.STORAGE_TABLE
    storage = price_table.storage_refreshed(old.storage_table, listings, day)
    price_table.write(price_table.text_of(done.table), path)
    price_table.write(price_table.storage_text_of(storage), beside)
    _say(
        f"{path}: {done.came_back:,} of {done.known:,} known prices came back, {done.added:,} are"
        f" new, {done.superseded:,} earlier figures went to the history"
    )
    return Exit.DONE


def _past_day(on: datetime | None) -> date | None:
    if on is not None and on.date() > _now().date():
        raise BadUsage(f"{on.date()} lies in the future: its prices are not known")
    return None if on is None else on.date()


def _check(instance_type: str, region: str | None, *, live: bool) -> None:
    """A word that is no type or region is a slip of the pen, and no unknown price."""
    if live and region is None:
        raise BadUsage("--live asks for one region: give --region")
    table = packaged.tables().hourly_table["usd_per_hour"]
    known = {*packaged.types(), *(name for row in table.values() for name in row)}
    newer = live and _TYPE.fullmatch(instance_type)
    if instance_type not in known and not newer:
        raise BadUsage(
            f"{instance_type} is no instance type that SageMaker's jobs are known to use"
        )
    if region is not None and region not in {*table, *known_regions()}:
        raise BadUsage(f"{region} is no AWS region that is known")


def _types() -> dict[Component, list[str]]:
    """The types of the catalogue that each kind of job may use."""
    kinds = packaged.types().values()
    return {
        kind.row.component: [one.name for one in kinds if kind in one.kinds]
        for kind in BILLED_KINDS
    }


def _priced(
    book: Prices, instance_type: str, region: str, component: Component
) -> Iterator[Priced]:
    rate = book.hourly(region, component, instance_type)
    if rate is not None:
        yield Priced(
            instance_type, region, component.value, rate.usd, rate.as_of or "-", rate.source,
            rate.note, rate.other_usd,
        )  # fmt: skip


def _rates(rows: list[Priced]) -> Group:
    """One line where all components cost the same; below, where the figures come from."""
    table = _table("Region", "USD/hour", "As of", "For", "Other price")
    merged: dict[Priced, list[str]] = {}
    for row in rows:
        merged.setdefault(replace(row, component=""), []).append(row.component)
    sources: dict[str, list[str]] = {}
    for row, components in sorted(merged.items(), key=lambda pair: pair[0].region):
        other = "" if row.other_usd is None else shown_rate(row.other_usd)
        table.add_row(
            row.region, shown_rate(row.usd_per_hour), row.as_of, ", ".join(components), other
        )
        source = " · ".join(filter(None, (row.source, row.note)))
        sources.setdefault(source, []).append(row.region)
    if len(sources) == 1:
        return Group(table, *(Text(terminal(source), "dim") for source in sources))
    named = (f"{', '.join(dict.fromkeys(where))}: {source}" for source, where in sources.items())
    return Group(table, *(Text(terminal(line), "dim") for line in named))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _say(text: str) -> None:
    click.echo(f"sageaudit: {terminal(text)}", err=True)


def _now() -> datetime:
    return datetime.now(UTC)
