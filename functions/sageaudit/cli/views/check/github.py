"""The output of `sageaudit check` as annotations of GitHub Actions."""

from __future__ import annotations

from typing import Any

from sageaudit.adapters.files.text_file import STDIN, display_name
from sageaudit.cli.views.check.lines import finding_lines
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.workflows.check.comparison import FileCheck, counted_findings

_LEVELS = {"high": "error", "medium": "warning", "low": "notice", "info": "notice"}
_MAX_MESSAGE_LENGTH = 3000
_MAX_TITLE_LENGTH = 200


def github_annotations(file_check: FileCheck) -> str:
    """Returns a GitHub Actions workflow command for each finding that counts, or for the error.

    Source: GitHub's page on workflow commands, and actions/toolkit, which escapes the same
    characters: `%`, CR and LF in the message, and `:` and `,` too in properties.
    """
    if file_check.error is not None:
        properties = {"file": file_check.name, "title": "Not checked"}
        return _command("error", properties, for_terminal(file_check.error))
    return "\n".join(
        _annotation(file_check.name, job["name"] or job["label"], row)
        for job in (file_check.checked["jobs"] if file_check.checked else ())
        for row in counted_findings(job)
    )


def _annotation(file: str, job: str, row: dict[str, Any]) -> str:
    title, *details = finding_lines(row)
    message = "\n".join(
        cut_middle(for_terminal(f"{line.prefix}{line.text}"), _MAX_MESSAGE_LENGTH)
        for line in details
    )
    properties = {
        "file": file,
        "line": str(row["line"] or ""),
        "title": cut_middle(f"{title.text}: {job}", _MAX_TITLE_LENGTH),
    }
    return _command(_LEVELS[row["severity"]], properties, message)


def _command(level: str, properties: dict[str, str], message: str) -> str:
    if properties["file"] == display_name(STDIN):
        properties = properties | {"file": ""}
    properties_text = ",".join(
        f"{name}={_escape_message(for_terminal(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
        if value
    )
    return f"::{level} {properties_text}::{_escape_message(message)}"


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
