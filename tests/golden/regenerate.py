"""What the golden files hold. `python -m tests.golden.regenerate` rewrites them: see the diff."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from sageaudit.cli.views.render import render
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.text import plain, slack
from tests.fakes import documents
from tests.labelled import confusion, expert_jobs

HERE = Path(__file__).parent
_TOLD = {
    "two-findings": documents.document,
    "failed-hostile": documents.lost_document,
    "perhaps-lost": documents.perhaps_lost_document,
    "tuning-rollup": documents.rollup_document,
    "partly-judged": documents.partly_judged_document,
    "estimated": documents.estimated_document,
}
_SHOWN = {
    **_TOLD,
    "idle-capacity": documents.idle_document,
    "unauditable": documents.unauditable_document,
    "not-judged": documents.not_judged_document,
    "still-running": documents.running_document,
}
_WIDTHS = (60, 80, 120)


def goldens() -> dict[str, Callable[[], str]]:
    """Each golden file's path below this folder and how its text is made."""
    files: dict[str, Callable[[], str]] = {}
    for name, make in _TOLD.items():
        files[f"slack/{name}.json"] = lambda make=make: _slack(make())  # type: ignore[misc]
        files[f"sns/{name}.txt"] = lambda make=make: _sns(make())  # type: ignore[misc]
    for name, make in _SHOWN.items():
        for width in _WIDTHS:
            files[f"terminal/{name}-{width}.txt"] = (
                lambda make=make, width=width: on_terminal(make(), width)  # type: ignore[misc]
            )
    files["labelled/confusion.txt"] = confusion.table
    files["labelled/expert-jobs.txt"] = expert_jobs.table
    return files


def on_terminal(document: AuditDocument, width: int) -> str:
    """The audit as a file or pipe gets it: no colour; the padding at line ends is left out."""
    out = io.StringIO()
    render(document, Console(file=out, width=width))
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _slack(document: AuditDocument) -> str:
    payload = slack.message(document, owner_ids={"anna": "U0123ABC"})
    return json.dumps(payload, indent=1, ensure_ascii=False) + "\n"


def _sns(document: AuditDocument) -> str:
    notice = plain.message(document)
    attributes = json.dumps(notice["attributes"], indent=1, ensure_ascii=False)
    return f"Subject: {notice['subject']}\n\n{notice['message']}\n{attributes}\n"


def main() -> None:
    """Rewrites every golden file."""
    for name, make in goldens().items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
