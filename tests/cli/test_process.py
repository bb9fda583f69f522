"""How the command starts, fails and is stopped: streams, signals, imports and errors."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sageaudit.cli.main import main
from sageaudit.domain.job.ref import JobEndEvent
from sageaudit.workflows.audit.attempt import AuditOutcome
from sageaudit.workflows.audit.run import audit_finished_job
from sageaudit.workflows.recordings import run as recorded_audits
from sageaudit.workflows.recordings.jobs import RecordedPart, recorded_parts
from tests.fakes.command_line import Run

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
SCRIPT = str(Path(sys.executable).with_name("sageaudit"))


def test_the_installed_script_prints_and_exits(tmp_path: Path) -> None:
    """Data is on stdout with exit code 0; an error is one sentence on stderr with its code."""
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    done, failed = (
        subprocess.run(
            [SCRIPT, "audit", "--recording", path, "--output", "json"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        for path in (FAILED, bad)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["job"]["status"] == "Failed"
    assert (failed.returncode, failed.stdout) == (2, "")
    assert len(failed.stderr.splitlines()) == 1


def test_the_package_runs_as_the_command() -> None:
    """`python -m sageaudit` has the output, name and exit codes of the script."""
    for words, code in ((("--version",), 0), (("histroy",), 2)):
        done, script = (
            subprocess.run([*command, *words], capture_output=True, text=True, check=False)
            for command in ((sys.executable, "-m", "sageaudit"), (SCRIPT,))
        )
        assert (done.returncode, done.stdout, done.stderr) == (code, script.stdout, script.stderr)


def test_only_the_command_that_runs_is_imported(tmp_path: Path) -> None:
    """The list of commands, a rule's page, the audit of a recording and the list of a history start
    without boto3 and DuckDB. `--version` imports few of our modules, and a list imports no rules.
    """
    code = (
        "import atexit, sys; from sageaudit.cli.main import cli\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "cli.main(sys.argv[1:], standalone_mode=False)"
    )
    history = str(tmp_path / "history.db")
    started: tuple[tuple[tuple[str, ...], set[str], int], ...] = (
        (("--version",), set(), 14),
        ((), set(), 14),
        (("rules", "gpu-idle"), {"rules"}, 205),
        (("audit", "--recording", str(FAILED), "--history", history), {"audit"}, 285),
        (("history", "--history", history), {"history"}, 158),
    )
    for words, loaded, most in started:
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        modules = set(done.stderr.split())
        prefix = "sageaudit.cli.commands."
        assert {name.removeprefix(prefix) for name in modules if name.startswith(prefix)} == loaded
        assert not {"boto3", "botocore", "duckdb"} & modules
        ours = {name for name in modules if name.partition(".")[0] == "sageaudit"}
        assert len(ours) <= most, words
        assert loaded != {"history"} or not any("sageaudit.rules" in name for name in ours)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
@pytest.mark.parametrize("output", ["json", "table"])
def test_a_full_disk_is_reported(output: str) -> None:
    """The exit code is 1, even if the failure is in the interpreter's last flush."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [SCRIPT, "audit", "--recording", FAILED, "--output", output],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "sageaudit: cannot continue: No space left on device\n"


@pytest.mark.parametrize("words", [("rules",), ("audit",), ("audit", "--output", "json")])
def test_characters_that_stdout_cannot_encode_stop_nothing(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """They are written as JSON escapes, so that JSON stays valid."""
    path = tmp_path / "job.json"
    recorded = json.loads(FAILED.read_text())
    recorded["tags"] = [{"Key": "owner", "Value": "Жanna \U0002000b"}]
    path.write_text(json.dumps(recorded))
    operation = ("--recording", str(path)) if "audit" in words else ()
    done = subprocess.run(
        [SCRIPT, *words, *operation],
        capture_output=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if operation:
        assert b"\\u0416anna \\ud840\\udc0b" in done.stdout
    if "json" in words:
        assert json.loads(done.stdout.decode("cp1252"))["job"]["owner"] == "Жanna \U0002000b"


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("rules",), 0),
        (("prices", "ml.g5.2xlarge", "--output", "json"), 0),
        (("audit", *["--recording", str(FAILED)] * 100, "--output", "json"), 1),
    ],
    ids=["rules", "prices", "a batch"],
)
def test_a_closed_pipe_is_not_an_error(words: tuple[str, ...], lines: int) -> None:
    """`sageaudit ... | head -1` exits with 0 and prints nothing on stderr."""
    with subprocess.Popen(
        [SCRIPT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines):
            assert process.stdout.readline().startswith("{")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(300) == 0


def test_ctrl_c_ends_a_batch_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished results are printed, the next job does not start, and the exit code is 130."""
    begun: list[str] = []

    def interrupted(ended: JobEndEvent, *other_modules: Any, **named_modules: Any) -> AuditOutcome:
        begun.append(ended.ref.name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return audit_finished_job(ended, *other_modules, **named_modules)

    monkeypatch.setattr(recorded_audits, "audit_finished_job", interrupted)

    def read_at(path: Path) -> datetime:
        [part] = recorded_parts(path)
        assert isinstance(part, RecordedPart)
        return part.jobs[0].read_at

    files = sorted(DATA.glob("training-02*.json"), key=read_at)
    three = [word for path in files[:3] for word in ("--recording", str(path))]
    done = run("audit", *three, "--output", "json")
    assert done.exit_code == 130
    assert len(done.stdout.splitlines()) == 1
    assert len(begun) == 2
    assert done.stderr.strip() == "sageaudit: interrupted"


def test_a_bug_is_one_line_to_report(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the exception's type and how to see more, and contains no data."""

    def broken(*_: object, **__: object) -> AuditOutcome:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(recorded_audits, "audit_finished_job", broken)
    monkeypatch.delenv("SAGEAUDIT_DEBUG", raising=False)
    done = run("audit", "--recording", FAILED)
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert "ZeroDivisionError" in done.stderr
    assert "report it" in done.stderr
    assert "secret" not in done.stderr
    monkeypatch.setenv("SAGEAUDIT_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["sageaudit", "audit", "--recording", str(FAILED)])
    with pytest.raises(ZeroDivisionError):
        main()
