"""The fixes of an audit as text to paste, in one dialect."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import stands
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.fixes.dialects import Dialect, fix_text
from sageaudit.output.text.untrusted import terminal


def show(document: AuditDocument, console: Console, dialect: Dialect) -> None:
    """Prints the fix of each finding in force, at the left margin and without line breaks."""
    fixed = [finding for finding in document["findings"] if stands(finding) and finding["fix"]]
    console.print()
    console.print(Text(f"Fixes as {dialect}" if fixed else "No fix to print", "bold"))
    for finding in fixed:
        console.print()
        trial = (
            "" if Bucket(finding["bucket"]).counted else ", a possible saving: not in the totals"
        )
        console.print(Text(terminal(f"{finding['rule']} ({finding['id']}{trial})"), "cyan"))
        for line in fix_text(document["job"]["kind"], finding["fix"], dialect).split("\n"):
            words = line.lstrip(" ")
            margin = " " * (len(line) - len(words))
            console.print(Text(margin + terminal(words)), soft_wrap=True)
