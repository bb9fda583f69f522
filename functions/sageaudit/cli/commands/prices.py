"""`sageaudit prices`: the rates of an instance type, and the packaged table behind them."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.table import Table

from sageaudit.adapters.billing import cost_report
from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.local_files import write_text
from sageaudit.cli import options
from sageaudit.cli.completion import complete_types
from sageaudit.cli.messages import print_json, print_message
from sageaudit.cli.views.instance_rates import (
    COMPONENTS,
    find_rates,
    no_rate_text,
    rates_document,
    rates_table,
)
from sageaudit.domain.money import format_rate, format_usd
from sageaudit.domain.prices.known_prices import (
    OwnRates,
    RateBasis,
    group_own_rates,
    merge_own_rates,
)
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.domain.reconcile.learning import DerivedRate, UsageWithoutRate, derive_rates
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit
from sageaudit.output.terminal.layout import make_console, plain_table, signed_percent
from sageaudit.output.text.words import count_text

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
    rates = find_rates(instance_type, region, component)
    if not rates:
        print_message(no_rate_text(instance_type, region, component))
        return Exit.NOT_FOUND
    if output == "json":
        print_json(rates_document(rates))
    else:
        make_console().print(rates_table(rates))
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
