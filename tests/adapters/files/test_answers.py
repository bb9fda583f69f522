"""Answers about jobs are found in the documents that other tools write, or named with a command."""

import json
from typing import Any

import pytest

from sageaudit.adapters.files.answers import find_answers
from sageaudit.domain.job.describe import parse
from tests.fakes.jobs import training_answer

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/train-vision"
ANSWER = json.loads(json.dumps(training_answer(), default=str))
PROCESSING = {"ProcessingJobName": "p", "ProcessingJobStatus": "Completed"}
TRANSFORM = {"TransformJobName": "t", "TransformJobStatus": "Completed"}
TUNING = {"HyperParameterTuningJobName": "h", "HyperParameterTuningJobStatus": "Completed"}
RECORDING = {"describe": ANSWER, "metrics": {"period_s": 60, "series": []}}


def contents(document: object) -> list[Any]:
    """Returns what is found in a document."""
    return [found.content for found in find_answers(document)]


def reason(document: object) -> str:
    """Returns why a document has no answer."""
    [found] = find_answers(document)
    assert isinstance(found.content, str)
    return found.content


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(ANSWER, [ANSWER], id="an answer"),
        pytest.param(RECORDING, [RECORDING], id="a recording"),
        pytest.param([ANSWER, RECORDING], [ANSWER, RECORDING], id="a list of both"),
        pytest.param({"TrainingJob": ANSWER}, [ANSWER], id="an answer under its own word"),
        pytest.param(
            {
                "Results": [
                    {"TrainingJob": ANSWER},
                    {"HyperParameterTuningJob": TUNING},
                    {"Endpoint": {"EndpointName": "e"}},
                    {"TrialComponent": {"SourceDetail": {"ProcessingJob": PROCESSING}}},
                    {"TrialComponent": {"SourceDetail": {"TransformJob": TRANSFORM}}},
                ]
            },
            [ANSWER, TUNING, PROCESSING, TRANSFORM],
            id="an answer of Search, with each kind that it has",
        ),
        pytest.param(
            {"status_code": 200, "data": ANSWER | {"ResponseMetadata": {}}},
            [ANSWER | {"ResponseMetadata": {}}],
            id="a response that placebo recorded",
        ),
        pytest.param(
            {"interactions": [{"response": {"body": {"string": json.dumps(ANSWER)}}}]},
            [ANSWER],
            id="a response that VCR.py recorded",
        ),
        pytest.param(
            {"status": "SUCCEEDED", "output": json.dumps({"Training": ANSWER})},
            [ANSWER],
            id="an execution of Step Functions",
        ),
        pytest.param(
            {"events": [{"stateExitedEventDetails": {"output": json.dumps(ANSWER)}}] * 2},
            [ANSWER],
            id="a history of Step Functions, in which a job is twice",
        ),
    ],
)
def test_answers_are_found_inside_other_documents(document: object, expected: list[Any]) -> None:
    """Each once, in their order; what is not about a job is passed over."""
    assert contents(document) == expected


def test_the_place_of_each_answer_is_named() -> None:
    document = {"Results": [{"TrainingJob": ANSWER}, {"TrainingJob": PROCESSING}]}
    places = [found.place for found in find_answers(document)]
    assert places == ["Results[0].TrainingJob", "Results[1].TrainingJob"]


def test_the_parts_of_a_datetime_become_a_time() -> None:
    """Placebo writes them so (cloud-custodian, test_sagemaker_training_job_query)."""
    parts = {"hour": 13, "month": 1, "second": 33, "microsecond": 406000, "year": 2018}
    moment = {"__class__": "datetime", **parts, "day": 12, "minute": 23}
    [answer] = contents({"data": {**PROCESSING, "CreationTime": moment}})
    assert answer["CreationTime"] == "2018-01-12T13:23:33.406000"


SNAKE = {
    "training_job_name": "train-vision",
    "training_job_arn": ARN,
    "training_job_status": "Completed",
    "resource_config": {"instance_type": "ml.m5.xlarge", "instance_count": 2},
    "billable_time_in_seconds": 60,
}
CAMEL = {
    "trainingJobName": "train-vision",
    "trainingJobArn": ARN,
    "trainingJobStatus": "Completed",
    "resourceConfig": {"instanceType": "ml.m5.xlarge", "instanceCount": 2},
    "billableTimeInSeconds": 60,
}
ACK: dict[str, Any] = {
    "apiVersion": "sagemaker.services.k8s.aws/v1alpha1",
    "kind": "TrainingJob",
    "spec": {
        "trainingJobName": "train-vision",
        "resourceConfig": {"instanceType": "ml.m5.xlarge", "instanceCount": 2},
    },
    "status": {
        "ackResourceMetadata": {"arn": ARN, "ownerAccountID": "111122223333"},
        "billableTimeInSeconds": 60,
        "lastModifiedTime": "0001-01-01T00:00:00Z",
        "trainingJobStatus": "Completed",
    },
}
OPERATOR = {
    "apiVersion": "sagemaker.aws.amazon.com/v1",
    "kind": "TrainingJob",
    "metadata": {"name": "xgboost"},
    "spec": {"region": "us-east-1", **ACK["spec"]},
    "status": {
        "sageMakerTrainingJobName": "train-vision",
        "trainingJobStatus": "Completed",
        "billableTimeInSeconds": 60,
    },
}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(SNAKE, id="sagemaker-core"),
        pytest.param(CAMEL, id="lower camel case"),
        pytest.param(ACK, id="kubectl and ACK"),
        pytest.param({"kind": "List", "items": [ACK]}, id="kubectl's list"),
        pytest.param(OPERATOR, id="SageMaker Operators for Kubernetes"),
    ],
)
def test_keys_of_other_tools_are_read_by_the_service_model(document: dict[str, Any]) -> None:
    [content] = contents(document)
    job = parse(content.get("describe", content), {})
    assert (job.name, job.status, job.billable_s) == ("train-vision", "Completed", 60)
    assert job.instances == "2 x ml.m5.xlarge"
    assert job.last_modified_at is None
    region = job.region or content.get("region")
    assert region == "us-east-1"


EVENT = {"detail-type": "SageMaker Training Job State Change", "detail": {"TrainingJobArn": ARN}}
CLOUDTRAIL = {
    "eventSource": "sagemaker.amazonaws.com",
    "eventName": "CreateTrainingJob",
    "awsRegion": "eu-west-1",
    "requestParameters": {"trainingJobName": "train-vision"},
}


@pytest.mark.parametrize(
    ("document", "part"),
    [
        (
            EVENT,
            f"an event of EventBridge, which lacks parts of the answer: `sageaudit audit {ARN}",
        ),
        (
            CLOUDTRAIL,
            "of CreateTrainingJob, which has no answer about a job: `sageaudit",
        ),
        ({"Records": [CLOUDTRAIL]}, "audit train-vision --region eu-west-1` audits it"),
        (
            {"TrainingJobSummaries": [ANSWER]},
            "is a ListTrainingJobs answer, which names jobs",
        ),
        (
            {"TrainingJobArn": ARN},
            f"names a job without its answer: `sageaudit audit {ARN}",
        ),
        (
            {"TrainingJobName": "a", "RoleArn": "r"},
            "is a request of a training job: `sageaudit check` checks it",
        ),
        ({**ACK, "status": {}}, "is a Kubernetes object of a training job without its status"),
        ({"resource_changes": []}, "is a Terraform plan: `sageaudit check` checks its jobs"),
        ({"MetricDataResults": []}, "has metrics without their job: `sageaudit record JOB`"),
        (
            {"CompilationJobArn": ARN.replace("training", "compilation")},
            "is about a SageMaker compilation job: only training, processing",
        ),
        ({"a": {"TrainingJobName": {}, "TrainingJobStatus": {}}}, "the top level has none of "),
        ([{}], "is a list without an answer about a job: `sageaudit record JOB"),
        ("text", "is not an object with "),
    ],
)
def test_what_is_no_answer_is_named_with_the_command_to_use(document: object, part: str) -> None:
    assert part in reason(document)


@pytest.mark.parametrize("text", ["`rm -rf`", "a b", "../x", "x" * 80])
def test_no_command_repeats_what_is_no_name(text: str) -> None:
    record = {**CLOUDTRAIL, "eventName": text, "awsRegion": text}
    record["requestParameters"] = {"trainingJobName": text}
    assert text not in reason(record)


def test_a_deep_document_is_searched_in_bounded_depth() -> None:
    document: object = ANSWER
    for _ in range(900):
        document = [document]
    assert reason(document).startswith("is a list without an answer")
