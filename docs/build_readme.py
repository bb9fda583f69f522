"""Writes the ranking in README.md: `make docs`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RECORDINGS = ROOT / "local" / "recordings"
_ITS_COMMAND = "`sageaudit scan --recordings local/recordings --history demo.db`"
_THIRD = "3."
"""The row of the third family."""


def with_ranking(readme: str) -> str:
    """The README with the beginning of the ranking that a scan of the demo's jobs prints."""
    before, _, rest = readme.partition(_ITS_COMMAND)
    prose, _, after = rest.split("```\n", 2)
    return f"{before}{_ITS_COMMAND}{prose}```\n{ranking()}```\n{after}"


def ranking() -> str:
    """What `sageaudit scan` prints of the demo's jobs, as far as the fixes of two families."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["scan", "--recordings", str(RECORDINGS), "--history", str(Path(folder, "demo.db"))]
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", "from sageaudit.cli.main import main; main()", *words],
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "XDG_DATA_HOME": folder},
            capture_output=True, check=True, text=True,
        )  # fmt: skip
    lines = (line.rstrip() for line in done.stdout.splitlines())
    return "".join(f"{line}\n" for line in takewhile(lambda line: line[:2] != _THIRD, lines))


if __name__ == "__main__":
    text = with_ranking(README.read_text(encoding="utf-8"))
    README.write_text(text, encoding="utf-8")
