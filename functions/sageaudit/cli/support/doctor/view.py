"""The checks of `sageaudit doctor`: one line each, with what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from sageaudit.cli.support.doctor.checkup import Check, State
from sageaudit.output.terminal.layout import console_for, plain_table
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import counted

_WORDS = {State.OK: "ok", State.FAILED: "failed", State.NOT_CHECKED: "not checked"}
_STYLES = {State.OK: "green", State.FAILED: "bold red", State.NOT_CHECKED: "yellow"}


def document(checks: Sequence[Check]) -> dict[str, Any]:
    """The checks as JSON; `exit_code` is None for one that did not fail."""
    rows = [
        {
            **{name: value for name, value in asdict(check).items() if name != "code"},
            "exit_code": int(check.code) if check.state is State.FAILED else None,
        }
        for check in checks
    ]
    counts = Counter(check.state for check in checks)
    return {
        "schema": 1,
        "ok": not counts[State.FAILED],
        "counts": {state.value: counts[state] for state in State},
        "checks": rows,
    }


def show(checks: Sequence[Check], *, no_color: bool) -> None:
    """Prints the counts, then the state, the name and what was found, and what to do next."""
    console = console_for(no_color=no_color)
    table = plain_table("", " ", unbroken={""})
    table.show_header = False
    for check in checks:
        found = Text(f"{terminal(check.name)}: {terminal(check.found)}")
        if check.next:
            found.append(f"\n-> {terminal(check.next)}", "dim")
        table.add_row(Text(_WORDS[check.state], _STYLES[check.state]), found)
    counts = Counter(check.state for check in checks)
    parts = [f"{counts[state]} {_WORDS[state]}" for state in State if counts[state]]
    console.print(Text(f"{counted(len(checks), 'check')}: {', '.join(parts)}", "bold"))
    console.print(table)
