"""Measures the size of an audit in a history, and how long queries take.

The peer of a query is the plain SELECT that adds up or sorts the same rows of the same file. The
peer of a recording is SQLite's own insert of the document's JSON. `python -m tools.bench.history
100000 FILE` measures with this many audits. If FILE exists, it is queried as it is, because filling
one takes minutes.
"""

from __future__ import annotations

import gc
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.history.codec import Item, run_key
from sageaudit.adapters.history.dynamo import items
from sageaudit.adapters.history.dynamo.calls import put_action
from sageaudit.adapters.history.record_steps import document_digest, family_row
from sageaudit.adapters.history.rows import finding_rows, make_summary
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import MAX_EARLIER_RUNS, AuditEntry, RecordResult, RuleFinding
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.ports import History
from sageaudit.queries import answer
from sageaudit.queries.by import default_since, sum_by
from sageaudit.queries.columns import parse_columns
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.window import parse_window
from sageaudit.structs import replace
from sageaudit.workflows.recordings.run import audit_recordings, recorded_files
from tests.fakes.capacity import item_bytes
from tests.fakes.recorded import files
from tools.bench.measure import Row

AUDITS, SAMPLES = 10_000, 5
FAMILIES, OWNERS, DAYS = 501, 200, 30
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_MOMENT = re.compile(r'"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))"')


class _EntryLog(SqliteHistory):
    """A history that remembers the entries it recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[AuditEntry] = []

    def record(self, entry: AuditEntry) -> RecordResult:
        self.entries.append(entry)
        return super().record(entry)


def audit_entries(paths: Sequence[Path], policy: Policy) -> list[AuditEntry]:
    """Returns the audits of recordings, as `scan` puts them into a history."""
    with _EntryLog() as history:
        parts = recorded_files(paths, is_history_persistent=True)
        for _ in audit_recordings(parts, policy, history, is_history_persistent=True):
            pass
        return history.entries


@cache
def recorded_entries() -> tuple[AuditEntry, ...]:
    """Returns the audits of the recorded jobs."""
    return tuple(audit_entries(files(), Policy()))


def audits(count: int) -> Iterator[AuditEntry]:
    """Yields this many audits, in the order of their ends.

    They are audits of the recorded jobs under other names, families and owners.
    """
    random_, entries = (
        random.Random(1),
        [entry for entry in recorded_entries() if not entry.document["rollup"]],
    )
    for number in range(count):
        ended_at = NOW - timedelta(days=DAYS) * (1 - number / count)
        yield _renamed(entries[number % len(entries)], number, ended_at, random_)


def _renamed(
    entry: AuditEntry, number: int, ended_at: datetime, random_: random.Random
) -> AuditEntry:
    job = entry.document["job"]
    name, end = f"{job['name'][:20]}-{number:06d}", job["ended_at"]
    shift = ended_at - (datetime.fromisoformat(end) if end else entry.key.created_at)

    def move_time(match: re.Match[str]) -> str:
        return f'"{(datetime.fromisoformat(match[1]) + shift).isoformat()}"'

    text = _MOMENT.sub(move_time, to_json(entry.document).replace(job["name"], name))
    document = from_json(text)
    document["job"] |= {
        "family": f"{job['kind']}/family-{random_.randrange(FAMILIES // 3)}",
        "owner": f"owner-{random_.randrange(OWNERS)}",
    }
    return replace(
        entry,
        key=JobKey(entry.key.arn.replace(job["name"], name), entry.key.created_at + shift),
        last_modified_at=entry.last_modified_at + shift,
        document=document,
    )


def fill(history: History, entries: Iterable[AuditEntry]) -> None:
    """Records the entries, each with the earlier runs of its family."""
    newest: dict[str, deque[AuditSummary]] = defaultdict(lambda: deque(maxlen=MAX_EARLIER_RUNS))
    for entry in entries:
        of_family = newest[entry.document["job"]["family"] or ""]
        head = history.record(replace(entry, earlier_runs=tuple(of_family))).summary
        if head is not None:
            of_family.appendleft(head)


def items_bytes(entry: AuditEntry) -> int:
    """Returns the size of an audit in the table, without the copies in its indexes."""
    head = make_summary(entry, 1, document_digest(entry.document))
    row = family_row(entry, head)
    table_items: list[Item] = [
        items.head_item(head, 1),
        items.audit_item(head, entry.document),
        *(items.finding_item(RuleFinding(finding, head)) for finding in finding_rows(entry)),
    ]
    if row is not None:
        table_items.append(items.family_item(head, row, NOW))
    if entry.detail is not None:
        table_items.append(items.detail_item(head.key, entry.detail, NOW))
    return sum(item_bytes(put_action(item)["Put"]["Item"]) for item in table_items)


_SUMS = "count(*), sum(total_micro_usd), sum(avoidable_micro_usd), sum(lost_micro_usd) FROM runs"
_SELECTS = {
    "top": "SELECT * FROM runs ORDER BY avoidable_micro_usd + lost_micro_usd DESC LIMIT 10",
    "by family": f"SELECT family, {_SUMS} GROUP BY account, region, family",
    "by owner": f"SELECT owner, {_SUMS} GROUP BY owner",
    "by month": f"SELECT substr(ended_at, 1, 7), {_SUMS} GROUP BY 1",
    "history, a page of 50": "SELECT * FROM runs ORDER BY ended_at DESC LIMIT 50",
}
"""The queries, with the plain SELECT that each is compared with."""
_COMMANDS = {"report": 10, "export": 10}
"""Commands that read every audit, and the seconds that they may take."""


def _ask(history: History, question: str) -> None:
    span = parse_window("30d", None, NOW)
    lists, query = HistoryLists(history, span), Question(span)
    columns_text = question.removeprefix("by ")
    if columns_text != question:
        columns = parse_columns(columns_text)
        span = parse_window(default_since(columns), None, NOW)
        sum_by(lists.in_window(span), replace(query, window=span), columns, today=NOW.date())
    elif question == "top":
        answer.first_page(lists, replace(query, sort=SortOrder.WASTE), 10, only_above_zero=True)
    else:
        answer.first_page(lists, query, 50)


def _cpu_s(query: Callable[[], object]) -> float:
    times = []
    for _ in range(SAMPLES):
        begin = time.process_time()
        query()
        times.append(time.process_time() - begin)
    return statistics.median(times)


_RUN = """
from sageaudit.cli.main import main
try:
    main()
finally:
    with open("/proc/self/status") as status:
        print([line.split()[1] for line in status if line.startswith("VmHWM")][0])
"""
"""Runs a command, then prints its peak memory in kB, because `wait4` reports its parent's."""


def _command(command: str, path: Path) -> tuple[float, float]:
    """Returns CPU seconds and MB of memory of a process that runs the command."""
    days = ["--since", f"{NOW - timedelta(days=DAYS):%Y-%m-%d}", "--until", f"{NOW:%Y-%m-%d}"]
    output = path.with_name(f"{command}.{'csv' if command == 'export' else 'html'}")
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, command, *days, "-o", str(output), "--history", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    memory_kb = process.stdout.read() if process.stdout else b""
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} failed with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, int(memory_kb) / 1000


def _plain_insert(path: Path, entries: Sequence[AuditEntry]) -> float:
    """Returns the CPU seconds of SQLite's own insert of one document's JSON, in one transaction."""
    texts = [(run_key(entry.key), to_json(entry.document)) for entry in entries]
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = NORMAL")
        sql.execute("CREATE TABLE audits (run_key TEXT PRIMARY KEY, document TEXT)")
        begin = time.process_time()
        for text in texts:
            sql.execute("INSERT INTO audits VALUES (?, ?)", text)
        return (time.process_time() - begin) / len(texts)


def rows(count: int = AUDITS, history_path: Path | None = None) -> Iterator[Row]:
    """Yields the sizes of an audit, then the queries on a file with `count` audits.

    If `history_path` is given, the file stays there.
    """
    yield Row(
        "an audit's items in DynamoDB, median of the recorded",
        statistics.median(map(items_bytes, recorded_entries())) / 1000,
        "kB",
        "JSON of the document",
        statistics.median(len(to_json(entry.document).encode()) for entry in recorded_entries())
        / 1000,
        "at most 6 kB",
    )
    with tempfile.TemporaryDirectory() as folder:
        path, plain = history_path or Path(folder, "history.db"), Path(folder, "plain.db")
        entries = [*audits(1_000)]
        insert_s = _plain_insert(plain, entries)
        peer_kb = plain.stat().st_size / 1e6
        with SqliteHistory(Path(folder, "some.db")) as history:
            begin = time.process_time()
            fill(history, entries)
            record_s = (time.process_time() - begin) / len(entries)
        yield Row(
            "recording an audit", 1000 * record_s, "CPU ms", "SQLite's insert", 1000 * insert_s
        )
        if not path.exists():
            with SqliteHistory(path) as history:
                fill(history, audits(count))
        size = path.stat().st_size / count / 1000
        yield Row("an audit in SQLite", size, "kB", "a table of documents", peer_kb, "at most 6 kB")
        yield from _questions(path)


def _questions(path: Path) -> Iterator[Row]:
    gc.freeze()  # a process that asks has no recordings in memory, which the collector would visit
    with SqliteHistory(path) as history, closing(sqlite3.connect(path)) as sql:
        for question, select in _SELECTS.items():
            own_s = _cpu_s(partial(_ask, history, question))
            select_s = _cpu_s(lambda select=select: sql.execute(select).fetchall())  # type: ignore[misc]
            yield Row(question, own_s, "CPU s", "a plain SELECT", select_s, "at most 0.5 s")
        select_s = _cpu_s(lambda: sql.execute("SELECT * FROM runs").fetchall())
    for command, max_s in _COMMANDS.items():
        own_s, memory = _command(command, path)
        yield Row(command, own_s, "CPU s", "a SELECT of all", select_s, f"at most {max_s} s")
        yield Row(f"{command}, memory", memory, "MB", goal="at most 200 MB")


if __name__ == "__main__":
    _, *arguments = sys.argv
    for line in rows(
        int(arguments[0]) if arguments else AUDITS, Path(arguments[1]) if arguments[1:] else None
    ):
        print(line, flush=True)
