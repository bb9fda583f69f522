"""`sageaudit prices`: the rates of an instance type, and the packaged table behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sageaudit.adapters.aws.clients import known_regions
from sageaudit.adapters.billing import cost_report
from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.local_files import write_text
from sageaudit.adapters.prices import packaged, sources
from sageaudit.cli import options
from sageaudit.cli.messages import print_json, print_message
from sageaudit.domain.job.kinds import BILLED_KINDS, Component
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.prices.known_prices import (
    OwnRates,
    RateBasis,
    group_own_rates,
    merge_own_rates,
)
from sageaudit.domain.prices.market import PriceKind, Prices, Rate
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.domain.reconcile.learning import DerivedRate, UsageWithoutRate
from sageaudit.domain.reconcile.learning import derive_rates as lessons
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit
from sageaudit.output.terminal.layout import make_console, plain_table, signed_percent
from sageaudit.output.text.money import about_text, format_usd
from sageaudit.output.text.money import format_rate as shown_rate
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

COMPONENTS = {kind.value: kind.spec.component for kind in BILLED_KINDS}
_EPILOG = """\b
Examples:
  sageaudit prices ml.g5.2xlarge
  sageaudit prices ml.g5.2xlarge --region eu-west-1
  sageaudit prices learn --cur report.csv.gz"""
_SHOW_EPILOG = """\b
Examples:
  sageaudit prices ml.g5.2xlarge --component training
  sageaudit prices ml.p4d.24xlarge --region us-east-1"""
_LEARN_EPILOG = """\b
Examples:
  sageaudit prices learn --cur 2026-10-1.csv.gz --cur 2026-10-2.csv.gz
  sageaudit prices learn --cur focus.parquet --amortised --to amortised-rates.json"""


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


@click.group(cls=options.DefaultGroup, epilog=_EPILOG)
def prices() -> None:
    """Shows what an instance type costs by the hour: `prices TYPE`."""


@prices.command(epilog=_SHOW_EPILOG)
@click.argument("instance_type", metavar="TYPE")
@click.option("--region", help="AWS region; by default every region with a price.")
@click.option(
    "--component", type=click.Choice(list(COMPONENTS)), help="Price for one kind of job only."
)
@options.OUTPUT
def show(instance_type: str, region: str | None, component: str | None, output: str) -> int:
    """Shows the rates of a type, with their date and source.

    Of the tables of the package; no AWS account is needed. Where no rate is known, it may be
    estimated from EC2's: "about", and kind "estimate" in the JSON.
    """
    _check(instance_type, region)
    components = [COMPONENTS[component]] if component else list(Component)
    regions = [region] if region else list(packaged.packaged_prices().regions)
    rows: list[TypeRate] = []
    for job_component, region_name in product(components, regions):
        book = sources.offline_book(region_name, job_component, None)
        rows += _rows_of(book, instance_type, region_name, job_component)
    if not rows:
        kind = f"{component} " if component else ""
        where = f"in {region}" if region else "in any region"
        print_message(f"no {kind}price is known for {instance_type} {where}: it is unknown, not 0")
        return Exit.NOT_FOUND
    if output == "json":
        print_json({"schema": 1, "rates": [asdict(row) for row in rows]})
    else:
        make_console().print(_table_of(rows))
    return Exit.DONE


@prices.command(epilog=_LEARN_EPILOG)
@click.option(
    "--cur", "reports", multiple=True, required=True, type=click.Path(path_type=Path),
    help="Cost and usage report (legacy or CUR 2.0) or FOCUS export: CSV, CSV.gz or Parquet, or a"
    " folder with them. May be repeated for the parts of one report.",
)  # fmt: skip
@click.option("--account", help="Learn from this account (12 digits); by default from all.")
@click.option(
    "--amortised", "--amortized", "amortised", is_flag=True,
    help="Count hours under a Savings Plan too, at what the plan costs.",
)  # fmt: skip
@click.option(
    "--to", "path", type=click.Path(path_type=Path, dir_okay=False), default="own-rates.json",
    show_default=True, help="File to add the rates to.",
)  # fmt: skip
def learn(reports: tuple[Path, ...], account: str | None, amortised: bool, path: Path) -> int:
    """Learns what you pay from a cost report, as rates with dates.

    Rates are net of discounts. They are added to a file; rates of other months stay.
    """
    basis = RateBasis.AMORTISED if amortised else RateBasis.NET
    if account is not None:
        account = options.check_account_id(account, "--account")
    known = policy_file.read_own_rates(path) if path.exists() else OwnRates(basis, account)
    if (known.basis, known.account) != (basis, account):
        of = f"of account {known.account}" if known.account else "of all accounts"
        raise BadUsage(f"{path}: has {known.basis} rates {of}: choose another file with --to")
    report = cost_report.read_paid_usage(reports, account, basis)
    found = lessons(report, basis, ", ".join(path.name for path in reports))
    learnt = [one for one in found if isinstance(one, DerivedRate)]
    if learnt:
        make_console().print(_learnt_table(learnt))
    for one in found:
        if isinstance(one, UsageWithoutRate):
            print_message(f"no rate for {one.name}: {one.reason}")
        elif one.rate.note:
            print_message(
                f"{one.rate.what}, {one.rate.component.value}, {one.rate.region}: {one.rate.note}"
            )
    for left in report.excluded:
        print_message(
            f"left out, as it is no usage at a price: {left.kind}, {format_usd(left.usd)}"
        )
    if report.duplicate_lines:
        print_message(
            f"{report.duplicate_lines:,} lines are in two of the files: each is counted once"
        )
    if not learnt:
        print_message("no rate could be learnt: nothing is written")
        return Exit.NOT_FOUND
    rates = merge_own_rates(known, group_own_rates(basis, account, (one.rate for one in learnt)))
    write_text(path, policy_file.own_rates_text(rates))
    print_message(
        f"{path}: {count_text(len(learnt), 'rate')} written, {len(rates.rows) - len(learnt)} kept"
    )
    print_message(
        f"to use them, write own_rates = {json.dumps(str(path))} under [discounts] in policy.toml"
    )
    return Exit.DONE


def _check(instance_type: str, region: str | None) -> None:
    """Raises BadUsage for a type or region that does not exist."""
    table = packaged.packaged_prices().hourly_table["usd_per_hour"]
    known = {*packaged.instance_types(), *(name for row in table.values() for name in row)}
    if instance_type not in known:
        raise BadUsage(
            f"{instance_type} is not an instance type that SageMaker jobs are known to use"
            f"{did_you_mean(instance_type, known)}"
        )
    if region is not None and region not in {*table, *known_regions()}:
        raise BadUsage(f"{region} is not a known AWS region")


def _rows_of(
    book: Prices, instance_type: str, region: str, component: Component
) -> Iterator[TypeRate]:
    """The rate of a type by one kind of job, if it is known or estimated."""
    rate = book.hourly_rate(region, component, instance_type)
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


def _table_of(rows: list[TypeRate]) -> Group:
    """A table with one line for components of equal price; below it, the sources of the prices."""
    table = plain_table("Region", "USD/hour", "As of", "For")
    merged: dict[TypeRate, list[str]] = {}
    for row in rows:
        merged.setdefault(replace(row, component=""), []).append(row.component)
    sources: dict[str, list[str]] = {}
    for row, components in sorted(merged.items(), key=lambda pair: pair[0].region):
        table.add_row(
            row.region,
            about_text(shown_rate(row.usd_per_hour), estimated=row.is_estimate),
            row.as_of,
            ", ".join(components),
        )
        source = " · ".join(filter(None, (row.source, row.note)))
        sources.setdefault(source, []).append(row.region)
    if len(sources) == 1:
        return Group(table, *(Text(for_terminal(source), "dim") for source in sources))
    lines = (f"{', '.join(dict.fromkeys(names))}: {source}" for source, names in sources.items())
    return Group(table, *(Text(for_terminal(line), "dim") for line in lines))


def _learnt_table(learnt: list[DerivedRate]) -> Table:
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
