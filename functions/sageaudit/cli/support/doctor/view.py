"""The checks of `sageaudit doctor`: one line each, with what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from sageaudit.cli.support.doctor.checkup import Check, CheckState
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import counted

_WORDS = {CheckState.OK: "ok", CheckState.FAILED: "failed", CheckState.NOT_CHECKED: "not checked"}
_STYLES = {CheckState.OK: "green", CheckState.FAILED: "bold red", CheckState.NOT_CHECKED: "yellow"}


def document(checks: Sequence[Check]) -> dict[str, Any]:
    """The checks as JSON; `exit_code` is None for one that did not fail."""
    rows = [
        {
            **{name: value for name, value in asdict(check).items() if name != "code"},
            "exit_code": int(check.code) if check.state is CheckState.FAILED else None,
        }
        for check in checks
    ]
    counts = Counter(check.state for check in checks)
    return {
        "schema": 1,
        "ok": not counts[CheckState.FAILED],
        "counts": {state.value: counts[state] for state in CheckState},
        "checks": rows,
    }


def show(checks: Sequence[Check], console: Console) -> None:
    """Prints the counts, then the state, the name and what was found, and what to do next."""
    table = plain_table("", " ", unbroken={""})
    table.show_header = False
    for check in checks:
        found = Text(f"{terminal(check.name)}: {terminal(check.found)}")
        if check.next:
            found.append(f"\n-> {terminal(check.next)}", "dim")
        table.add_row(Text(_WORDS[check.state], _STYLES[check.state]), found)
    counts = Counter(check.state for check in checks)
    parts = [f"{counts[state]} {_WORDS[state]}" for state in CheckState if counts[state]]
    console.print(Text(f"{counted(len(checks), 'check')}: {', '.join(parts)}", "bold"))
    console.print(table)
