"""Several accounts on the terminal and as JSON: what was audited and found, or why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sageaudit.cli.support.scan.scanned_accounts import AccountStatus
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.amounts import TITLES, of_sums
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import counted
from sageaudit.workflows.scan.run import Result

WORDS = {
    "audited": "audited",
    "partly": "partly",
    "no_jobs": "no jobs",
    "role_refused": "role refused",
    "denied": "denied",
    "no_credentials": "credentials",
    "throttled": "throttled",
    "unavailable": "no answer",
}
_NAME, _REASONS = 12, 20
_NARROW = (0, 1, 0, 0)
_ENDLESS = 1_000
"""Columns in which every table fits."""


def document(statuses: Sequence[AccountStatus]) -> list[dict[str, Any]]:
    """One object for each account; empty where one account was scanned by itself."""
    return [
        {
            "account": status.account,
            "name": status.name,
            "status": status.word,
            "reasons": status.reasons,
            "jobs": {
                **{result.value: status.tally.results[result] for result in Result},
                "left": status.left,
            },
            "total_usd": status.sums.total_usd,
            "avoidable_usd": status.sums.avoidable_usd,
            "lost_usd": status.sums.lost_usd,
            "possible_usd": status.sums.possible_usd,
        }
        for status in statuses
    ]


def show(statuses: Sequence[AccountStatus], console: Console) -> None:
    """Prints a row for each account, those with the most dollars first, then the reasons.

    Names are left out where the terminal is too narrow for them, then the columns move closer.
    """
    if not statuses:
        return
    console.print()
    console.print(Text(counted(len(statuses), "account"), "bold"))
    table = _table(statuses, named=any(status.name for status in statuses))
    endless = console.options.update(width=_ENDLESS)
    if console.measure(table, options=endless).maximum > console.width:
        table = _table(statuses, named=False)
    if console.measure(table, options=endless).maximum > console.width:
        table.padding = _NARROW
    console.print(table)
    _show_reasons(statuses, console)


def _table(statuses: Sequence[AccountStatus], *, named: bool) -> Table:
    money = TITLES[:3]
    columns = ["Account", *(["Name"] if named else []), "Audited", *money, "Status"]
    table = plain_table(*columns, right={"Audited", *money}, unbroken={*columns})
    for status in sorted(statuses, key=lambda one: (-one.sums.total_usd, one.account)):
        name = [middle(terminal(status.name or "-"), _NAME)] if named else []
        table.add_row(status.account, *map(Text, name), *_figures(status), WORDS[status.word])
    return table


def _figures(status: AccountStatus) -> tuple[str, ...]:
    """Jobs and dollars; a dash where nothing is known of the account."""
    sums = status.sums
    if status.error is not None and not sums.jobs:
        return "-", "-", "-", "-"
    return f"{sums.jobs:,}", *map(str, of_sums(sums)[:3])


def _show_reasons(statuses: Sequence[AccountStatus], console: Console) -> None:
    lines = [(status.account, reason) for status in statuses for reason in status.reasons]
    for account, reason in lines[:_REASONS]:
        console.print(Text(f"{account}: {terminal(reason)}", "dim"))
    if len(lines) > _REASONS:
        console.print(Text(f"and {len(lines) - _REASONS} reasons more: see --output json", "dim"))
