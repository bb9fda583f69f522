"""What a person sees when the command itself fails or is stopped: a sentence, no stack trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sageaudit.cli.commands import audit as command
from sageaudit.cli.main import main
from sageaudit.domain.audit.document import AuditDocument

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
CALL = [sys.executable, "-c", "from sageaudit.cli.main import main; main()"]


def run(*words: str | Path) -> int:
    """The console script in this process; answers its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sageaudit", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
    return int(str(stopped.value.code))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
@pytest.mark.parametrize("output", ["json", "table"])
def test_a_full_disk_is_said(output: str) -> None:
    """Exit 1, also when the interpreter flushes what it could not write."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*CALL, "audit", "--recording", FAILED, "--output", output],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "sageaudit: cannot go on: No space left on device\n"


@pytest.mark.parametrize("words", [("rules",), ("audit",), ("audit", "--output", "json")])
def test_letters_that_stdout_lacks_stop_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    """They are written as JSON escapes them, so that JSON stays whole."""
    path = tmp_path / "job.json"
    recorded = json.loads(FAILED.read_text())
    recorded["tags"] = [{"Key": "owner", "Value": "Жanna \U0001f600"}]
    path.write_text(json.dumps(recorded))
    what = ("--recording", str(path)) if "audit" in words else ()
    done = subprocess.run(
        [*CALL, *words, *what],
        capture_output=True, timeout=60, check=False,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    if what:
        assert b"\\u0416anna \\ud83d\\ude00" in done.stdout
    if "json" in words:
        assert json.loads(done.stdout.decode("cp1252"))["job"]["owner"] == "Жanna \U0001f600"


def test_a_reader_that_leaves_is_no_failure_to_talk_about() -> None:
    """`sageaudit ... | head -1` says nothing on stderr."""
    many = ["--recording", str(FAILED)] * 100
    with subprocess.Popen(
        [*CALL, "audit", *many, "--output", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("{")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1


def test_ctrl_c_ends_a_batch_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was finished is printed; what follows is not begun; exit 130."""
    begun: list[Path] = []

    def interrupted(path: Path, policy: object) -> AuditDocument:
        begun.append(path)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return real(path, policy)  # type: ignore[arg-type]

    real = command.of_recording
    monkeypatch.setattr(command, "of_recording", interrupted)
    three = ["--recording", str(FAILED)] * 3
    assert run("audit", *three, "--output", "json") == 130
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    assert len(begun) == 2
    assert said.err.strip() == "sageaudit: interrupted"


def test_a_mistake_of_ours_is_one_line_to_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the type and how to see more; nothing of the data is in it."""

    def broken(*_: object) -> AuditDocument:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(command, "of_recording", broken)
    monkeypatch.delenv("SAGEAUDIT_DEBUG", raising=False)
    assert run("audit", "--recording", FAILED) == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "ZeroDivisionError" in said
    assert "report it" in said
    assert "secret" not in said
    monkeypatch.setenv("SAGEAUDIT_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["sageaudit", "audit", "--recording", str(FAILED)])
    with pytest.raises(ZeroDivisionError):
        main()
