"""Takes the README's picture of a report: of the demo's jobs, in a headless Chromium.

`PYTHONPATH=functions python -m tools.screenshot` writes docs/images/report.png.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

from local.chromium import browser
from local.recorded import RECORDINGS
from sageaudit import __version__
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.cli.support.recordings.recorded_audits import audit_recordings
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.listed import Period
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.page import page
from sageaudit.queries.window import FIRST
from sageaudit.workflows.report import contents as report_contents

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
_WIDTH, _HEIGHT = 1280, 945


def main() -> None:
    """Writes the picture."""
    history, now = SqliteHistory(), datetime.now(UTC)
    for _ in audit_recordings(sorted(RECORDINGS.glob("*.json")), Policy(), history, lasts=False):
        pass  # each is recorded as it is made
    days = {row.day for row in history.sums(Scope.ACCOUNT, FIRST.date(), now.date())}
    period = Period(min(days), max(days))
    source = report_contents.ReportSource(history, packaged.types())
    found = report_contents.heads_of(source, period, None)
    contents = report_contents.account_report(source, period, None, *found, period.until)
    text = page(
        account_title(contents),
        account_body(contents),
        generated_at=now,
        version=__version__,
    )
    with tempfile.TemporaryDirectory() as folder, browser() as tab:
        path = Path(folder, "report.html")
        path.write_text("".join(text), encoding="utf-8")
        tab.media(prefers_color_scheme="light")
        tab.size(_WIDTH, _HEIGHT)
        tab.open(path)
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(tab.picture())
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
