"""Writes docs/guidance.md from docs/guidance.toml and the table of guides: `make docs`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from sageaudit.domain.guides import Guide, load
from tools.pages import DOCS

FOLDER = DOCS
PAGE, POINTS = FOLDER / "guidance.md", FOLDER / "guidance.toml"
ANSWERS = ("rules", "guides", "fields", "commands")
"""The keys of a point that name the part of the product which gives it."""
_INTRODUCTION = """\
# Guidance

sageaudit is based on two documents about the cost of training jobs. This page lists each point of
these documents in our words, and the part of sageaudit that covers it. The part is a
[rule](rules/README.md), a [guide](#guides), a key of an audit's JSON, or a command. A test checks
that each part exists and that every point has one.
"""
_GUIDES = """\
## Guides

A guide is advice without dollars: nothing recorded about a job shows what it would save. sageaudit
chooses guides by traits of the job or request, and leaves a guide out if a trait is not known.
Guides are never stored, counted or sent. `--guides` prints them; `--output json` has them only with
that option:

```
sageaudit audit --recording job.json --guides
sageaudit check request.json --guides
sageaudit show my-training-job --guides
```

The page of a job (`sageaudit report JOB`) has them in a collapsed section.
"""


def documents() -> list[dict[str, Any]]:
    """Returns the documents with their points."""
    rows: list[dict[str, Any]] = tomllib.loads(POINTS.read_text(encoding="utf-8"))["documents"]
    return rows


def page() -> str:
    """Returns the whole page."""
    parts = [_INTRODUCTION, *map(_document, documents()), _GUIDES, _table_of_guides(load())]
    return "\n".join(parts)


def _document(document: dict[str, Any]) -> str:
    url = document.get("url")
    title = f"[{document['title']}]({url})" if url else document["title"]
    rows = [f"| {point['says']} | {'; '.join(_answers(point))} |" for point in document["points"]]
    return "\n".join([f"## {title}", "", "| point | where |", "|---|---|", *rows, ""])


def _answers(point: dict[str, Any]) -> Iterator[str]:
    words = {
        "rules": [f"[{name}](rules/{name}.md)" for name in point.get("rules", ())],
        "guides": [f"guide {name}" for name in point.get("guides", ())],
        "fields": [f"`{path}`" for path in point.get("fields", ())],
        "commands": [f"`{command}`" for command in point.get("commands", ())],
    }
    return (", ".join(words[kind]) for kind in ANSWERS if words[kind])


def _table_of_guides(guides: Sequence[Guide]) -> str:
    rows = [
        f"| {guide.name} | {_needs(guide)} | {guide.says} [Source]({guide.source}) |"
        for guide in guides
    ]
    return "\n".join(["| guide | for | says |", "|---|---|---|", *rows, ""])


def _needs(guide: Guide) -> str:
    return "; ".join(
        f"{name.replace('_', ' ')}: {' or '.join(map(_value, values))}"
        for name, values in guide.when.items()
    )


def _value(value: bool | str) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else value.replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
