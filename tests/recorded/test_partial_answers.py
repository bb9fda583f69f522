"""Answers that lack times: no sentence claims a state that the answer does not show."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import pytest

from sageaudit.adapters.files.recording import parse
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.terminal.render import render
from sageaudit.workflows.recordings.run import audit_parsed_recording

CREATED, STARTED, ENDED, MODIFIED = (f"2026-09-01T{hour}:00:00Z" for hour in (10, 11, 12, 13))
STATUSES = ("Completed", "Failed", "Stopped", "InProgress", "Stopping")


def answers(kind: JobKind, status: str) -> Iterator[dict[str, Any]]:
    """Yields an answer with each subset of its times, in two lengths of the answer."""
    spec = kind.spec
    times = {
        "CreationTime": CREATED,
        spec.start_key: STARTED,
        spec.end_key: ENDED,
        "LastModifiedTime": MODIFIED,
    }
    cluster: Any = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1}
    for key in reversed((spec.cluster_path or "x").split(".")):
        cluster = {key: cluster}
    named = {
        spec.name_key: "q",
        spec.arn_key: f"arn:aws:sagemaker:us-east-1:111122223333:{spec.arn_word}/q",
        spec.status_key: status,
    }
    counted = {"TrainingTimeInSeconds": 3600} if kind is JobKind.TRAINING else {}
    for number in range(len(times) + 1):
        for keys in combinations(times, number):
            known = {key: times[key] for key in keys}
            yield named | cluster | known
            yield named | cluster | known | counted


def report(answer: Mapping[str, Any]) -> str:
    """Returns the audit as the terminal shows it, on one line."""
    console = make_console(no_color=True)
    with console.capture() as captured:
        render(audit_parsed_recording(parse(answer), Policy()), console)
    return " ".join(captured.get().split())


@pytest.mark.parametrize("kind", JobKind)
@pytest.mark.parametrize("status", STATUSES)
def test_a_missing_time_is_missing_and_nothing_else(kind: JobKind, status: str) -> None:
    spec = kind.spec
    has_ended = status in {"Completed", "Failed", "Stopped"}
    for answer in answers(kind, status):
        text = report(answer)
        shown = answer.keys()
        shows_end = not shown.isdisjoint({spec.end_key, "LastModifiedTime"})
        can_say_never_started = (
            has_ended
            and status != "Completed"
            and "CreationTime" in shown
            and shows_end
            and shown.isdisjoint({spec.start_key, "TrainingTimeInSeconds"})
        )
        assert "1970" not in text
        assert "(-" not in text
        assert "waiting for its instances" not in text
        assert can_say_never_started or "never started" not in text, answer
        assert not has_ended or "not ended" not in text, answer
        assert not has_ended or "still running" not in text, answer


@pytest.mark.money
@pytest.mark.parametrize("kind", [JobKind.TRAINING, JobKind.PROCESSING])
def test_a_failed_run_loses_all_of_a_known_bill(kind: JobKind) -> None:
    """Whichever of its other times are missing."""
    bills = 0
    for answer in answers(kind, "Failed"):
        document = audit_parsed_recording(parse(answer), Policy())
        if document["bill"]["total_usd"]:
            bills += 1
            assert document["lost_usd"] == document["bill"]["total_usd"], answer
    assert bills
