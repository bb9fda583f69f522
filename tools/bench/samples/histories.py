"""Measures the lists of a history: sums by any column and filter, tops, pages, exports, reports.

Run as a script's module by a worker, for two checkouts alternately; MEASURED has the samples. A
file of 100,000 audits is filled once for each stored form, which takes minutes, and is kept in
BENCH_FOLDER. That of 1,000,000 is made from it: its runs ten times, each 31 days earlier and under
another name, without documents and details, which no list reads.

The peer of sums and tops is DuckDB, which answers the same question from the CSV of `export`; that
of an export and a report is a SELECT of all runs.
"""

from __future__ import annotations

import csv
import gc
import io
import os
import random
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.dynamo import items
from sageaudit.adapters.history.dynamo.calls import put_action
from sageaudit.adapters.history.record_steps import document_digest, family_row
from sageaudit.adapters.history.rows import finding_rows, make_summary
from sageaudit.adapters.history.sqlite import schema
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import MAX_EARLIER_RUNS, AuditEntry, RecordResult, RuleFinding
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.ports import History
from sageaudit.queries import answer
from sageaudit.queries.by import sum_by
from sageaudit.queries.changes import find_changes
from sageaudit.queries.columns import GROUPABLE, make_question, parse_columns
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import SortOrder
from sageaudit.queries.window import parse_window
from sageaudit.structs import replace
from sageaudit.workflows.recordings.run import audit_recordings, recorded_files
from tests.fakes.capacity import item_bytes
from tests.fakes.recorded import files

AUDITS = 100_000
FAMILIES, OWNERS, TEAMS, DAYS = 501, 200, 20, 30
COPY_DAYS = DAYS + 1
"""The days between a run and its copy: NOW is at noon, so DAYS have parts of one more."""
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
        "tags": {"team": f"team-{random_.randrange(TEAMS)}"},
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


def _folder() -> Path:
    folder = Path(os.environ.get("BENCH_FOLDER") or Path(tempfile.gettempdir(), "sageaudit-bench"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def history_path(count: int = AUDITS) -> Path:
    """Returns a file with this many audits, which is made if there is none of this stored form."""
    path = _folder() / f"history-{schema.VERSION}-{count}.db"
    if not path.exists():
        partial_path = path.with_suffix(f".{os.getpid()}")
        if count > AUDITS:
            _multiply(history_path(), partial_path, count // AUDITS)
        else:
            with SqliteHistory(partial_path) as history:
                fill(history, audits(count))
        partial_path.rename(path)
    return path


_EARLIER = "strftime('%Y-%m-%dT%H:%M:%f000Z', {}, :shift)"
_CHANGED_COLUMNS = {
    "run": "run + :copy * 100000000",
    "run_key": "replace(run_key, '#', '-' || :copy || '#')",
    "job": "job || '-' || :copy",
    "ended_at": _EARLIER.format("ended_at"),
    "created_at": _EARLIER.format("created_at"),
    "day": "date(day, :shift)",
}
"""What is different in a copy of a row."""


def _multiply(source: Path, path: Path, times: int) -> None:
    SqliteHistory(path).close()
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute("ATTACH ? AS source", [str(source)])
        for table in ("runs", "findings", "daily_sums", "daily_rule_sums"):
            names = [name for _, name, *_ in sql.execute(f"PRAGMA table_info({table})")]
            copies = ", ".join(_CHANGED_COLUMNS.get(name, name) for name in names)
            columns = ", ".join(names)
            insert = f"INSERT INTO {table} ({columns}) SELECT {copies} FROM source.{table}"  # noqa: S608 - our own names
            for copy in range(times):
                sql.execute(insert, {"copy": copy, "shift": f"-{COPY_DAYS * copy} days"})


@cache
def _history(count: int) -> SqliteHistory:
    history = SqliteHistory(history_path(count))
    gc.freeze()  # the collector need not visit what filling the file has left in memory
    return history


def _cpu_s(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def _sum_by(text: str, filters: Mapping[str, Any], count: int = AUDITS) -> None:
    window = parse_window(f"{COPY_DAYS * max(count // AUDITS, 1)}d", None, NOW)
    question = make_question(window, SortOrder.NEWEST, filters)
    lists = HistoryLists(_history(count), window)
    rows = sum_by(lists, question, parse_columns(text), today=NOW.date())
    if not rows:
        raise SystemExit(f"nothing by {text} with {filters}")


def _page(sort: SortOrder, limit: int, count: int = AUDITS) -> None:
    window = parse_window(f"{COPY_DAYS * max(count // AUDITS, 1)}d", None, NOW)
    question = make_question(window, sort, {})
    is_top = sort is not SortOrder.NEWEST
    lists = HistoryLists(_history(count), window)
    answer.first_page(lists, question, limit, only_above_zero=is_top)


def _advice() -> None:
    window = parse_window("180d", None, NOW)
    question = make_question(window, SortOrder.NEWEST, {})
    answer.find_recommendations(HistoryLists(_history(AUDITS), window), question, [], NOW)


def _changes() -> None:
    window = parse_window("7d", None, NOW)
    question = make_question(window, SortOrder.NEWEST, {})
    lists = HistoryLists(_history(AUDITS), window)
    find_changes(lists, question, GROUPABLE["image"], today=NOW.date())


_RUN = """
from sageaudit.cli.main import main
try:
    main()
finally:
    with open("/proc/self/status") as status:
        print([line.split()[1] for line in status if line.startswith("VmHWM")][0])
"""
"""Runs a command, then prints its peak memory in kB."""


def _command(*words: str) -> tuple[float, float]:
    """Returns CPU seconds and MB of memory of a process that runs the command on AUDITS audits."""
    days = ["--since", f"{NOW - timedelta(days=DAYS):%Y-%m-%d}", "--until", f"{NOW:%Y-%m-%d}"]
    where = ["--history", str(history_path())]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *words, *days, *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, int(done.stdout.split()[-1]) / 1000


def _written(command: str) -> tuple[float, float]:
    ending = {"export": "csv", "report": "html"}[command]
    return _command(command, "-o", str(_folder() / f"{schema.VERSION}.{ending}"))


def _more_memory_mb(text: str) -> float:
    """Returns how much more memory sums take than the list of the newest audit."""
    return _command("by", text)[1] - _command("history", "--limit", "1")[1]


@cache
def _export_csv() -> Path:
    path = _folder() / f"history-{schema.VERSION}-{AUDITS}.csv"
    if not path.exists():
        _command("export", "-o", str(path))
    return path


def _duckdb_s(query: str) -> float:
    import duckdb  # noqa: PLC0415 - only the peer needs it

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        path = str(_export_csv())
        return _cpu_s(lambda: connection.execute(query.format(f"'{path}'")).fetchall())


def _plain_select_s() -> float:
    def write_all() -> None:
        with closing(sqlite3.connect(history_path())) as sql:
            csv.writer(io.StringIO()).writerows(sql.execute("SELECT * FROM runs"))

    return _cpu_s(write_all)


def _bytes_per_audit() -> float:
    return history_path().stat().st_size / AUDITS


_COLUMNS = (
    *(name for name in GROUPABLE),
    *("team", "image,week", "status,region", "usage_type,day", "rule,owner"),
)
_FILTERS: Sequence[tuple[str, str, Mapping[str, Any]]] = (
    ("by image, --status failed", "image", {"status": "Failed"}),
    ("by family, --min-usd 0.01", "family", {"min_usd": "0.01"}),
    ("by family, --min-percent 10", "family", {"min_percent": "10"}),
    ("by owner, --min-hours 0.1", "owner", {"min_hours": "0.1"}),
    ("by owner, --tag team=team-3", "owner", {"tag": "team=team-3"}),
    ("by week, --image pytorch", "week", {"image": "pytorch"}),
    ("by family, --rule gpu-idle", "family", {"rule": "gpu-idle"}),
    ("by family, --severity low", "family", {"severity": Severity.LOW}),
)
_CURVE = (1_000, 10_000, 100_000, 1_000_000)
_DUCKDB_SUMS = "count(*), sum(total_usd), sum(avoidable_usd), sum(lost_usd) FROM read_csv({})"

MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    **{f"by {text}": ("CPU s", partial(_cpu_s, partial(_sum_by, text, {}))) for text in _COLUMNS},
    **{
        label: ("CPU s", partial(_cpu_s, partial(_sum_by, text, filters)))
        for label, text, filters in _FILTERS
    },
    "by image, more memory": ("MB", partial(_more_memory_mb, "image")),
    "by family and image, more memory": ("MB", partial(_more_memory_mb, "family,image")),
    "peer: DuckDB by image from the CSV": (
        "CPU s",
        partial(_duckdb_s, f"SELECT image, {_DUCKDB_SUMS} GROUP BY image"),
    ),
    "peer: DuckDB by image of failed jobs from the CSV": (
        "CPU s",
        partial(_duckdb_s, f"SELECT image, {_DUCKDB_SUMS} WHERE status = 'Failed' GROUP BY image"),
    ),
    "top": ("CPU s", partial(_cpu_s, partial(_page, SortOrder.WASTE, 10))),
    "peer: DuckDB top from the CSV": (
        "CPU s",
        partial(
            _duckdb_s,
            "SELECT job, total_usd, waste_usd FROM read_csv({}) ORDER BY waste_usd DESC LIMIT 10",
        ),
    ),
    "history, a page of 50": ("CPU s", partial(_cpu_s, partial(_page, SortOrder.NEWEST, 50))),
    "export": ("CPU s", lambda: _written("export")[0]),
    "export, memory": ("MB", lambda: _written("export")[1]),
    "report": ("CPU s", lambda: _written("report")[0]),
    "report, memory": ("MB", lambda: _written("report")[1]),
    "advice": ("CPU s", partial(_cpu_s, _advice)),
    "changes of a week by image": ("CPU s", partial(_cpu_s, _changes)),
    "peer: SQLite's SELECT of all runs as CSV": ("CPU s", _plain_select_s),
    "an audit in SQLite": ("bytes", _bytes_per_audit),
    **{
        f"by image, n={count}": ("CPU s", partial(_cpu_s, partial(_sum_by, "image", {}, count)))
        for count in _CURVE
    },
    **{
        f"by family, n={count}": ("CPU s", partial(_cpu_s, partial(_sum_by, "family", {}, count)))
        for count in _CURVE
    },
    **{
        f"top, n={count}": ("CPU s", partial(_cpu_s, partial(_page, SortOrder.WASTE, 10, count)))
        for count in _CURVE
    },
    **{
        f"history, a page of 50, n={count}": (
            "CPU s",
            partial(_cpu_s, partial(_page, SortOrder.NEWEST, 50, count)),
        )
        for count in _CURVE
    },
}
"""The samples: the label, the unit, and the call that takes one sample and returns its figure."""
