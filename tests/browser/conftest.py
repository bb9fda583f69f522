"""The browser that the folder's tests share, and the pages that they open."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.chromium import Browser, browser
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.html.contents import AccountReport, JobReport
from sageaudit.workflows.recordings.run import audit_recording, recorded_report
from tests.fakes import reports

Open = Callable[..., Browser]
DESK, PHONE = (1280, 900), (390, 844)


def header_cell(title: str) -> str:
    """Returns JavaScript for the header cell of a column."""
    return f'[...document.querySelectorAll("#all th")].find(th => th.textContent === "{title}")'


@pytest.fixture(scope="session")
def tab() -> Iterator[Browser]:
    """Yields one tab of a headless Chromium with an empty profile."""
    with browser() as started:
        yield started


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Writes the pages: of 300 jobs, of families with one change, of one job, and hostile ones."""
    folder = tmp_path_factory.mktemp("reports")
    recorded = reports.RECORDINGS / "composed-g4dn-12xlarge.json"
    contents: dict[str, AccountReport | JobReport] = {
        "account": reports.large_account_report(300, 200),
        "job": recorded_report(recorded, audit_recording(recorded, Policy())),
        "grouped": reports.grouped_report(),
        "hostile-account": reports.hostile_account(),
        "hostile-job": reports.hostile_job(),
    }
    for name, content in contents.items():
        text = reports.page_of(content)
        (folder / f"{name}.html").write_text(text, encoding="utf-8", errors="replace")
    return {name: folder / f"{name}.html" for name in contents}


@pytest.fixture
def opened(tab: Browser, pages: dict[str, Path]) -> Open:
    """Returns a function that opens a page, by default in desktop size and light theme."""

    def open_page(
        name: str, size: tuple[int, int] = DESK, scheme: str = "light", fragment: str = ""
    ) -> Browser:
        tab.emulate_media(prefers_color_scheme=scheme)
        tab.resize(*size)
        tab.open(pages[name], fragment)
        return tab

    return open_page
