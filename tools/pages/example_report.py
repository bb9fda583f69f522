"""Writes the report of the example company into docs, to be opened without an installation."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

from local import example
from sageaudit import __version__
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.domain.sweep import Period
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.contents import AccountReport
from sageaudit.output.html.page import page
from sageaudit.structs import replace
from sageaudit.workflows.report import ReportSource, make_account_report
from tools.pages import DOCS

FILE = DOCS / "example-report.html"
MAX_BYTES = 500_000
_DAYS = 28
_MAX_DETAILED_JOBS = 25
"""The file is in the repository, so it has the details of fewer jobs than a report."""


def report_text(history_path: Path) -> str:
    """Returns the page of the company's last four weeks. `history_path`: its history."""
    period = Period(example.LAST_DAY - timedelta(days=_DAYS - 1), example.LAST_DAY)
    with SqliteHistory(history_path, create=False) as history:
        source = ReportSource(history, packaged.instance_types())
        report = _shortened(make_account_report(source, period, None, example.NOW))
    pieces = page(
        f"Made-up example: {account_title(report)}",
        account_body(report),
        generated_at=example.NOW,
        version=__version__,
    )
    return "".join(pieces)


def _shortened(report: AccountReport) -> AccountReport:
    linked = {change.example.summary_index for change in report.top_changes}
    details = {
        index: job
        for index, job in report.details.items()
        if index < _MAX_DETAILED_JOBS or index in linked
    }
    scope = f"Made-up jobs of an example company, {report.scope}"
    return replace(report, scope=scope, details=details)


def main() -> None:
    """Writes the file."""
    with tempfile.TemporaryDirectory() as folder:
        history_path = example.write_history(Path(folder, "example.db"))
        FILE.write_text(report_text(history_path), encoding="utf-8")
    print(f"{FILE}: {FILE.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
