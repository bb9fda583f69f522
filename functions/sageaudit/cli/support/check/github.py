"""What `sageaudit check` found, as annotations of a GitHub Actions workflow.

Source: GitHub's page on workflow commands, and actions/toolkit, which escapes the same characters:
`%`, CR and LF in the message, and `:` and `,` too in properties.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sageaudit.cli.support.check.document import CheckedFile
from sageaudit.cli.support.check.words import fix_lines, saving_words
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text.untrusted import middle, terminal

_LEVELS = {
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "notice",
    Severity.INFO: "notice",
}
_MESSAGE = 3000
_TITLE = 200


def lines(document: CheckedFile) -> Iterator[str]:
    """One command for each finding that counts."""
    for job in document["jobs"]:
        for row in job["findings"]:
            if row["not_counted"] is None:
                yield _annotation(document["file"], job, row)


def _annotation(file: str, job: dict[str, Any], row: dict[str, Any]) -> str:
    level = _LEVELS[Severity(row["severity"])]
    dollars = saving_words(row)
    title = f"{row['rule']}: {job['name'] or job['label']}"
    fixes = [f"Fix: {line}" for line in fix_lines(row)]
    parts = [row["summary"], dollars, row["caution"] or "", *fixes]
    message = "\n".join(middle(terminal(part), _MESSAGE) for part in parts if part)
    properties = [f"file={_property(terminal(file))}"] if file != "standard input" else []
    if row["line"]:
        properties.append(f"line={row['line']}")
    properties.append(f"title={_property(middle(terminal(title), _TITLE))}")
    return f"::{level} {','.join(properties)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
