"""A report of 5,000 jobs: its size, and how soon it can be used."""

from pathlib import Path

import pytest

from local.chromium import Browser
from tests.fakes import reports

_MOST_BYTES = 5_000_000
_MOST_MS = 2000
_TRIES = 3
"""The best of so many counts: a machine that is busy with something else says little."""
_SORTED = """new Promise((done) => {
  const head = [...document.querySelectorAll("#all th")].find((th) => th.textContent === "Spend");
  head.querySelector("button").click();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
})"""


@pytest.fixture(scope="module")
def thousands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes the page of 5,000 jobs."""
    path = tmp_path_factory.mktemp("thousands") / "report.html"
    path.write_text(reports.page_of(reports.large_account_report(5000)), encoding="utf-8")
    return path


def test_it_is_under_5_mb(thousands: Path) -> None:
    """It is small enough to be sent by mail."""
    assert thousands.stat().st_size < _MOST_BYTES


def test_it_is_loaded_and_sorted_within_two_seconds(tab: Browser, thousands: Path) -> None:
    """The time counts from the start of loading to the first frame of the sorted table."""
    tab.emulate_media(prefers_color_scheme="light")
    tab.resize(1280, 900)
    spent_ms = []
    for _ in range(_TRIES):
        tab.open(thousands)
        spent_ms.append(tab.run(_SORTED))
    assert min(spent_ms) < _MOST_MS, spent_ms
    assert tab.run('document.getElementById("job-count").textContent').startswith("5,000 jobs")
