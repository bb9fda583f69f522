"""Describe*, ListTags and children, and SageMaker's ways to say that a job is gone."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from sageaudit.adapters.aws.sagemaker import SageMakerJobs
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import AccessDenied, JobNotFound, NoCredentials, Throttled, Unavailable

PLACE = "us-east-1:111122223333"


def ref(kind: JobKind) -> JobRef:
    """A job called `Nightly`."""
    found = JobRef.from_arn(f"arn:aws:sagemaker:{PLACE}:{kind.spec.arn_word}/nightly", "Nightly")
    assert found is not None
    return found


class Client:
    """Says the same to every call, or refuses it."""

    def __init__(self, said: Any = None, pages: list[dict[str, Any]] | None = None) -> None:
        self.said = said
        self.pages = pages or []
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(**parameters: Any) -> Any:
            self.calls.append((name, parameters))
            if isinstance(self.said, Exception):
                raise self.said
            return dict(self.said)

        return call

    def get_paginator(self, name: str) -> "Client":
        self.calls.append((name, {}))
        return self

    def paginate(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        self.calls.append(("paginate", parameters))
        if isinstance(self.said, Exception):
            raise self.said
        yield from self.pages


def refused(code: str, message: str = "") -> ClientError:
    """botocore's way to say no."""
    return ClientError({"Error": {"Code": code, "Message": message}}, "DescribeTrainingJob")


def jobs(client: Client) -> SageMakerJobs:
    """The adapter over one client."""
    return SageMakerJobs(lambda account, region: client)


@pytest.mark.parametrize(
    ("kind", "method", "parameter"),
    [
        (JobKind.TRAINING, "describe_training_job", "TrainingJobName"),
        (JobKind.PROCESSING, "describe_processing_job", "ProcessingJobName"),
        (JobKind.TRANSFORM, "describe_transform_job", "TransformJobName"),
        (JobKind.TUNING, "describe_hyper_parameter_tuning_job", "HyperParameterTuningJobName"),
    ],
)
def test_each_kind_has_its_own_describe(kind: JobKind, method: str, parameter: str) -> None:
    """Asked by the name in its own letters; transport metadata is no part of the answer."""
    arn = {f"{kind.spec.prefix}JobArn": "arn"}
    client = Client({**arn, "ResponseMetadata": {"RequestId": "1"}})
    assert jobs(client).describe(ref(kind)) == arn
    assert client.calls == [(method, {parameter: "Nightly"})]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (refused("ResourceNotFound", "x"), JobNotFound),
        (refused("ResourceNotFoundException", "x"), JobNotFound),
        (refused("ValidationException", "Requested resource not found."), JobNotFound),
        (refused("ValidationException", "Could not find training job nightly"), JobNotFound),
        (refused("ValidationException", "The job does not exist."), JobNotFound),
        (refused("ValidationException", "1 validation error detected"), Unavailable),
        (refused("ThrottlingException", "Rate exceeded"), Throttled),
        (refused("AccessDeniedException", "not authorized"), AccessDenied),
        (refused("ExpiredTokenException", "expired"), NoCredentials),
        (refused("InternalFailure", "oops"), Unavailable),
        (NoCredentialsError(), NoCredentials),
        (EndpointConnectionError(endpoint_url="https://x"), Unavailable),
    ],
)
def test_only_a_job_that_is_gone_is_gone(error: Exception, raised: type[Exception]) -> None:
    """By model or by words; the error names it."""
    with pytest.raises(raised, match="Nightly" if raised is JobNotFound else None):
        jobs(Client(error)).describe(ref(JobKind.TRAINING))


def test_the_denied_action_is_named() -> None:
    """As AWS names it, else as the call was."""
    said = "User: x is not authorized to perform: sagemaker:ListTags on resource: y"
    with pytest.raises(AccessDenied) as caught:
        jobs(Client(refused("AccessDeniedException", said))).tags(ref(JobKind.TRAINING))
    assert caught.value.action == "sagemaker:ListTags"


def test_tags_are_read_page_by_page() -> None:
    """Of the ARN."""
    pages: list[dict[str, Any]] = [
        {"Tags": [{"Key": "owner", "Value": "ana"}]},
        {"Tags": [{"Key": "team", "Value": ""}]},
        {"Tags": []},
    ]
    client = Client(pages=pages)
    assert jobs(client).tags(ref(JobKind.TRAINING)) == {"owner": "ana", "team": ""}
    assert ("paginate", {"ResourceArn": ref(JobKind.TRAINING).arn}) in client.calls


def test_children_are_read_page_by_page() -> None:
    """With the name in its own letters; what is no training job's ARN is left out."""
    arn = f"arn:aws:sagemaker:{PLACE}:training-job/"
    rows: list[dict[str, str]] = [
        {"TrainingJobName": "Nightly-001", "TrainingJobArn": f"{arn}nightly-001"},
        {"TrainingJobName": "Nightly-002", "TrainingJobArn": f"{arn}nightly-002"},
        {"TrainingJobName": "odd", "TrainingJobArn": "arn:aws:s3:::odd"},
    ]
    pages: list[dict[str, Any]] = [{"TrainingJobSummaries": part} for part in (rows[:1], rows[1:])]
    client = Client(pages=pages)
    found = list(jobs(client).children(ref(JobKind.TUNING)))
    assert [child.name for child in found] == ["Nightly-001", "Nightly-002"]


@pytest.mark.parametrize(
    "tags",
    [
        [{}],
        [{"Key": "owner"}],
        [{"Key": "owner", "Value": 7}],
        [None],
        5,
        "x",
        [{"Key": [], "Value": "x"}],
    ],
)
def test_tags_of_another_form_are_no_answer(tags: Any) -> None:
    """A row without a key, or with a value that is no text: it is asked again later."""
    with pytest.raises(Unavailable, match="cannot be read"):
        jobs(Client(pages=[{"Tags": tags}])).tags(ref(JobKind.TRAINING))


def test_the_jobs_of_an_automl_job_are_the_steps_of_its_candidates() -> None:
    """Of all kinds, each once; a step without an ARN, and one of no audited kind, are left out."""

    def step(word: str, name: str, step_name: str | None = None) -> dict[str, str]:
        arn = f"arn:aws:sagemaker:{PLACE}:{word}/{name}"
        return {"CandidateStepArn": arn, "CandidateStepName": step_name or name}

    shared = step("processing-job", "churn-db-1")
    first = [
        shared,
        step("training-job", "churn-dpp0-1", "its-own-name"),
        {"CandidateStepName": "x"},
    ]
    second = [shared, step("transform-job", "churn-dpp1-rpb"), step("endpoint", "churn")]
    candidates = [{"CandidateSteps": first}, {}, {"CandidateSteps": None}]
    pages: list[dict[str, Any]] = [
        {"Candidates": candidates},
        {"Candidates": [{"CandidateSteps": second}]},
    ]
    client = Client(pages=pages)
    found = list(jobs(client).children(ref(JobKind.AUTOML)))
    assert client.calls == [
        ("list_candidates_for_auto_ml_job", {}),
        ("paginate", {"AutoMLJobName": "Nightly"}),
    ]
    assert [(ref.kind.value, ref.name) for ref in found] == [
        ("processing", "churn-db-1"),
        ("training", "churn-dpp0-1"),
        ("transform", "churn-dpp1-rpb"),
    ]


@pytest.mark.parametrize("steps", [5, "x", [None]])
def test_steps_of_another_form_are_no_answer(steps: Any) -> None:
    """It is asked again later."""
    client = Client(pages=[{"Candidates": [{"CandidateSteps": steps}]}])
    with pytest.raises(Unavailable, match="cannot be read"):
        list(jobs(client).children(ref(JobKind.AUTOML)))
