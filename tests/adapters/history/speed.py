"""How fast an embedded history is, and how large: with audits of the recorded jobs.

`PYTHONPATH=functions python -m tests.adapters.history.speed 100000 history.db` records so many
in a new
file, by 500 families, 200 owners and 30 days, and prints how long each question takes. A file that
exists already is only asked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, cast

from sageaudit.adapters.history.in_memory import MemoryHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.support.recordings.kept_recordings import KeptRecordings
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Entry, JobKey
from sageaudit.domain.audit.sums import Scope, total
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording

DATA = Path(__file__).parents[2] / "recorded" / "data" / "jobs"
ACCOUNT, REGION = "111122223333", "us-east-1"
LAST = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DAYS, FAMILIES, OWNERS = 30, 500, 200


def recorded() -> list[Entry]:
    """The audits of the recorded jobs, as the flow records them."""
    memory = _Noting()
    kept = KeptRecordings(sorted(DATA.glob("*.json")), memory, Policy())
    for path in sorted(DATA.glob("*.json")):
        try:
            kept.of(path)
        except BadRecording:
            continue
    return [entry for entry in memory.entries if not entry.document["rollup"]]


class _Noting(MemoryHistory):
    """Notes what is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []

    def record(self, entry: Entry) -> Any:
        self.entries.append(entry)
        return super().record(entry)


def audits(count: int) -> Iterator[Entry]:
    """So many jobs, the oldest first."""
    for number, entry in enumerate(islice(cycle(recorded()), count)):
        ended_at = LAST - timedelta(days=DAYS) * (1 - number / count)
        name = f"job-{number:06d}"
        arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}"
        job = {
            **entry.document["job"],
            "name": name,
            "arn": arn,
            "account": ACCOUNT,
            "region": REGION,
            "family": f"training/family-{number % FAMILIES:03d}",
            "owner": f"owner-{number % OWNERS:03d}",
            "ended_at": ended_at.isoformat(),
        }
        yield replace(
            entry,
            key=JobKey(arn, ended_at - timedelta(hours=1)),
            last_modified_at=ended_at,
            document=cast("AuditDocument", {**entry.document, "job": job}),
        )


def timed(what: str, ask: Callable[[], Any]) -> None:
    """Prints a question, its answer and the best of three times, in CPU time."""
    times = []
    for _ in range(3):
        begun = time.process_time()
        answer = ask()
        times.append(time.process_time() - begun)
    _say(f"{what:42}{answer!s:>14}{min(times) * 1000:12,.1f} ms")


def fill(path: Path, count: int) -> None:
    """Records audits and prints how many a second, by CPU time and by the clock."""
    cpu_s = clock_s = 0.0
    with SqliteHistory(path, clock=lambda: LAST) as history:
        for entry in audits(count):
            cpu, clock = time.process_time(), time.perf_counter()
            history.record(entry)
            cpu_s += time.process_time() - cpu
            clock_s += time.perf_counter() - clock
    _say(f"{count / cpu_s:,.0f} audits recorded a second of CPU, {count / clock_s:,.0f} a second")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def ask(history: SqliteHistory) -> None:
    """Every kind of question."""
    since, until = (LAST - timedelta(days=DAYS)).date(), LAST.date()
    family, month = "training/family-007", f"{LAST:%Y-%m}"
    newest = next(iter(history.by_account(ACCOUNT, month, page_size=1)))

    def jobs(scope: Scope, name: str | None = None) -> int:
        return total(history.sums(scope, since, until, name=name)).jobs

    for scope in Scope:
        timed(f"30 days of sums by {scope.value}: jobs", partial(jobs, scope))
    timed("30 days of sums of one family: jobs", partial(jobs, Scope.FAMILY, family))
    timed("one head", lambda: history.head(newest.key) is not None)
    timed("one document", lambda: history.audit(newest.key) is not None)
    timed("one day, all rows", lambda: sum(1 for _ in history.by_day(until)))
    timed(
        "one account's month, 50 rows",
        lambda: sum(1 for _ in islice(history.by_account(ACCOUNT, month, page_size=50), 50)),
    )
    timed(
        "one account's month, all rows", lambda: sum(1 for _ in history.by_account(ACCOUNT, month))
    )
    timed(
        "one family, the last 50",
        lambda: sum(1 for _ in history.by_family(ACCOUNT, REGION, family, limit=50)),
    )
    timed("one owner, a page of 50", lambda: len(history.by_owner("owner-007", limit=50).rows))
    timed(
        "one rule, a page of 50",
        lambda: len(history.by_rule("gpu-underused", month, limit=50).rows),
    )


if __name__ == "__main__":
    wanted, file = int(sys.argv[1]), Path(sys.argv[2])
    if not file.exists():
        fill(file, wanted)
    _say(f"{file.stat().st_size / 1e6:,.0f} MB")
    with SqliteHistory(file, create=False) as opened:
        ask(opened)
