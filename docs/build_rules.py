"""Writes docs/rules from the rules' own docstrings and cards: `make docs`."""

from __future__ import annotations

from pathlib import Path

from sageaudit.cli.support.rules import track_record
from sageaudit.cli.support.rules.rule_page import page
from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule

FOLDER = Path(__file__).parent / "rules"


_INDEX = """\
# Rules

Each page has the rule's reasons, its thresholds, and a job where it speaks and one where it is
silent. The last columns are measured on jobs whose truth is known, as shares from 0 to 1: *right*
is the share of its findings that are true (precision), *found* the share of what is true that it
found (recall), by count; *right by money* is the share of what it counted that lies within an
expert's upper bound of a job's waste. Empty: no such job, or no dollars.

| id | rule | says | jobs | right | found | right by money |
|---|---|---|---|--:|--:|--:|
{rows}
"""


def index(rules: tuple[Rule, ...]) -> str:
    """The table of all rules."""
    return _INDEX.format(rows="\n".join(map(_row, rules)))


def _row(rule: Rule) -> str:
    name, record = rule.name.name, track_record.packaged().get(rule.name.name)
    kinds = ", ".join(sorted(kind.value for kind in rule.kinds))
    figures = track_record.figures(record) if record else ("",) * 3
    cells = (rule.name.id, f"[{name}]({name}.md)", rule.title, kinds, *figures)
    return f"| {' | '.join(cells)} |"


def pages() -> dict[str, str]:
    """Every file of docs/rules with its text."""
    rules = catalogue.load()
    return {"README.md": index(rules)} | {f"{r.name.name}.md": page(r) for r in rules}


if __name__ == "__main__":
    for stale in FOLDER.glob("*.md"):
        stale.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
