"""The fixes of an audit as text to paste, in one dialect."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from sageaudit.domain.audit.document import AuditDocument, stands
from sageaudit.text.fixes.dialects import Dialect, fix_text
from sageaudit.text.untrusted import terminal

_COUNTED = ("avoidable", "lost")


def show(document: AuditDocument, console: Console, dialect: Dialect) -> None:
    """Prints each standing finding's fix, at the left margin and unbroken, as it is pasted."""
    fixed = [one for one in document["findings"] if stands(one) and one["fix"]]
    console.print()
    console.print(Text(f"Fixes as {dialect}" if fixed else "No fix to write", "bold"))
    for finding in fixed:
        console.print()
        trial = "" if finding["bucket"] in _COUNTED else ", worth a trial: nothing is counted"
        console.print(Text(terminal(f"{finding['rule']} ({finding['id']}{trial})"), "cyan"))
        for line in fix_text(document["job"]["kind"], finding["fix"], dialect).split("\n"):
            words = line.lstrip(" ")
            margin = " " * (len(line) - len(words))
            console.print(Text(margin + terminal(words)), soft_wrap=True)
