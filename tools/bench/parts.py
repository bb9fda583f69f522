"""The parts of the bench, and what each figure is compared with."""

from __future__ import annotations

from collections.abc import Mapping

from tools.bench.measure import Goal

_AWS = ("aws --version",)
_DUCKDB = ("DuckDB by image from the CSV",)
_ALL_RUNS = ("SQLite's SELECT of all runs as CSV",)
_LIST = Goal(_DUCKDB, "at most 1.5 s")
_COLUMNS = (
    *("rule", "family", "owner", "account", "region", "kind", "type", "count", "purchase"),
    *("status", "judged", "reason", "image", "usage_type", "day", "week", "month", "team"),
    *("image,week", "status,region", "usage_type,day", "rule,owner"),
    *("family, --min-usd 0.01", "family, --min-percent 10", "owner, --min-hours 0.1"),
    *("owner, --tag team=team-3", "week, --image pytorch"),
    *("family, --rule gpu-idle", "family, --severity low"),
)
_PACKED = (
    *("1 host of an hour", "1 host of a day", "a curve of 5,000 points"),
    *(f"by hosts, n={hosts}" for hosts in (1, 4, 16, 32, 64, 200, 1_000)),
    *(f"curves, n={curves}" for curves in (1, 10, 40)),
)
_CHANGED_POINTS = (
    *("0.1% missing", "1% missing", "10% missing", "one host's tail missing"),
    *("idle at the begin", "idle in the middle", "idle at the end", "idle at different times"),
)
_FUNCTIONS = ("audit", "deliver", "digest", "notify", "sweep", "watch")

PARTS: Mapping[str, Mapping[str, Goal]] = {
    "core": {},
    "warm_audits": {
        f"a warm audit, n={runs}": Goal(
            (f"its requests by boto3 alone, n={runs}",), "at most 12 ms"
        )
        for runs in (1, 20)
    },
    "large_jobs": {
        **{f"pack {name}": Goal((f"audit_job, {name}",), "at most 1 times") for name in _PACKED},
        **{
            f"points to audit, {hosts} hosts, {change}": Goal(
                (f"points to audit, {hosts} hosts, complete",), "at most 1.3 times"
            )
            for hosts in (16, 64)
            for change in _CHANGED_POINTS
        },
        **{
            f"answers, {share} missing": Goal(("answers, 0.0% missing",), "at most 1.3 times")
            for share in ("0.1%", "1.0%", "10.0%")
        },
    },
    "growth": {},
    "scans": {
        **{
            f"scan of one family's next runs, n={runs}": Goal(text="at most 8 ms")
            for runs in (100, 1_000, 10_000)
        },
        "scan of 50 families": Goal(text="at most 8 ms"),
        "sageaudit.audit(dict)": Goal(("audit_job of the same jobs",), "at least 400"),
    },
    "histories": {
        **{f"by {columns}": _LIST for columns in _COLUMNS},
        "by image, --status failed": Goal(
            ("DuckDB by image of failed jobs from the CSV",), "at most 1.5 s"
        ),
        "by image, more memory": Goal(text="at most 80 MB"),
        "by family and image, more memory": Goal(text="at most 80 MB"),
        "top": Goal(("DuckDB top from the CSV",), "at most 0.5 s"),
        "history, a page of 50": Goal(text="at most 0.5 s"),
        "export": Goal(_ALL_RUNS, "at most 10 s"),
        "export, memory": Goal(text="at most 200 MB"),
        "report": Goal(_ALL_RUNS, "at most 10 s"),
        "report, memory": Goal(text="at most 200 MB"),
    },
    "cost_reports": {
        "reconcile a million lines, table": Goal(("DuckDB's sum by job",), "at most 6 s"),
        "reconcile a million lines, JSON": Goal(("DuckDB's sum by job",)),
        "prices learn of a million lines": Goal(("DuckDB's sum by day",)),
    },
    "command_line": {
        "sageaudit --version": Goal(_AWS, "at most 60 ms"),
        "sageaudit audit --recording": Goal(_AWS, "at most 300 ms"),
        "sageaudit history": Goal(_AWS, "at most 250 ms"),
    },
    "starts": {
        "asset, all files": Goal(text="at most 20 MB"),
        **{
            f"{name} ready": Goal(
                (
                    f"boto3 with the clients of {name}",
                    f"the asset's boto3 with the clients of {name}",
                ),
                "at most 1.15 times",
            )
            for name in _FUNCTIONS
        },
    },
}
"""By the name of a module in `samples`, the goals by label. A label without a goal is missing."""
COUNTED = ("deployed", "sizes", "sweeps")
"""Modules that count or simulate, without times of two versions."""
