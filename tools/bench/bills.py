"""Measures `reconcile` and `prices learn` on a cost report of a million lines.

The peer is DuckDB's own sum of the same file. DuckDB reads the file as text and sums cost and
quantity: by job and usage type, as `reconcile` needs, or by usage type and day, as `prices learn`
needs. Python then fetches the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from tools.bench.measure import Row, measure_alternately, run

LINES = 1_000_000
"""The lines of 250,000 jobs: each has two lines of an instance and two of its volume."""
RUNS = 3
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
RECONCILE = """
import sys
from io import StringIO
from pathlib import Path
from rich.console import Console
from sageaudit.adapters.billing import cost_report
from sageaudit.cli.views import reconciliation
from sageaudit.domain.reconcile.lines import AuditedMonth
from sageaudit.domain.reconcile.reconcile import reconcile
spend = cost_report.read_spend(Path(sys.argv[1]), "2026-10", "111122223333")
found = reconcile(spend, AuditedMonth(()))
month = reconciliation.ReconciledMonth(found, "2026-10", "111122223333", "report", False)
reconciliation.show(month, Console(file=StringIO()))
"""
LEARN = """
import sys
from sageaudit.cli.main import main
sys.argv[1:] = ["prices", "learn", "--cur", sys.argv[1], "--to", sys.argv[1] + ".rates.json"]
main()
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


def rows() -> Iterator[Row]:
    """Yields a row for each command, from the file to the printed table."""
    with TemporaryDirectory() as folder:
        path = str(Path(folder, "report.csv"))
        duckdb.execute(_REPORT.format(lines=LINES, path=path))
        for label, program, group_column in (
            ("reconcile, a million lines of 250,000 jobs", RECONCILE, "line_item_resource_id"),
            ("prices learn, the same lines", LEARN, "left(line_item_usage_start_date, 10)"),
        ):
            commands = [program, path], [_SUM, path, group_column]
            own_s, duckdb_s = measure_alternately(
                RUNS, *(partial(run, [sys.executable, "-c", *arguments]) for arguments in commands)
            )
            yield Row(label, own_s, "CPU s", "DuckDB's sum", duckdb_s, "at most 6 CPU s")
