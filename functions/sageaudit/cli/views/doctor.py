"""The checks of `sageaudit doctor`, on the terminal and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict
from rich.console import Console
from rich.text import Text

from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import counted
from sageaudit.workflows.doctor.checks import Check, CheckState

_WORDS = {CheckState.OK: "ok", CheckState.FAILED: "failed", CheckState.NOT_CHECKED: "not checked"}
_NAMED = 4
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
    """Prints the counts, then the state, the name and what was found, and what to do next.

    Checks that found the same, as of many accounts, are one row each time: of those that failed,
    each is named.
    """
    table = plain_table("", " ", unbroken={""})
    table.show_header = False
    alike: dict[tuple[CheckState, str, str | None], list[str]] = {}
    for check in checks:
        alike.setdefault((check.state, check.found, check.next), []).append(check.name)
    for (state, what, advice), names in alike.items():
        found = Text(f"{terminal(_names(names, state))}: {terminal(what)}")
        if advice:
            found.append(f"\n-> {terminal(advice)}", "dim")
        table.add_row(Text(_WORDS[state], _STYLES[state]), found)
    counts = Counter(check.state for check in checks)
    parts = [f"{counts[state]} {_WORDS[state]}" for state in CheckState if counts[state]]
    console.print(Text(f"{counted(len(checks), 'check')}: {', '.join(parts)}", "bold"))
    console.print(table)


def _names(names: Sequence[str], state: CheckState) -> str:
    """All of them; of many that did not fail, some."""
    if state is CheckState.FAILED or len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} more"
