"""Writes the numbers of README.md that follow from the rules and their stories: `make docs`."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import groupby
from pathlib import Path

from sageaudit.rules import catalogue

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONFUSION = ROOT / "tests" / "golden" / "labelled" / "confusion.txt"
"""Its first word is the number of generated jobs; `make golden` writes it."""
EXPERT_JOBS = CONFUSION.with_name("expert-jobs.txt")
"""Its last line has the dollars found, and the least and most that were wasted."""


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


def ids() -> list[str]:
    """The ids of all rules, in order."""
    return sorted(rule.name.id for rule in catalogue.load())


def _range(ids_of_row: list[str]) -> str:
    """`SA501, SA502`, or `SA101 … SA105`."""
    if len(ids_of_row) <= 2:  # noqa: PLR2004 - two are shown as they are
        return ", ".join(ids_of_row)
    return f"{ids_of_row[0]} … {ids_of_row[-1]}"


if __name__ == "__main__":
    README.write_text(with_numbers(README.read_text(encoding="utf-8")), encoding="utf-8")
