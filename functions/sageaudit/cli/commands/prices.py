"""`sageaudit prices`: the rates of an instance type, and the packaged table behind them."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import click
from msgspec.structs import asdict

from sageaudit.adapters.aws.clients import known_regions
from sageaudit.adapters.billing import cost_report
from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.local_files import write_text
from sageaudit.adapters.prices import packaged, sources
from sageaudit.cli import options
from sageaudit.cli.messages import echo_json, say
from sageaudit.cli.views.prices import TypeRate, learnt_table, rows_of, table_of
from sageaudit.domain.job.kinds import BILLED_KINDS, Component
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.prices.known_prices import OwnRates, RateBasis, merged, own_rates
from sageaudit.domain.reconcile.learning import Learnt, NotLearnt
from sageaudit.domain.reconcile.learning import learn as lessons
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.text.money import usd
from sageaudit.output.text.words import counted

COMPONENTS = {kind.value: kind.row.component for kind in BILLED_KINDS}
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
    regions = [region] if region else list(packaged.tables().regions)
    rows: list[TypeRate] = []
    for job_component, region_name in product(components, regions):
        book = sources.offline_book(region_name, job_component, None)
        rows += rows_of(book, instance_type, region_name, job_component)
    if not rows:
        kind = f"{component} " if component else ""
        where = f"in {region}" if region else "in any region"
        say(f"no {kind}price is known for {instance_type} {where}: it is unknown, not 0")
        return Exit.NOT_FOUND
    if output == "json":
        echo_json({"schema": 1, "rates": [asdict(row) for row in rows]})
    else:
        console_for().print(table_of(rows))
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
        account = options.account_id(account, "--account")
    known = policy_file.read_own_rates(path) if path.exists() else OwnRates(basis, account)
    if (known.basis, known.account) != (basis, account):
        of = f"of account {known.account}" if known.account else "of all accounts"
        raise BadUsage(f"{path}: has {known.basis} rates {of}: choose another file with --to")
    report = cost_report.paid(reports, account, basis)
    found = lessons(report, basis, ", ".join(path.name for path in reports))
    learnt = [one for one in found if isinstance(one, Learnt)]
    if learnt:
        console_for().print(learnt_table(learnt))
    for one in found:
        if isinstance(one, NotLearnt):
            say(f"no rate for {one.name}: {one.why}")
        elif one.rate.note:
            say(f"{one.rate.what}, {one.rate.component.value}, {one.rate.region}: {one.rate.note}")
    for left in report.left_out:
        say(f"left out, as it is no usage at a price: {left.kind}, {usd(left.usd)}")
    if report.repeats:
        say(f"{report.repeats:,} lines are in two of the files: each is counted once")
    if not learnt:
        say("no rate could be learnt: nothing is written")
        return Exit.NOT_FOUND
    rates = merged(known, own_rates(basis, account, (one.rate for one in learnt)))
    write_text(path, policy_file.own_rates_text(rates))
    say(f"{path}: {counted(len(learnt), 'rate')} written, {len(rates.rows) - len(learnt)} kept")
    say(f"to use them, write own_rates = {json.dumps(str(path))} under [discounts] in policy.toml")
    return Exit.DONE


def _check(instance_type: str, region: str | None) -> None:
    """Raises BadUsage for a type or region that does not exist."""
    table = packaged.tables().hourly_table["usd_per_hour"]
    known = {*packaged.types(), *(name for row in table.values() for name in row)}
    if instance_type not in known:
        raise BadUsage(
            f"{instance_type} is not an instance type that SageMaker jobs are known to use"
            f"{did_you_mean(instance_type, known)}"
        )
    if region is not None and region not in {*table, *known_regions()}:
        raise BadUsage(f"{region} is not a known AWS region")
