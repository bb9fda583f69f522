"""Prints the audit of a labelled job: `python -m tools.labelled hung-at-the-end-g5`.

With `--json` it prints the audit's document, with `--recordings` what was audited. Without a name
it lists all names, with a part of a name those that contain it. For a family, and for a tuning job
with its trials, it prints the audit of the last job.
"""

from __future__ import annotations

import argparse
import json
import sys

from rich.console import Console

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.terminal.render import render
from tests.labelled.audits import expert_documents, story_document
from tests.labelled.expert import expert_jobs
from tests.labelled.machine import Json
from tests.labelled.story import labelled


def names() -> list[str]:
    """Returns the names of all stories, and of all jobs and families that an expert judged."""
    return sorted([*(job.name for job in labelled()), *(job.name for job in expert_jobs())])


def audit_by_name(name: str) -> AuditDocument:
    """Returns the audit of a labelled job; of a story that of its first day."""
    for story in labelled():
        if story.name == name:
            return story_document(story, 1)
    return expert_documents(name)[-1]


def recordings(name: str) -> list[Json]:
    """Returns the runs of a labelled job in their order; of a story those of its first day."""
    for story in labelled():
        if story.name == name:
            return story.recordings(1)
    [job] = [job for job in expert_jobs() if job.name == name]
    return job.recordings


def main(arguments: list[str] | None = None) -> int:
    """Prints the audit of one name, or the names that contain a part. Returns 3 if there are
    none.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.labelled", description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="a name, or a part of one")
    parser.add_argument("--json", action="store_true", help="print the audit's document")
    parser.add_argument("--recordings", action="store_true", help="print what was audited")
    chosen = parser.parse_args(arguments)
    if chosen.name not in names():
        matching_names = [name for name in names() if chosen.name in name]
        if not matching_names:
            print(f"no labelled job has {chosen.name} in its name", file=sys.stderr)
            return 3
        print(*matching_names, sep="\n")
        return 0
    if chosen.recordings:
        print(json.dumps(recordings(chosen.name), indent=1))
        return 0
    document = audit_by_name(chosen.name)
    if chosen.json:
        print(json.dumps(json.loads(to_json(document)), indent=2))
    else:
        render(document, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main())
