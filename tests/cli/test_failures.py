"""What a person sees when the command itself fails or is stopped: a sentence, no stack trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sageaudit.cli.main import main
from sageaudit.cli.support.recordings import recorded_audits
from sageaudit.cli.support.recordings.recorded_jobs import recorded_jobs
from sageaudit.domain.job.event import JobEnded
from sageaudit.workflows.audit.attempt import Outcome
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.command_line import Run

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"


def test_ctrl_c_ends_a_batch_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was finished is printed; what follows is not begun; exit 130."""
    begun: list[str] = []

    def interrupted(ended: JobEnded, *others: Any, **named: Any) -> Outcome:
        begun.append(ended.ref.name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return audit_finished_job(ended, *others, **named)

    monkeypatch.setattr(recorded_audits, "audit_finished_job", interrupted)
    files = sorted(DATA.glob("training-02*.json"), key=lambda path: recorded_jobs(path)[0].read_at)
    three = [word for path in files[:3] for word in ("--recording", str(path))]
    done = run("audit", *three, "--output", "json")
    assert done.exit_code == 130
    assert len(done.stdout.splitlines()) == 1
    assert len(begun) == 2
    assert done.stderr.strip() == "sageaudit: interrupted"


def test_a_bug_is_one_line_to_report(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the type and how to see more; nothing of the data is in it."""

    def broken(*_: object, **__: object) -> Outcome:
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
