"""`sageaudit history`, `top` and `show` on a file of audits."""

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from tests.fakes.command_line import Run
from tests.fakes.entries import entry
from tests.fakes.random_history import NOW, REGIONS

RECORDED = Path(__file__).parents[1] / "recorded/data/jobs/training-020-c4-8xlarge-x2-failed.json"


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the commands run on the day of the audits."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)


def test_the_newest_audits_are_a_table_of_80_columns(run: Run, file: Path) -> None:
    """It has twenty rows; stderr says how to print the others."""
    done = run("history", "--history", file)
    lines = done.stdout.splitlines()
    assert lines[0] == "Jobs that ended from 2026-10-21 to 2026-11-20 (UTC)"
    titles = "Ended Job Spend Avoidable Lost Top finding Team"
    assert lines[1].split() == titles.split()
    assert len(lines) == 22
    assert max(map(len, lines)) <= 80
    assert "there are more rows: --all prints all of them" in done.stderr


def test_json_has_rows_and_read_counts(run: Run, file: Path) -> None:
    """It has the schema, which tells scripts its keys."""
    page = run("history", "--history", file, "--limit", 2, "--output", "json").document()
    assert set(page) == {"schema", "rows", "more", "read"}
    assert (page["schema"], page["more"]) == (1, True)
    assert page["read"] == {"rows": 3, "sums": 0}
    rows = page["rows"]
    assert {"arn", "rollup", "total_usd", "owner", "severity"} <= set(rows[0])


def test_a_filter_without_an_index_counts_what_it_read(run: Run, file: Path) -> None:
    """A filter with an index reads only the rows it shows, and one more."""
    words = ("history", "--history", file, "--limit", 3, "--output", "json")
    read = run(*words, "--region", REGIONS[0]).document()["read"]["rows"]
    assert read > run(*words, "--owner", "ana").document()["read"]["rows"]


@pytest.mark.parametrize("sort", ["duration", "waiting"])
def test_audits_are_sorted_by_time(run: Run, recordings_history: Path, sort: str) -> None:
    """The longest is first, with the time as a column, on one page and on all."""
    words: tuple[object, ...] = ("history", "--history", recordings_history, "--sort", sort)
    words = (*words, "--since", "2018-01-01")
    assert sort.capitalize() in run(*words).stdout.splitlines()[1]
    words = (*words, "--output", "json")
    every = run(*words, "--all").document()["rows"]
    times = [row[f"{sort}_s"] or 0 for row in every]
    assert times == sorted(times, reverse=True)
    assert any(times)
    assert run(*words, "--limit", 5).document()["rows"] == every[:5]


def test_findings_of_a_rule_have_their_own_columns(run: Run, file: Path) -> None:
    """The rule is a name or an id; a field of the audit is read if it is asked for."""
    done = run("history", "--history", file, "--rule", "GPU_IDLE", "--limit", 3)
    assert done.stdout.split("\n")[1].split() == ["Ended", "Job", "Severity", "Saving", "Finding"]
    by_id = run("history", "--history", file, "--rule", "SA201", "--limit", 3)
    assert by_id.stdout == done.stdout
    rows = run(
        *("history", "--history", file, "--rule", "gpu-idle", "--fields", "job,status,saving_usd"),
        *("--output", "json"),
    ).document()["rows"]
    assert {row["status"] for row in rows} <= {"Completed", "Failed"}
    assert set(rows[0]) == {"job", "status", "saving_usd"}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--family", "training/ResNet"], "matches nothing: did you mean training/resnet?"),
        (["--owner", "Ana"], "--owner Ana matches nothing: did you mean ana?"),
        (["--owner", "ana", "--region", "eu-west1"], "--region eu-west1 matches nothing: did you"),
        (["--account", "111122223334"], "did you mean 111122223333?"),
        (["--status", "Faild"], "--status Faild matches nothing: did you mean Failed?"),
        (["--status", "failed", "--kind", "transform"], "--kind transform matches nothing"),
        (["--rule", "gpu-idel"], "there is no rule gpu-idel: did you mean gpu-idle?"),
        (["--since", "2026-08", "--status", "Lost"], "the history has audits of"),
    ],
)
def test_nothing_found_is_no_error_and_says_where_to_look(
    run: Run, file: Path, words: list[str], hint: str
) -> None:
    """Scripts get an empty list."""
    done = run("history", "--history", file, *words, "--output", "json")
    assert done.document()["rows"] == []
    assert hint in done.stderr
    assert run("history", "--history", file, *words).stdout == ""


def test_the_most_wasteful_jobs_come_first_and_fit_80_columns(run: Run, file: Path) -> None:
    """The order is that of `history --sort waste`."""
    words = ("--history", file, "--limit", 4, "--output", "json")
    top, sorted_ = run("top", *words).document(), run("history", "--sort", "waste", *words)
    assert top["rows"] == sorted_.document()["rows"]
    assert max(map(len, run("top", "--history", file).stdout.splitlines())) <= 80


def test_a_scanned_job_is_shown_as_audit_shows_it(run: Run, tmp_path: Path) -> None:
    """It is found by name or ARN; fixes are printed as code too.

    A history also knows the job's family.
    """
    (tmp_path / "jobs").mkdir()
    shutil.copy(RECORDED, tmp_path / "jobs")
    file = tmp_path / "history.db"
    scan = run("scan", "--recordings", tmp_path / "jobs", "--history", file)
    assert scan.exit_code == 0, scan.stderr
    words = ("--history", file)
    [row] = run("history", *words, "--since", "4000d", "--output", "json").document()["rows"]
    by_name = run("show", row["job"], *words)
    audited = run("audit", "--recording", RECORDED).stdout
    assert "Findings" in audited.partition("Not judged")[0]
    assert by_name.stdout.splitlines()[:30] == audited.splitlines()[:30]
    assert run("show", row["arn"], *words).stdout == by_name.stdout
    assert "Fixes as boto3" in run("show", row["job"], *words, "--fix-as", "boto3").stdout
    assert run("show", row["job"], *words, "--output", "json").document()["schema"] == 1


def test_each_version_of_a_job_can_be_shown(run: Run, tmp_path: Path) -> None:
    """For a version that does not exist, the error says how many there are."""
    file = tmp_path / "history.db"
    with SqliteHistory(file) as history:
        history.record(entry())
        history.record(entry(modified_s=60, bill={"total_usd": Decimal("9.99")}))
    first = run("show", "train-1", "--version", 1, "--history", file, "--output", "json")
    assert first.document()["audit"]["version"] == 1
    none = run("show", "train-1", "--version", 7, "--history", file)
    assert none.exit_code == 3
    assert "train-1 has no version 7: it has 2 versions" in none.stderr
