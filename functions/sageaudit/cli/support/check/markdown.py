"""What `sageaudit check` found, as Markdown for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sageaudit.cli.support.check.document import CheckedFile
from sageaudit.cli.support.check.words import (
    cost_sentence,
    fix_lines,
    history_sentence,
    saving_words,
    summed_up,
)
from sageaudit.output.text.untrusted import middle, terminal

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-!|<>~@:&])")
_CELL = 600


def text(document: CheckedFile) -> str:
    """One file: a heading, and for each job its cost and a table of its findings."""
    return "\n".join(_lines(document))


def _lines(document: CheckedFile) -> Iterator[str]:
    yield f"### SageMaker cost check: {_escaped(document['file'])}"
    yield ""
    yield f"{_escaped(document['form_said'])}. {_escaped(summed_up(document))}"
    for job in document["jobs"]:
        yield ""
        yield from _job(job)
    for sentence in document["not_checked"]:
        yield ""
        yield f"Not checked: {_escaped(sentence)}"


def _job(job: dict[str, Any]) -> Iterator[str]:
    on = f", {_escaped(job['instances'])}" if job["instances"] else ""
    yield f"**{_escaped(job['name'] or job['label'])}** ({job['kind']}{on})"
    yield ""
    if job["unreadable"]:
        yield f"Only compared with AWS's API: {_escaped(job['unreadable'])}"
    else:
        yield _escaped(cost_sentence(job["cost"], job["kind"]))
        if sentence := history_sentence(job["history"]):
            yield ""
            yield _escaped(sentence)
    rows = [row for row in job["findings"] if row["not_counted"] is None]
    if not rows:
        return
    yield ""
    yield "| severity | rule | line | finding | fix |"
    yield "|---|---|--:|---|---|"
    for row in rows:
        said = " ".join(filter(None, (row["summary"], saving_words(row), row["caution"])))
        fixes = "<br>".join(_code(line) for line in fix_lines(row))
        yield (
            f"| {row['severity']} | {_escaped(row['rule'])} | {row['line'] or ''} "
            f"| {_escaped(said)} | {fixes} |"
        )


def _escaped(part: str) -> str:
    """Text without any markup, mention or link."""
    return _SPECIAL.sub(r"\\\1", middle(terminal(part), _CELL))


def _code(part: str) -> str:
    """Code in a cell of a table: no backtick ends it, no bar ends the cell."""
    return f"`{middle(terminal(part), _CELL).replace('`', chr(0x2CB)).replace('|', chr(0xA6))}`"
