"""Every view of one history has the same dollars and the same certainty. figures/scenarios.md has
the scenarios with their right figures, figures/views.py the views.
"""

import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.api import history as api_history
from sageaudit.cli import clock
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.text import plain, slack
from sageaudit.output.text.amounts import document_amounts
from sageaudit.output.text.headline import headline
from sageaudit.ports import History
from tests.cli.figures.cells import Cell, read
from tests.cli.figures.scenarios import NOW, SCENARIOS, Scenario, record, record_rollup
from tests.cli.figures.views import (
    OF_CHANGES,
    OF_ONE_FINDING,
    OF_ONE_JOB,
    OF_SUMS,
    Asked,
    View,
    table_rows,
    tiles,
    views_of,
)
from tests.fakes import documents, sample_documents
from tests.fakes.command_line import Run
from tests.fakes.messages import document_card

RECORDINGS = Path(__file__).parents[2] / "local" / "recordings"
IN_A_TABLE = {
    "history --output json": OF_ONE_JOB,
    "history --rule --output json": OF_ONE_FINDING,
    "by family": OF_SUMS,
    "scan --output json": OF_SUMS,
    "changes": OF_CHANGES,
}
"""The views that are also asked of DynamoDB: one for each kind of row that it stores."""


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the commands run on the Monday after the jobs, on a wide terminal."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)
    monkeypatch.setattr(api_history, "_now", lambda: NOW)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def file_history(run: Run, tmp_path: Path) -> Iterator[Callable[[Scenario], Asked]]:
    """Returns a function that writes the history of a scenario to a file."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:

        def audited(scenario: Scenario) -> Asked:
            record(history, scenario)
            return Asked(run, ("--history", str(path)), path, history, scenario)

        yield audited


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_view_has_the_right_figures(
    file_history: Callable[[Scenario], Asked], name: str
) -> None:
    """Amounts and qualifiers are checked for unknown, zero, bounds, estimates, ranges and their
    sums.
    """
    arguments = file_history(SCENARIOS[name])
    printed_text, right = _compared(arguments, views_of(arguments))
    assert printed_text == right


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_table_has_the_same_figures_as_a_file(
    run: Run, table: History, tmp_path: Path, name: str
) -> None:
    """Its rows and daily sums store the same."""
    arguments = Asked(run, ("--table", "any"), tmp_path / "none", table, SCENARIOS[name])
    record(table, arguments.scenario)
    views = {view: audited for view, audited in views_of(arguments).items() if view in IN_A_TABLE}
    printed_text, right = _compared(arguments, views)
    assert printed_text == right


Compared = dict[tuple[str, str], Cell]


def _compared(arguments: Asked, views: dict[str, View]) -> tuple[Compared, Compared]:
    """Returns what the views show of each figure, and what is right."""
    printed_text = {
        (view, figure): cell
        for view, cells_of in views.items()
        for figure, cell in cells_of(arguments).items()
    }
    assert {view for view, _ in printed_text} >= {*views} - {
        "top",
        "show",
        "message",
        "page, changes",
    }
    return printed_text, {
        key: read(key[1], arguments.scenario.right[key[1]]) for key in printed_text
    }


def test_a_tuning_job_has_no_cost_of_its_own(
    file_history: Callable[[Scenario], Asked],
) -> None:
    """Its cost is in the rows of its jobs, so that rows add up."""
    arguments = file_history(SCENARIOS["exact"])
    record_rollup(arguments.history)
    own_figures = ["in its jobs", "$0.00", "$0.00"]
    listing = arguments.stdout("history", "--since", "2026-05-01", "--output", "markdown")
    [row] = [line for line in listing.splitlines() if "sweep-7" in line]
    assert [cell.strip() for cell in row.split("|")][3:6] == own_figures
    page = arguments.stdout("report", "--since", "2026-05-01", "-o", "-")
    assert next(cells for cells in table_rows(page) if cells[0] == "sweep-7")[1:4] == own_figures
    [listed_row] = arguments.rows("history", "--since", "2026-05-01", "--until", "2026-06-01")
    assert (listed_row["total_usd"], listed_row["spend_qualifier"]) == (0, "exact")


@pytest.mark.parametrize(
    "audited",
    [
        documents.document,
        sample_documents.estimated_document,
        sample_documents.possibly_lost_document,
        sample_documents.lost_document,
    ],
)
def test_a_message_says_what_the_run_cost_as_the_headline_of_the_audit_does(
    audited: Callable[[], AuditDocument],
) -> None:
    """This holds for each channel."""
    audit = audited()
    cost = str(document_amounts(audit).spend)
    assert cost in headline(audit)
    phrases = (
        f"this run's {cost}",
        f"this run's cost ({cost})",
        f"This run's full cost, {cost},",
        f"{cost}, the full cost of this run,",
    )
    mail = " ".join(plain.make_payload(document_card(audit))["message"].split())
    post = unescape(slack.make_payload(document_card(audit))["blocks"][1]["text"]["text"])
    for text in (mail, post):
        assert any(phrase in text for phrase in phrases)


def test_the_ranking_of_a_scan_has_the_figures_of_lists_and_page(run: Run, tmp_path: Path) -> None:
    """One recorded job has an estimated rate, one an incomplete bill, one an upper bound."""
    path = tmp_path / "history.db"
    ranking = run("scan", "--recordings", RECORDINGS, "--history", path).stdout
    days = ("--history", path, "--since", "4000d")
    page = run("report", *days, "-o", "-").stdout
    for word, figure in tiles(page).items():
        assert re.search(
            rf"^{word}(?: capacity)? +{re.escape(figure)}( |$)", ranking, re.MULTILINE
        ), word
    by_rule = {cells[0]: cells for cells in table_rows(page)}
    columns = ("by", "rule", "--fields", "rule,avoidable_usd,lost_usd,possible_usd")
    listing = run(*columns, *days, "--output", "markdown").stdout
    for line in listing.splitlines()[4:]:
        name, *figures = (cell.strip().strip("`") for cell in line.strip("| ").split("|"))
        figures = [unescape(figure.replace("\\", "")) for figure in figures]
        assert by_rule[name][1:4] == figures, name
