"""Writes what README.md says of the rules and their stories, and its ranking: `make docs`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from decimal import Decimal
from itertools import groupby, takewhile
from pathlib import Path

from sageaudit.rules import catalogue

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RECORDINGS = ROOT / "local" / "recordings"
CONFUSION = ROOT / "tests" / "golden" / "labelled" / "confusion.txt"
"""Its first word is the number of generated jobs; `make golden` writes it."""
EXPERT_JOBS = CONFUSION.with_name("expert-jobs.txt")
"""Its last line has the dollars found, and the least and most that were wasted."""
_ITS_COMMAND = "`sageaudit scan --recordings local/recordings --history demo.db`"
_THIRD = "3."
"""The row of the third family."""


def with_numbers(readme: str) -> str:
    """The README with today's number of rules and of generated jobs, and the ids of each row."""
    jobs = CONFUSION.read_text(encoding="utf-8").split()[0]
    readme = re.sub(r"\d+ rules, each one file", f"{len(ids())} rules, each one file", readme)
    readme = re.sub(r"On \d+ generated jobs", f"On {jobs} generated jobs", readme)
    found, least, _, most = EXPERT_JOBS.read_text(encoding="utf-8").split()[-4:]
    dollars = [f"${Decimal(usd):,.0f}" for usd in (least, most, found)]
    counts = "say {} to {}, the audit counts {}".format(*dollars)
    pattern = r"say \$[\d,]+ to \$[\d,]+, the audit counts \$[\d,]*\d"
    readme = re.sub(pattern, lambda _: counts, readme)
    for hundred, group in groupby(ids(), lambda rule_id: rule_id[:3]):
        row = f"| {_range(list(group))} |"
        readme = re.sub(rf"^\| {hundred}\d\d[^|]*\|", row, readme, flags=re.MULTILINE)
    return readme


def with_ranking(readme: str) -> str:
    """The README with the beginning of the ranking that a scan of the demo's jobs prints."""
    before, _, rest = readme.partition(_ITS_COMMAND)
    prose, _, after = rest.split("```\n", 2)
    return f"{before}{_ITS_COMMAND}{prose}```\n{ranking()}```\n{after}"


def ranking() -> str:
    """What `sageaudit scan` prints of the demo's jobs, as far as the fixes of two families."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["scan", "--recordings", str(RECORDINGS), "--history", str(Path(folder, "demo.db"))]
        done = subprocess.run(  # noqa: S603 - our own arguments
            [sys.executable, "-c", "from sageaudit.cli.main import main; main()", *words],
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "XDG_DATA_HOME": folder},
            capture_output=True, check=True, text=True,
        )  # fmt: skip
    lines = (line.rstrip() for line in done.stdout.splitlines())
    return "".join(f"{line}\n" for line in takewhile(lambda line: line[:2] != _THIRD, lines))


def ids() -> list[str]:
    """The ids of all rules, in order."""
    return sorted(rule.name.id for rule in catalogue.load())


def _range(ids_of_row: list[str]) -> str:
    """`SA501, SA502`, or `SA101 … SA105`."""
    if len(ids_of_row) <= 2:  # noqa: PLR2004 - two are shown as they are
        return ", ".join(ids_of_row)
    return f"{ids_of_row[0]} … {ids_of_row[-1]}"


if __name__ == "__main__":
    text = with_ranking(with_numbers(README.read_text(encoding="utf-8")))
    README.write_text(text, encoding="utf-8")
