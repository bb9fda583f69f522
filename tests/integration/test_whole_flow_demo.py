"""What a person sees of `make demo`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from local import demo
from tests.integration.whole_flow import a_failed_job


def test_the_demo_shows_what_happened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Progress, the jobs with their cost, one message and what the history answers."""
    monkeypatch.setenv("COLUMNS", "160")
    assert demo.main() == 0
    shown = capsys.readouterr()
    assert not shown.err
    for part in ("26 recorded jobs", "Audited jobs", "sum of bayesian-221019-1807", "together"):
        assert part in shown.out
    assert "MEDIUM  $0.15 of about $0.15 (100%) was lost" in shown.out
    assert "The GPU averaged 6 % (P95 7 %)" in shown.out
    assert "\x1b" not in shown.out


def test_a_job_that_is_not_audited_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its reason, and a code that fails the build."""
    job = a_failed_job()
    broken = replace(job, describe={**job.describe, "ResourceConfig": {"InstanceCount": -1}})
    monkeypatch.setattr(demo, "recorded_jobs", lambda: [broken])
    assert demo.main() == 1
    assert f"{job.name} was not audited: its Describe answer cannot be read" in (
        capsys.readouterr().err
    )
