"""Writes what a scan of the sample jobs prints, into README.md and docs/scan.md: `make docs`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import takewhile
from pathlib import Path

from docs.marked_parts import with_parts

ROOT = Path(__file__).parent.parent
RECORDINGS = ROOT / "local" / "recordings"
_FIXES = "What to change in "
"""Begins the part with the fixes; the row of the third family begins with 3."""


def pages() -> dict[Path, str]:
    """README.md with the result in short, and docs/scan.md with the beginning of the ranking."""
    ranking = [*takewhile(lambda line: not line.startswith("3."), printed())]
    headline = [*takewhile(lambda line: not line.startswith("ended "), ranking)]
    fixes = ranking[next(at for at, line in enumerate(ranking) if line.startswith(_FIXES)) :]
    parts = {
        ROOT / "README.md": {"result": _block([*headline, "...", *fixes])},
        ROOT / "docs" / "scan.md": {"ranking": _block(ranking)},
    }
    return {page: with_parts(page.read_text("utf-8"), made) for page, made in parts.items()}


def printed() -> list[str]:
    """The lines that `sageaudit scan` prints of the sample jobs, on a terminal of 80 columns."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["scan", "--recordings", str(RECORDINGS), "--history", str(Path(folder, "demo.db"))]
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", "from sageaudit.cli.main import main; main()", *words],
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "XDG_DATA_HOME": folder},
            capture_output=True, check=True, text=True,
        )  # fmt: skip
    return [line.rstrip() for line in done.stdout.splitlines()]


def _block(lines: list[str]) -> str:
    return "\n".join(["```", *lines, "```"])


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
