"""What a person sees when the command itself fails or is stopped: a sentence, no stack trace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sageaudit.cli.commands import audit as command
from sageaudit.cli.main import main
from sageaudit.cli.support.recordings import recorded_audit
from sageaudit.domain.audit.document import AuditDocument
from tests.fakes.command_line import Run

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"


def test_ctrl_c_ends_a_batch_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was finished is printed; what follows is not begun; exit 130."""
    begun: list[Path] = []

    def interrupted(path: Path, *others: object) -> AuditDocument:
        begun.append(path)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return real(path, *others)  # type: ignore[arg-type]

    real = recorded_audit.of_recording
    monkeypatch.setattr(command, "of_recording", interrupted)
    three = ["--recording", str(FAILED)] * 3
    done = run("audit", *three, "--output", "json")
    assert done.exit_code == 130
    assert len(done.stdout.splitlines()) == 1
    assert len(begun) == 2
    assert done.stderr.strip() == "sageaudit: interrupted"


def test_a_bug_is_one_line_to_report(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the type and how to see more; nothing of the data is in it."""

    def broken(*_: object) -> AuditDocument:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(command, "of_recording", broken)
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
