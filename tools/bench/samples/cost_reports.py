"""Measures `reconcile` and `prices learn` on a cost report of a million lines, in CPU time.

Each sample is a process: the command line, from the file to the printed result. `reconcile`
compares the report's 250,000 jobs with a history of one other job. The peer is DuckDB's own sum of
the same file: it reads the file as text, sums cost and quantity by job and usage type, as
`reconcile` needs, or by day and usage type, as `prices learn` needs, and Python fetches the rows.
The report stays in BENCH_FOLDER.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import duckdb

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from tests.fakes.documents import document
from tests.fakes.entries import entry_of

LINES = 1_000_000
"""The lines of 250,000 jobs: each has two lines of an instance and two of its volume."""
_ACCOUNT, _MONTH = "111122223333", "2026-10"
_REPORT = """
COPY (SELECT 'AmazonSageMaker' AS line_item_product_code,
    CASE WHEN i % 97 = 0 THEN 'Tax' ELSE 'Usage' END AS line_item_line_item_type,
    'USE1-Train:' || CASE WHEN i % 2 = 0 THEN 'VolumeUsage.gp2' ELSE
        'ml.' || ['m5.xlarge', 'g4dn.xlarge', 'p3.2xlarge', 'c5.4xlarge'][1 + i // 4 % 4]
    END AS line_item_usage_type,
    CAST((1 + i % 3600) / 3600 AS DECIMAL(18, 10)) AS line_item_usage_amount,
    CAST((1 + i % 3600) / 3000 AS DECIMAL(18, 10)) AS line_item_unblended_cost,
    strftime(day, '%Y-%m-%dT%H:00:00Z') AS line_item_usage_start_date,
    strftime(day + INTERVAL 1 HOUR, '%Y-%m-%dT%H:00:00Z') AS line_item_usage_end_date,
    '2026-10-01T00:00:00Z' AS bill_billing_period_start_date,
    'arn:aws:sagemaker:us-east-1:111122223333:training-job/job-' || i // 4
        AS line_item_resource_id,
    '111122223333' AS line_item_usage_account_id, '444455556666' AS bill_payer_account_id,
    'USD' AS line_item_currency_code, if(i % 2 = 0, 'GB-Mo', 'Hrs') AS pricing_unit,
    'us-east-1' AS product_region_code, 'instance or volume' AS line_item_line_item_description
FROM (SELECT i, TIMESTAMP '2026-10-01' + INTERVAL 1 HOUR * (i // 2 % 720) AS day
    FROM range({lines}) made(i))) TO '{path}' (HEADER)
"""
_SUM = """
import sys
import duckdb
by = sys.argv[2]
usd, used = (
    f"sum(CAST({column} AS DECIMAL(38, 18)))"
    for column in ("line_item_unblended_cost", "line_item_usage_amount")
)
read = f"read_csv('{sys.argv[1]}', all_varchar = true)"
duckdb.sql(f"SELECT line_item_usage_type, {by}, {usd}, {used} FROM {read} GROUP BY ALL").fetchall()
"""
_COMMAND = "from sageaudit.cli.main import main; main()"


@cache
def _report() -> Path:
    default = Path(tempfile.gettempdir(), "sageaudit-bench")
    folder = Path(os.environ.get("BENCH_FOLDER", default))
    path = folder / f"cost-report-{LINES}.csv"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        duckdb.execute(_REPORT.format(lines=LINES, path=unfinished))
        unfinished.replace(path)
    return path


@cache
def _history() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Returns a history of one job of the month, which the report does not have."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "history.db")
    times = dict.fromkeys(("created_at", "started_at", "ended_at"), f"{_MONTH}-20T10:00:00Z")
    with SqliteHistory(path) as history:
        history.record(entry_of(document(job={"account": _ACCOUNT, **times})))
    return folder, path


def _cpu_s(*arguments: str) -> float:
    """Returns the CPU time of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def reconcile_cpu_s(output: str) -> float:
    """Returns the CPU time of `sageaudit reconcile` with this --output."""
    options = ("--month", _MONTH, "--account", _ACCOUNT, "--cur", str(_report()))
    history = str(_history()[1])
    return _cpu_s(_COMMAND, "reconcile", *options, "--history", history, "--output", output)


def learn_cpu_s() -> float:
    """Returns the CPU time of `sageaudit prices learn`."""
    with tempfile.TemporaryDirectory() as folder:
        rates = str(Path(folder, "rates.json"))
        return _cpu_s(_COMMAND, "prices", "learn", "--cur", str(_report()), "--to", rates)


def sum_cpu_s(group_column: str) -> float:
    """Returns the CPU time of DuckDB's sum by usage type and this column."""
    return _cpu_s(_SUM, str(_report()), group_column)


MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    "reconcile a million lines, table": ("CPU s", partial(reconcile_cpu_s, "table")),
    "reconcile a million lines, JSON": ("CPU s", partial(reconcile_cpu_s, "json")),
    "peer: DuckDB's sum by job": ("CPU s", partial(sum_cpu_s, "line_item_resource_id")),
    "prices learn of a million lines": ("CPU s", learn_cpu_s),
    "peer: DuckDB's sum by day": (
        "CPU s",
        partial(sum_cpu_s, "left(line_item_usage_start_date, 10)"),
    ),
}
