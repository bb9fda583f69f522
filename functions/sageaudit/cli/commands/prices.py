"""`sageaudit prices`: the rates of an instance type, and the packaged table behind them."""

from __future__ import annotations

import json
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
from sageaudit.cli.completion import complete_types
from sageaudit.cli.messages import print_json, print_message
from sageaudit.domain.job.kinds import BILLED_KINDS, Component
from sageaudit.domain.money import format_rate, format_usd
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.prices.known_prices import (
    OwnRates,
    RateBasis,
    group_own_rates,
    merge_own_rates,
)
from sageaudit.domain.prices.market import PriceKind, Prices, Rate
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.domain.reconcile.learning import DerivedRate, UsageWithoutRate, derive_rates
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit
from sageaudit.output.terminal.layout import make_console, plain_table, signed_percent
from sageaudit.output.text.money import about_text
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
        """True if the rate is estimated, not read from a price list."""
        return self.kind == "estimate"


@click.group(cls=options.DefaultGroup, epilog=_EPILOG)
def prices() -> None:
    """Shows what an instance type costs per hour: `prices TYPE`."""


@prices.command(epilog=_SHOW_EPILOG)
@click.argument("instance_type", metavar="TYPE", shell_complete=complete_types)
@options.region_option("AWS region; by default every region with a price.")
@click.option(
    "--component", type=click.Choice(list(COMPONENTS)), help="Price for one kind of job only."
)
@options.OUTPUT_OPTION
def show(instance_type: str, region: str | None, component: str | None, output: str) -> int:
    """Shows the rates of a type, with their date and source.

    The rates come with the package; no AWS account is needed. An unknown rate may be estimated from
    EC2's: it is marked "about", and its kind in the JSON is "estimate".
    """
    _check_type_and_region(instance_type, region)
    components = [COMPONENTS[component]] if component else list(Component)
    regions = [region] if region else list(packaged.packaged_prices().regions)
    rates: list[TypeRate] = []
    for job_component, region_name in product(components, regions):
        prices_book = sources.offline_book(region_name, job_component, None)
        rate = _rate_of_type(prices_book, instance_type, region_name, job_component)
        if rate is not None:
            rates.append(rate)
    if not rates:
        kind = f"{component} " if component else ""
        place = f"in {region}" if region else "in any region"
        print_message(f"no {kind}price is known for {instance_type} {place}: it is unknown, not 0")
        return Exit.NOT_FOUND
    if output == "json":
        print_json({"schema": 1, "rates": [asdict(rate) for rate in rates]})
    else:
        make_console().print(_rates_table(rates))
    return Exit.DONE


@prices.command(epilog=_LEARN_EPILOG)
@click.option(
    "--cur", "reports", multiple=True, required=True, type=click.Path(path_type=Path),
    help="Cost and usage report (legacy or CUR 2.0) or FOCUS export: CSV (also in gzip or ZIP) or"
    " Parquet, or a folder with them. May be repeated for the parts of one report.",
)  # fmt: skip
@click.option("--account", help="Learn from this account (12 digits); by default from all.")
@click.option(
    "--amortised", "--amortized", "amortised", is_flag=True,
    help="Also count hours under a Savings Plan, at the plan's cost.",
)  # fmt: skip
@click.option(
    "--to", "path", type=click.Path(path_type=Path, dir_okay=False), default="own-rates.json",
    show_default=True, help="File to add the rates to.",
)  # fmt: skip
def learn(reports: tuple[Path, ...], account: str | None, amortised: bool, path: Path) -> int:
    """Derives the rates that you pay from a cost report, with their dates.

    Rates are net of discounts. They are added to a file, which keeps rates of other months.
    """
    basis = RateBasis.AMORTISED if amortised else RateBasis.NET
    if account is not None:
        account = options.check_account_id(account, "--account")
    old_rates = policy_file.read_own_rates(path) if path.exists() else OwnRates(basis, account)
    if (old_rates.basis, old_rates.account) != (basis, account):
        scope = f"of account {old_rates.account}" if old_rates.account else "of all accounts"
        raise BadUsage(f"{path} has {old_rates.basis} rates {scope}: choose another file with --to")
    report = cost_report.read_paid_usage(reports, account, basis)
    results = derive_rates(report, basis, ", ".join(path.name for path in reports))
    derived = [result for result in results if isinstance(result, DerivedRate)]
    if derived:
        make_console().print(_derived_table(derived))
    for result in results:
        if isinstance(result, UsageWithoutRate):
            print_message(f"no rate for {result.name}: {result.reason}")
        elif result.rate.note:
            rate = result.rate
            print_message(f"{rate.product}, {rate.component.value}, {rate.region}: {rate.note}")
    for excluded in report.excluded:
        print_message(
            f"left out, since it is not priced usage: {excluded.kind}, {format_usd(excluded.usd)}"
        )
    if report.duplicate_lines:
        print_message(
            f"{report.duplicate_lines:,} lines are in two of the files: each is counted once"
        )
    if not derived:
        print_message("no rate could be derived: nothing is written")
        return Exit.NOT_FOUND
    rates = merge_own_rates(
        old_rates, group_own_rates(basis, account, (result.rate for result in derived))
    )
    write_text(path, policy_file.own_rates_text(rates))
    print_message(
        f"{path}: {count_text(len(derived), 'rate')} written, {len(rates.rows) - len(derived)} kept"
    )
    print_message(
        f"to use them, write own_rates = {json.dumps(str(path))} under [discounts] in policy.toml"
    )
    return Exit.DONE


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


def _rates_table(rates: list[TypeRate]) -> Group:
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


def _derived_table(derived: list[DerivedRate]) -> Table:
    number_columns, day_columns = ("Own rate", "List", "Diff", "Used"), ("From", "To")
    table = plain_table(
        "Type",
        "Region",
        "For",
        *number_columns,
        *day_columns,
        right=number_columns,
        unbroken=(*number_columns, *day_columns),
    )
    for result in derived:
        rate, list_usd = result.rate, result.list_usd
        difference = None if list_usd is None else 100 * (rate.usd - list_usd) / list_usd
        unit = "GB-mo" if rate.product == STORAGE else "h"
        table.add_row(
            *(rate.product, rate.region, rate.component.value),
            *(format_rate(rate.usd), format_rate(list_usd), signed_percent(difference)),
            *(f"{rate.quantity:,.2f} {unit}", str(rate.first), str(rate.last)),
        )
    return table
