"""Several accounts on the terminal and as JSON: what was audited and found, or why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from sageaudit.cli.support.scan.scan_tally import AccountStatus
from sageaudit.output.terminal.layout import FittedColumn, fitted, heading, line
from sageaudit.output.text.amounts import TITLES, of_sums
from sageaudit.output.text.untrusted import terminal
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
_REASONS = 20
_COLUMNS = (
    FittedColumn("account", "Account", False, 0),
    FittedColumn("name", "Name", False, 8),
    *(FittedColumn(title.lower(), title, True, 0) for title in ("Audited", *TITLES[:3])),
    FittedColumn("status", "Status", False, 0),
)
_DROPPED = ("name", "lost", "avoidable")


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
    """Prints a row for each account, those with the most dollars first, then the reasons."""
    if not statuses:
        return
    heading(console, counted(len(statuses), "account"))
    ranked = sorted(statuses, key=lambda one: (-one.sums.total_usd, one.account))
    rows = [
        (one.account, terminal(one.name or "-"), *_figures(one), WORDS[one.word]) for one in ranked
    ]
    console.print(fitted(_COLUMNS, rows, _DROPPED, console.width))
    reasons = [(status.account, reason) for status in statuses for reason in status.reasons]
    for account, reason in reasons[:_REASONS]:
        line(console, f"{account}: {reason}", "dim")
    if len(reasons) > _REASONS:
        line(console, f"and {len(reasons) - _REASONS} reasons more: see --output json", "dim")


def _figures(status: AccountStatus) -> tuple[str, ...]:
    """Jobs and dollars; a dash where nothing is known of the account."""
    sums = status.sums
    if status.error is not None and not sums.jobs:
        return "-", "-", "-", "-"
    return f"{sums.jobs:,}", *map(str, of_sums(sums)[:3])
