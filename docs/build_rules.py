"""Writes docs/rules from the rules' own docstrings and cards: `make docs`."""

from __future__ import annotations

from pathlib import Path

from sageaudit.cli.views.rule_page import page
from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule

FOLDER = Path(__file__).parent / "rules"


def index(rules: tuple[Rule, ...]) -> str:
    """The table of all rules."""
    rows = [
        f"| {r.name.id} | [{r.name.name}]({r.name.name}.md) | {r.title} | "
        f"{', '.join(sorted(kind.value for kind in r.kinds))} |"
        for r in rules
    ]
    return "\n".join(["# Rules", "", "| id | rule | says | jobs |", "|---|---|---|---|", *rows, ""])


def pages() -> dict[str, str]:
    """Every file of docs/rules with its text."""
    rules = catalogue.load()
    return {"README.md": index(rules)} | {f"{r.name.name}.md": page(r) for r in rules}


if __name__ == "__main__":
    for stale in FOLDER.glob("*.md"):
        stale.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
