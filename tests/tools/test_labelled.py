"""`python -m tools.labelled` audits a labelled job by its name."""

import json

import pytest

from tools import labelled

STORY, EXPERT_JOB, FAMILY = "a-well-fed-gpu", "hung-at-the-end-g5", "family-all-idle-g5-xlarge"


def test_names_are_listed_as_far_as_they_contain_what_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The names are those of stories, of jobs that an expert judged, and of families."""
    assert labelled.main([]) == 0
    assert {STORY, EXPERT_JOB, FAMILY} <= set(capsys.readouterr().out.splitlines())
    assert labelled.main(["hung-at"]) == 0
    assert capsys.readouterr().out.split() == ["end-hung-at-a-barrier-p5en", EXPERT_JOB]
    assert labelled.main(["no-such-job"]) == 3


@pytest.mark.parametrize(
    ("name", "rule"), [(STORY, None), (EXPERT_JOB, "idle-tail"), (FAMILY, "gpu-idle")]
)
def test_the_audit_of_a_name(
    name: str, rule: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit is printed for people, and with --json as a document."""
    assert labelled.main([name, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rules = {finding["rule"] for finding in document["findings"]}
    assert rule in rules or rule is None
    assert labelled.main([name]) == 0
    assert document["job"]["name"] in capsys.readouterr().out


@pytest.mark.parametrize(("name", "runs"), [(STORY, 1), (EXPERT_JOB, 1), (FAMILY, 7)])
def test_the_recordings_of_a_name(name: str, runs: int, capsys: pytest.CaptureFixture[str]) -> None:
    """There is one for each run, as `sageaudit audit --recording` reads it."""
    assert labelled.main([name, "--recordings"]) == 0
    recordings = json.loads(capsys.readouterr().out)
    assert len(recordings) == runs
    assert all(recorded["metrics"]["series"] for recorded in recordings)
