"""Measures what an audit takes in a history, and how long its questions take.

`.venv/bin/python -m tools.bench.history --audits 100000` fills a file with so many audits first.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.support.recordings.recorded_audits import audit_recordings
from sageaudit.domain.audit.record import FAMILY_RUNS, Entry, Head, JobKey, Recorded
from sageaudit.domain.policy.policy import Policy
from sageaudit.ports import History
from tests.fakes.recorded import files

AUDITS = 10_000
FAMILIES, OWNERS, DAYS = 501, 200, 30
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_MOMENT = re.compile(r'"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))"')


class _Kept(SqliteHistory):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []

    def record(self, entry: Entry) -> Recorded:
        self.entries.append(entry)
        return super().record(entry)


def recorded_as(paths: Sequence[Path], policy: Policy) -> list[Entry]:
    """The audits of recordings, as `scan` puts them into a history."""
    with _Kept() as history:
        for _ in audit_recordings(paths, policy, history):
            pass
        return history.entries


@cache
def recorded() -> tuple[Entry, ...]:
    """The audits of the recorded jobs."""
    return tuple(recorded_as(files(), Policy()))


def audits(count: int) -> Iterator[Entry]:
    """Audits of as many jobs, in the order of their ends.

    They are those of the recorded jobs, by other names, families and owners.
    """
    chance, known = random.Random(1), [one for one in recorded() if not one.document["rollup"]]
    for number in range(count):
        ended = NOW - timedelta(days=DAYS) * (1 - number / count)
        yield _renamed(known[number % len(known)], number, ended, chance)


def _renamed(one: Entry, number: int, ended: datetime, chance: random.Random) -> Entry:
    job = one.document["job"]
    name, end = f"{job['name'][:20]}-{number:06d}", job["ended_at"]
    later = ended - (datetime.fromisoformat(end) if end else one.key.created_at)

    def moved(found: re.Match[str]) -> str:
        return f'"{(datetime.fromisoformat(found[1]) + later).isoformat()}"'

    text = _MOMENT.sub(moved, to_json(one.document).replace(job["name"], name))
    document = from_json(text)
    document["job"] |= {
        "family": f"{job['kind']}/family-{chance.randrange(FAMILIES // 3)}",
        "owner": f"owner-{chance.randrange(OWNERS)}",
    }
    return replace(
        one,
        key=JobKey(one.key.arn.replace(job["name"], name), one.key.created_at + later),
        last_modified_at=one.last_modified_at + later,
        document=document,
    )


def fill(history: History, entries: Iterable[Entry]) -> None:
    """Records them, each with the earlier runs of its family that it was judged by."""
    newest: dict[str, deque[Head]] = defaultdict(lambda: deque(maxlen=FAMILY_RUNS))
    for entry in entries:
        of_family = newest[entry.document["job"]["family"] or ""]
        head = history.record(replace(entry, compared=tuple(of_family))).head
        if head is not None:
            of_family.appendleft(head)
