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
from sageaudit.adapters.prices import packaged
from sageaudit.cli.support.history import stored_runs
from sageaudit.domain.job.listed import Period
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.page import page
from sageaudit.workflows.report import contents as report_contents

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
_WIDTH, _HEIGHT = 1280, 945


def main() -> None:
    """Writes the picture."""
    history, heads = stored_runs.history_of_recordings(sorted(RECORDINGS.glob("*.json")))
    days = {head.ended_at.date() for head in heads}
    period = Period(min(days), max(days))
    source = report_contents.ReportSource(history, packaged.types())
    found = report_contents.heads_of(source, period, None)
    contents = report_contents.account_report(source, period, None, *found, period.until)
    text = page(
        account_title(contents),
        account_body(contents),
        generated_at=datetime.now(UTC),
        version=__version__,
    )
    with tempfile.TemporaryDirectory() as folder, browser() as tab:
        path = Path(folder, "report.html")
        path.write_text(text, encoding="utf-8")
        tab.media(prefers_color_scheme="light")
        tab.size(_WIDTH, _HEIGHT)
        tab.open(path)
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(tab.picture())
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
