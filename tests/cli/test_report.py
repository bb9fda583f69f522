"""`sageaudit report` writes a page from a recording or a history."""

from pathlib import Path

import pytest

from sageaudit.cli import clock
from sageaudit.workflows import report as report_contents
from tests.fakes.command_line import Run
from tests.fakes.random_history import NOW

RECORDINGS = Path(__file__).parents[2] / "local" / "recordings"
COMPOSED = RECORDINGS / "composed-g4dn-12xlarge.json"
NAME = "tile-classifier-2026-06-09-08-02-11-408"
LONG = "4000d"


def test_a_recording_becomes_the_page_of_its_job(run: Run, tmp_path: Path) -> None:
    """The file is named on stderr; stdout stays empty."""
    path = tmp_path / "job.html"
    done = run("report", "--recording", COMPOSED, "-o", path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"wrote {path}: 1 job" in done.stderr
    text = path.read_text(encoding="utf-8")
    assert "$10.38 of $14.67 (71%) was avoidable." in text
    assert "GPU utilisation" in text


def test_a_history_becomes_the_page_of_its_account(
    run: Run, recordings_history: Path, tmp_path: Path
) -> None:
    """Its headline is that of the ranking: both read the daily sums."""
    path = tmp_path / "account.html"
    done = run("report", "--history", recordings_history, "--since", LONG, "-o", path)
    assert done.exit_code == 0, done.stderr
    news = "up to about $33.12: about $11.40 or more was avoidable and about $0.16 was lost."
    assert news in path.read_text()


def test_a_job_is_found_in_the_history_by_its_name(
    run: Run, recordings_history: Path, tmp_path: Path
) -> None:
    """Its page has the charts: the history stores the series."""
    path = tmp_path / "job.html"
    done = run("report", NAME, "--history", recordings_history, "--since", LONG, "-o", path)
    assert done.exit_code == 0, done.stderr
    assert f"<h1><bdi>{NAME}</bdi></h1>" in path.read_text()
    assert "GPU utilisation" in path.read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["absent-job"], 3, "no audit of absent-job"),
        (
            ["--until", "2019-01-01", "--since", "2018-12-01"],
            3,
            "no audit of 2018-12-01 to 2019-01-01: the history has audits of",
        ),
        (["--account", "999988887777"], 3, "no audit of account 999988887777"),
        (["--since", "soon"], 2, "--since"),
        (["--since", "2026-11-01T10:00Z"], 2, "give a whole day"),
        (["--since", "2099-01-01"], 2, "2099-01-01"),
        (["--policy", "policy.toml"], 2, "--policy"),
    ],
    ids=["job", "days", "account", "no-day", "hours", "future", "policy"],
)
def test_an_impossible_report_is_one_sentence(
    run: Run, recordings_history: Path, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    """It has the documented exit code, and writes no file."""
    path = tmp_path / "report.html"
    days = [] if "--since" in words else ["--since", LONG]
    done = run("report", *words, *days, "--history", recordings_history, "-o", path)
    assert done.exit_code == code, done.stderr
    assert message in done.stderr
    assert len(done.stderr.splitlines()) <= 4
    assert not path.exists()


def test_a_page_of_many_jobs_keeps_the_most_wasteful(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page and the command say so; the sums include all jobs."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)
    words = ("report", "--history", file, "--since", "90d", "-o")
    page_text = run(*words, "-").stdout
    monkeypatch.setattr(report_contents, "MAX_LISTED_JOBS", 20)
    done = run(*words, tmp_path / "page")
    text = (tmp_path / "page").read_text("utf-8")
    assert "the most wasteful 18 jobs and 2 tuning jobs" in done.stderr
    assert "(130 others are only in its sums)" in done.stderr
    news = next(line for line in page_text.splitlines() if "jobs cost" in line)
    assert news.partition("jobs cost")[2][:60] in text
    assert "The 18 jobs and 2 tuning jobs with the most avoidable and lost dollars" in text
    assert "130 more are only in the totals" in text
    assert text.count(' data-u="') < 20 < page_text.count(' data-u="')
