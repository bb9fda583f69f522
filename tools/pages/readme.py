"""Writes the output of commands on the sample jobs into README.md and two pages: `make docs`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from sageaudit.output.text.card import ROW_WIDTH
from tools.pages import DOCS, ROOT, replace_parts

RECORDINGS = ROOT / "local" / "recordings"
COMPOSED = RECORDINGS / "composed-g4dn-12xlarge.json"
"""The one recording that is made up."""
_FIXES = "What to change in "
"""The beginning of the part with the fixes, whose rows begin with the number of the family."""


def pages() -> dict[Path, str]:
    """Returns the new text of README.md, docs/scan.md and docs/messages.md.

    README.md has the shortened result of the real jobs, docs/scan.md the beginning of the ranking
    of all samples, docs/messages.md a message as on a phone.
    """
    ranking, real = _ranking(sorted(RECORDINGS.glob("*.json"))), _ranking(real_recordings())
    headline = [*takewhile(lambda line: not line.startswith("Jobs that ended"), real)]
    fixes = real[next(number for number, line in enumerate(real) if line.startswith(_FIXES)) :]
    first_fix = [*takewhile(lambda line: not line.startswith("2."), fixes)]
    parts = {
        ROOT / "README.md": {"result": _block([*headline, "...", *first_fix, "..."])},
        DOCS / "scan.md": {"ranking": _block(ranking)},
        DOCS / "messages.md": {"message": _block(message())},
    }
    return {
        page: replace_parts(page.read_text("utf-8"), page_parts)
        for page, page_parts in parts.items()
    }


def real_recordings() -> list[Path]:
    """Returns the recordings of jobs that really ran."""
    return [path for path in sorted(RECORDINGS.glob("*.json")) if path != COMPOSED]


def _ranking(recordings: Sequence[Path]) -> list[str]:
    """Returns what a scan of these recordings prints, up to the fix of the second family."""
    with tempfile.TemporaryDirectory() as folder:
        for path in recordings:
            shutil.copy(path, folder)
        scanned = command_output(
            "scan", "--recordings", folder, "--history", f"{folder}/history.db"
        )
    return [*takewhile(lambda line: not line.startswith("3."), scanned)]


def message() -> list[str]:
    """Returns the rows of a message, without the marks of bold text and code."""
    lines = command_output("notify", "--recording", str(COMPOSED))
    return [row for line in lines for row in textwrap.wrap(re.sub("[*`]", "", line), ROW_WIDTH)]


def command_output(*arguments: str) -> list[str]:
    """Returns the lines that a command prints on a terminal of 80 columns."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.run(
            [sys.executable, "-c", "from sageaudit.cli.main import main; main()", *arguments],
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "XDG_DATA_HOME": folder},
            capture_output=True, check=True, text=True,
        )  # fmt: skip
    return [line.rstrip() for line in process.stdout.splitlines()]


def _block(lines: list[str]) -> str:
    return "\n".join(["```", *lines, "```"])


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
