"""The README's commands that need no account work on the example company."""

import gzip
import re
import shlex
import shutil
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from local import example
from local.recorded import RECORDINGS
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.cli import clock
from sageaudit.cli.main import COMMAND_GROUPS
from sageaudit.domain.sweep import Period
from sageaudit.workflows import report
from sageaudit.workflows.example import company as example_company
from sageaudit.workflows.example.run import record_example
from tests.fakes.command_line import Result, Run
from tests.fakes.cost_reports import SHAPES, Charge, hours_of

ROOT = Path(__file__).parents[2]
_BLOCKS = re.findall(
    r"^```\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)
LINES = [
    " ".join(words)
    for block in _BLOCKS
    for line in block.splitlines()
    if line.startswith(("sageaudit ", ".venv/bin/sageaudit "))
    for words in [shlex.split(line, comments=True)[1:]]
]
NEED_AN_ACCOUNT = (
    "scan",
    "doctor",
    "scan --all-regions --dry-run",
    "scan --organization --role NAME",
    "scan --coverage",
    "audit my-training-job --region eu-west-1",
    "record my-job --anonymize",
)
NEED_NONE = [line for line in LINES if line not in {*NEED_AN_ACCOUNT, "demo"}]
"""Without `demo`, which has tests of its own."""
_MORE = {"reconcile": ("--account", "111122223333")}
"""What a command asks AWS for if it is not given."""


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sets the day after the company's last one. The folder has the files that the README names."""
    monkeypatch.setattr(clock, "utc_now", lambda: example.NOW)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()
    (tmp_path / "local").symlink_to(ROOT / "local")
    shutil.copy(RECORDINGS / "composed-g4dn-12xlarge.json", "job.json")
    shutil.copy(ROOT / "tests/labelled/before_run/inputs/everything_at_once.json", "request.json")
    charge = Charge(datetime(2026, 10, 5, 10, tzinfo=UTC), job="speech-encoder-1")
    Path("report.csv.gz").write_bytes(
        gzip.compress(SHAPES["cur2"](hours_of(charge, hours=5)).encode())
    )


def run_line(run: Run, line: str, company: Path) -> Result:
    """Runs a line of the README; a command that reads a history reads the company's."""
    words = shlex.split(line)
    asks = (
        words[0] in (*COMMAND_GROUPS["Ask the history"], "reconcile") and "--history" not in words
    )
    return run(*words, *(("--history", company) if asks else ()), *_MORE.get(words[0], ()))


def test_each_command_needs_an_account_or_is_tried_here() -> None:
    """The list has no line that the README lacks."""
    assert set(NEED_AN_ACCOUNT) < set(LINES)
    arguments = {line.split()[0] for line in NEED_NONE}
    assert arguments > {"history", "top", "by", "changes", "advice", "savings", "report", "export"}


@pytest.mark.parametrize("line", NEED_NONE)
def test_each_command_answers(run: Run, company: Path, line: str) -> None:
    """It prints something, or writes a file and says so; the request has high findings."""
    done = run_line(run, line, company)
    assert done.exit_code == (10 if line == "check request.json" else 0), done.stderr
    assert len(done.stdout.splitlines()) > 1 or "wrote " in done.stderr or "written" in done.stderr
    assert "no audit" not in done.stderr


def test_the_recommendations_are_those_of_the_page(run: Run, company: Path) -> None:
    """The cards of the report are the first recommendations of the list, one per family."""
    rows = run_line(run, "advice --output json", company).document()["rows"]
    first = {row["family"]: row["rule"] for row in reversed(rows)}
    families = [*dict.fromkeys(row["family"] for row in rows)]
    with SqliteHistory(company, create=False) as history:
        source = report.ReportSource(history, packaged.instance_types())
        period = Period(example.LAST_DAY.replace(day=1), example.LAST_DAY)
        heads, left_out = report.read_report_summaries(source, period, None)
        page = report.assemble_account_report(source, period, None, heads, left_out, example.NOW)
    cards = [(card.example.family, card.example.fix.finding["rule"]) for card in page.top_changes]
    assert cards == [(family, first[family]) for family in families][:3]


def test_followed_recommendations_are_measured(run: Run, company: Path) -> None:
    """These are the smaller GPU type, and the CPU type until the change was undone."""
    measured = {
        row["change"]: row
        for row in run_line(run, "savings --output json", company).document()["rows"]
        if row["outcome"] == "measured"
    }
    row = measured["ResourceConfig.InstanceType = ml.g4dn.2xlarge"]
    assert row["before_usd"] > 4 * row["after_usd"]
    assert row["measured_usd"] > 0


def test_an_undone_recommendation_was_measured_and_is_open_again(
    run: Run, company: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """demand-forecast ran on the smaller type for three weeks.

    The list is checked before they ended, and now.
    """
    alone = [
        workload for workload in example_company.WORKLOADS if workload.name == "demand-forecast"
    ]
    monkeypatch.setattr(example_company, "WORKLOADS", alone)
    before = example.NOW - timedelta(days=20)
    earlier = tmp_path / "earlier.db"
    with SqliteHistory(earlier) as history:
        for job in record_example(history, example.LAST_DAY):
            if job.read_at > before:
                break

    def result(history: Path) -> tuple[str, str | None]:
        rows = run_line(run, "advice list --state all --output json", history).document()["rows"]
        change = "ResourceConfig.InstanceType = ml.m5.4xlarge"
        [row] = [row for row in rows if row["change"] == change]
        return row["state"], row["outcome"]

    assert result(company)[0] == "open"
    saved = run_line(run, "savings --output json", company).document()["rows"]
    [undone] = [row for row in saved if row["outcome"] == "undone"]
    assert undone["change"].endswith("ml.m5.4xlarge")
    assert undone["measured_usd"] > 50
    monkeypatch.setattr(clock, "utc_now", lambda: before)
    assert result(earlier) == ("followed", "measured")


def test_the_made_up_share_of_the_samples_is_that_of_the_readme(run: Run) -> None:
    """One recording is made up; it has most of what the 26 could have saved."""
    done = run("scan", "--recordings", "local/recordings", "--history", "s.db", "--output", "json")
    whole_usd = done.document(parse_float=Decimal)["ranking"]["total"]["avoidable_usd"]
    made_up = run("audit", "--recording", "job.json", "--output", "json")
    share = made_up.document(parse_float=Decimal)["avoidable_usd"] / whole_usd
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"{share:.0%} of the avoidable dollars" in readme
