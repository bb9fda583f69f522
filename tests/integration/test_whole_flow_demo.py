"""What a person sees of `make demo`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest

from local import demo
from local.recorded import of_file
from tests.integration.whole_flow import a_failed_job

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def shown() -> Iterator[str]:
    """All that it prints on a terminal of 80 columns; it went well."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setenv("COLUMNS", "80")
        assert demo.main() == 0
        yield out.getvalue()


def test_the_demo_shows_what_happened(shown: str) -> None:
    """Progress, the jobs with their cost, and what the history answers."""
    for part in ("27 recorded jobs", "Audited jobs", "together", "spot-not-used $0.10"):
        assert part in shown
    assert "The GPU averaged 6% (P95 7%)" in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_message_shown_is_of_dollars_that_a_fix_avoids(shown: str) -> None:
    """3 h x ($4.89 - $0.94), with the parameter to change; which job is made up is said."""
    [job] = of_file(demo.COMPOSED)
    message = shown[shown.index("as on a phone:") :]
    for part in ("$11.85 of $14.67 (81%) was avoidable", "ResourceConfig.InstanceType", job.name):
        assert part in message
    assert f"{job.name} is made up" in shown


def test_the_readme_shows_that_very_message(shown: str) -> None:
    """Its sample is pasted from the demo's output; paste it again when a text changes."""
    section = README.read_text(encoding="utf-8").split("## What a message says")[1]
    sample = section.split("```\n")[1].splitlines()
    lines = [line.rstrip() for line in shown.splitlines()]
    first = lines.index(sample[0])
    assert lines[first : first + len(sample)] == sample


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
