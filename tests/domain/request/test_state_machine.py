from typing import Any

import pytest

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.state_machine import requests_in_state_machine


def task(job: str, integration: str = "sagemaker", **keys: Any) -> dict[str, Any]:
    """Returns a state that creates a job."""
    resource = f"arn:aws:states:::{integration}:create{job}"
    return {"Type": "Task", "Resource": resource, **(keys or {"Parameters": {"RoleArn": "x"}})}


@pytest.mark.parametrize(
    ("job", "kind"),
    [
        ("TrainingJob", JobKind.TRAINING),
        ("TrainingJob.sync", JobKind.TRAINING),
        ("ProcessingJob.sync", JobKind.PROCESSING),
        ("TransformJob.sync", JobKind.TRANSFORM),
        ("HyperParameterTuningJob.sync", JobKind.TUNING),
    ],
)
@pytest.mark.parametrize("integration", ["sagemaker", "aws-sdk:sagemaker"])
def test_a_state_that_creates_a_job_has_its_request(
    job: str, kind: JobKind, integration: str
) -> None:
    """With or without waiting for the job."""
    [request] = requests_in_state_machine({"States": {"A": task(job, integration)}}).requests
    assert (request.kind, request.label, request.body) == (kind, "state A", {"RoleArn": "x"})
    assert request.origin.path_in_file(("RoleArn",)) == ("States", "A", "Parameters", "RoleArn")


def test_states_inside_map_and_parallel_states_are_read() -> None:
    """At any depth. A job of a Map state runs several times, which its note says."""
    inner = {"States": {"T": task("TrainingJob.sync", Arguments={})}}
    states = {
        "Both": {"Type": "Parallel", "Branches": [inner, {"States": {"L": {"Type": "Pass"}}}]},
        "Each": {"Type": "Map", "ItemProcessor": {"States": {"In": {"Branches": [inner]}}}},
        "Old": {"Type": "Map", "Iterator": inner},
    }
    requests = requests_in_state_machine({"States": states}).requests
    assert [request.note for request in requests] == [
        None,
        "runs once for each item of Each",
        "runs once for each item of Old",
    ]


def test_a_job_that_is_not_checked_is_named() -> None:
    """Labeling jobs have no instances; a request that is the state's input is not known."""
    states = {
        "Label": task("LabelingJob.sync"),
        "Whole": task("TrainingJob", Arguments="{% $states.input %}"),
        "Model": task("Model"),
    }
    parsed = requests_in_state_machine({"States": states})
    assert parsed.requests == ()
    assert parsed.unchecked_sentences == (
        "state Label: createLabelingJob is not checked",
        "state Whole: its request is not known before the state machine runs",
    )
