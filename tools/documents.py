"""Writes or compares the documents of every recorded and labelled job.

`python -m tools.documents OUT.json` audits all jobs and writes their documents by name. `python -m
tools.documents BEFORE.json AFTER.json` prints the differences, and exits with 1 if there are any.
It ignores the digest of the ruleset, which changes with any line of a rule.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.domain.audit.document import AuditDocument
from tests.fakes import recorded
from tests.labelled import audits, simulated
from tests.labelled.expert import expert_jobs

MOST_SHOWN = 40
_RULESET = "audit.ruleset"
"""The path in a job's document, and in that of each child of a roll-up."""


def documents() -> Iterator[tuple[str, AuditDocument]]:
    """Yields names and documents: recordings, stories of each day, experts' jobs, simulated
    jobs.
    """
    for recording in recorded.all_recorded_jobs():
        yield f"recorded/{recording.file}", recording.document
    for job in audits.story_jobs():
        yield f"story/{job.name}", job.document
    for expert_job in expert_jobs():
        for number, document in enumerate(audits.expert_documents(expert_job.name)):
            yield f"expert/{expert_job.name}/{number}", document
    for case in simulated.cases():
        for number, document in enumerate(simulated.documents(case)):
            yield f"simulated/{case['name']}/{number}", document


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Yields the plain values inside a value, with their paths. An empty list or object is a value
    too.
    """
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    parts = [(f"{path}.{key}".removeprefix("."), part) for key, part in inner]
    if not parts:
        yield path, value
    for name, part in parts:
        yield from leaves(part, name)


def differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yields a line for each value that differs, or that only one side has."""
    for name in sorted({*before, *after}):
        old_values, new_values = (dict(leaves(side.get(name))) for side in (before, after))
        for path in sorted({*old_values, *new_values}):
            is_same = (
                path in old_values and path in new_values and old_values[path] == new_values[path]
            )
            if not is_same and not path.endswith(_RULESET):
                old, new = (values.get(path, "(absent)") for values in (old_values, new_values))
                yield f"{name} {path}: {old} -> {new}"


def main(arguments: Sequence[str]) -> int:
    """Writes one file, or compares two."""
    paths = [Path(argument) for argument in arguments]
    if len(paths) == 1:
        written = dict(documents())
        paths[0].write_text(to_json(written), encoding="utf-8")
        print(f"{len(written)} documents")
        return 0
    before, after = (
        json.loads(path.read_text(encoding="utf-8"), parse_float=str) for path in paths
    )
    lines = list(differences(before, after))
    print(*islice(lines, MOST_SHOWN), f"{len(lines)} values differ", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
