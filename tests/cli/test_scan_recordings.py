"""`sageaudit scan --recordings` ranks recorded jobs without AWS."""

import gzip
import json
import os
import shutil
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.files import recording
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.sums import Scope, sum_rows
from sageaudit.domain.job import describe
from sageaudit.workflows.recordings import jobs as recorded_jobs
from tests.fakes.command_line import Run

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "local" / "recordings"
JOBS = ROOT / "tests" / "recorded" / "data" / "jobs"
FAILED = JOBS / "processing-067-failed.json"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Returns the path of the history file."""
    return tmp_path / "history.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a recording in a subfolder."""
    below = tmp_path / "recordings" / "below"
    below.mkdir(parents=True)
    shutil.copy(FAILED, below)
    return below.parent


def scan_document(run: Run, folder: Path, history: Path, *words: str) -> Any:
    """Returns the JSON of a scan."""
    done = run("scan", "--recordings", folder, "--history", history, "--output", "json", *words)
    return json.loads(done.stdout, parse_float=Decimal)


def test_recordings_are_audited_and_stored(run: Run, history: Path) -> None:
    """For the jobs of the demo, the ranking equals the history's sums to the microdollar."""
    result = scan_document(run, DEMO, history)
    assert result["scan"]["jobs"]["audited"] >= 25
    assert result["scan"]["metrics_requested"] == 0
    ranking = result["ranking"]
    with SqliteHistory(history, create=False) as stored_sums:
        days = (ranking["since"], ranking["until"])
        sums = sum_rows(stored_sums.daily_sums(Scope.ACCOUNT, *map(date.fromisoformat, days)))
    for key in ("total_usd", "avoidable_usd", "lost_usd", "possible_usd"):
        assert ranking["total"][key] == getattr(sums, key)
    assert ranking["total"]["jobs"] == sums.jobs
    assert ranking["families"][0]["fix"]["fix"]
    assert scan_document(run, DEMO, history)["ranking"] == ranking


def test_a_scan_reads_each_file_once(
    run: Run, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job is parsed twice, to list and to audit it, which also redacts it."""
    counted: Counter[str] = Counter()
    recorded_jobs._read_version.cache_clear()
    for module, name in (
        (recording, "read_all"),
        (recorded_jobs, "parse_answer"),
        (describe, "sanitize_answer"),
    ):
        called = getattr(module, name)

        def count(*args: Any, called: Any = called, name: str = name, **words: Any) -> Any:
            counted[name] += 1
            return called(*args, **words)

        monkeypatch.setattr(module, name, count)
    jobs = scan_document(run, DEMO, history)["scan"]["jobs"]["audited"]
    assert counted["read_all"] == len([*DEMO.rglob("*.json")])
    assert counted["parse_answer"] <= 2 * jobs
    assert counted["sanitize_answer"] <= 2 * jobs


def test_a_folder_is_read_whatever_is_in_it(run: Run, folder: Path, history: Path) -> None:
    """JSON lines and gzip are read; a pipe that nobody writes is refused at once."""
    files = sorted(JOBS.glob("training-02*.json"))[:2]
    answers = [path.read_text(encoding="utf-8") for path in files]
    lines = "".join(f"{json.dumps(json.loads(answer))}\n" for answer in answers)
    (folder / "jobs.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    done = run("scan", "--recordings", folder, "--history", history)
    assert done.exit_code == 2
    assert "pipe.json: is not a regular file" in done.stderr
    assert "jobs.jsonl.gz" not in done.stderr
    assert "folder.json" not in done.stderr


def test_an_answer_without_any_time_is_in_no_history(
    run: Run, tmp_path: Path, history: Path
) -> None:
    path = tmp_path / "job.json"
    path.write_text('{"TrainingJobName": "a", "TrainingJobStatus": "Completed"}')
    done = run("audit", "--recording", path, "--history", history)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "has no creation, start or end time, without which no history" in done.stderr
    assert run("audit", "--recording", path).exit_code == 0


def test_a_file_that_cannot_be_read_is_one_line(run: Run, folder: Path, history: Path) -> None:
    """The exit code 2 follows the results; the others are audited."""
    (folder / "broken.json").write_text("{")
    (folder / "other.json").write_text('{"hello": "world"}')
    (folder / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (folder / "notes.txt").write_text("not looked at")
    bad = json.loads(FAILED.read_text(encoding="utf-8"))
    bad["describe"]["CreationTime"] = "yesterday"
    (folder / "bad.json").write_text(json.dumps(bad))
    done = run("scan", "--recordings", folder, "--history", history)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 5
    assert done.stderr.splitlines()[-1].startswith("sageaudit: the audits are saved in ")
    for name in ("broken.json", "other.json", "bytes.json", "bad.json"):
        assert name in done.stderr
    assert done.stdout.startswith("1 job cost ")
    assert "Not audited" in done.stdout
    for name in ("broken.json", "other.json", "bytes.json", "bad.json"):
        assert name in "".join(done.stdout.split())


def test_a_recording_with_an_arn_that_is_no_jobs_is_not_audited(
    run: Run, folder: Path, history: Path
) -> None:
    """SageMaker's local mode writes such ARNs. The file is named, and the others are ranked."""
    recording = json.loads(FAILED.read_text(encoding="utf-8"))
    recording["describe"]["ProcessingJobArn"] = "local:arn-does-not-matter"
    (folder / "local.json").write_text(json.dumps(recording))
    done = run("scan", "--recordings", folder, "--history", history)
    assert done.exit_code == 2
    assert done.stdout.startswith("1 job cost ")
    assert "local.json: its ARN is not the ARN of a job" in done.stderr
    assert "Not audited" in done.stdout
    both = run(
        "audit",
        *("--recording", FAILED),
        *("--recording", folder / "local.json"),
        *("--history", history, "--output", "json"),
    )
    assert both.exit_code == 2
    assert "local.json: its ARN is not the ARN of a job" in both.stderr
    assert json.loads(both.stdout)["job"]["name"] == recording["describe"]["ProcessingJobName"]


def test_hostile_names_are_inert_on_the_terminal(run: Run, folder: Path, history: Path) -> None:
    """A file name cannot move the cursor; a tag that could is ignored."""
    recording = json.loads(FAILED.read_text(encoding="utf-8"))
    recording["tags"] = [{"Key": "owner", "Value": "\x1b[2J\u202eann[bold]"}]
    (folder / "a\x1b[31m.json").write_text(json.dumps(recording))
    (folder / "below" / FAILED.name).unlink()
    (folder / "\x1b]0;title\x07.json").write_text("{")
    done = run("scan", "--recordings", folder, "--history", history)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout


def test_days_and_kinds_select_recordings(run: Run, history: Path) -> None:
    """They select as in an account."""
    kinds = scan_document(run, DEMO, history, "--kind", "processing")["scan"]["jobs"]
    assert 0 < kinds["audited"] < 10
    none = scan_document(run, DEMO, history, "--since", "1d")
    assert none["scan"]["jobs"]["audited"] == 0
