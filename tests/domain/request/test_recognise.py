import json
from typing import Any

import pytest

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.recognise import FileFormat, recognise
from sageaudit.errors import MalformedData
from tests.fakes.planned import REQUESTED, body

STEPS = {"Steps": [{"Name": "T", "Type": "Training", "Arguments": {}}]}


@pytest.mark.parametrize("kind", REQUESTED)
def test_a_request_is_recognised_by_its_name_key_or_its_parameters(kind: JobKind) -> None:
    """Also without the job's name."""
    made = body(kind)
    assert recognise(made, api_model()).format.value == kind.value
    made.pop(f"{kind.spec.prefix}JobName")
    assert recognise(made, api_model()).format.value == kind.value


@pytest.mark.parametrize(
    "document",
    [
        STEPS,
        {"PipelineName": "p", "PipelineDefinition": json.dumps(STEPS)},
        {"PipelineDefinition": STEPS},
        {"PipelineDefinitionBody": json.dumps(STEPS)},
        {"PipelineDefinition": {"PipelineDefinitionBody": STEPS}},
        {"pipelineName": "p", "pipelineDefinition": json.dumps(STEPS)},
        json.dumps(STEPS),
    ],
)
def test_a_pipeline_may_be_wrapped(document: object) -> None:
    """As create-pipeline accepts it, and describe-pipeline prints it."""
    result = recognise(document, api_model())
    assert result.format is FileFormat.PIPELINE
    assert [request.label for request in result.requests] == ["step T"]


def test_the_region_of_a_pipeline_is_that_of_its_arn() -> None:
    """As describe-pipeline prints it. The definition has none."""
    arn = "arn:aws:sagemaker:eu-west-1:111122223333:pipeline/p"
    answer = {"PipelineArn": arn, "PipelineName": "p", "PipelineDefinition": json.dumps(STEPS)}
    assert recognise(answer, api_model()).requests[0].region == "eu-west-1"
    assert recognise({**answer, "PipelineArn": 3}, api_model()).requests[0].region is None


def test_a_tuning_job_asks_for_training_jobs() -> None:
    """Each definition is a request of its own, after the tuning job's."""
    [tuning, trial] = recognise(body(JobKind.TUNING), api_model()).requests
    assert trial.tuning_request is tuning
    assert trial.kind is JobKind.TRAINING
    assert trial.origin.path_in_file(("ResourceConfig",)) == (
        "TrainingJobDefinition",
        "ResourceConfig",
    )


def test_the_user_may_name_the_format() -> None:
    """If nothing in the file shows it."""
    assert recognise({}, api_model(), form=FileFormat.TRANSFORM).format is FileFormat.TRANSFORM


TASK = {
    "Type": "Task",
    "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
    "Parameters": body(JobKind.TRAINING),
}
MACHINE = {"StartAt": "A", "States": {"A": TASK}}


@pytest.mark.parametrize(
    "document", [MACHINE, TASK, {"A": TASK}, {"name": "m", "definition": json.dumps(MACHINE)}]
)
def test_a_state_machine_may_be_wrapped_or_one_state(document: dict[str, Any]) -> None:
    """As create-state-machine takes it, and as AWS's guide shows a state."""
    result = recognise(document, api_model())
    assert result.format is FileFormat.STATE_MACHINE
    assert [request.name for request in result.requests] == ["train-1"]


def test_an_event_of_cloudtrail_has_the_request_and_its_region() -> None:
    """Alone, or as the detail of an EventBridge event."""
    event = {
        "eventName": "CreateTrainingJob",
        "awsRegion": "eu-west-1",
        "requestParameters": {"trainingJobName": "x", "resourceConfig": {"instanceCount": 2}},
    }
    for document in (event, {"detail-type": "AWS API Call via CloudTrail", "detail": event}):
        [request] = recognise(document, api_model()).requests
        assert (request.name, request.region) == ("x", "eu-west-1")
        assert request.body["ResourceConfig"] == {"InstanceCount": 2}


def test_a_resource_of_kubernetes_has_the_request_in_its_spec() -> None:
    """Kubernetes names the job if the request does not."""
    document = {
        "apiVersion": "sagemaker.aws.amazon.com/v1",
        "kind": "TrainingJob",
        "spec": {"region": "us-west-2", "roleArn": "x", "resourceConfig": {"instanceCount": 1}},
    }
    [request] = recognise(document, api_model()).requests
    assert (request.region, request.name_source) == ("us-west-2", "Kubernetes")
    assert request.body == {"RoleArn": "x", "ResourceConfig": {"InstanceCount": 1}}


@pytest.mark.parametrize(
    ("document", "expected_text"),
    [
        ([], "is a list"),
        (3, "is not an object"),
        ({}, "not recognised"),
        ({"RoleArn": "x"}, "not recognised"),
        ({"describe": {}}, "audit --recording"),
        ({"TrainingJobName": "x", "TrainingJobStatus": "Completed"}, "DescribeTrainingJob"),
        ({"terraform_version": "1.9", "values": {}}, "Terraform state"),
        ({"AWSTemplateFormatVersion": "2010-09-09", "Resources": {}}, "CloudFormation"),
        ({"resource_changes": []}, "without any resource of AWS"),
        ({"Resources": {"B": {"Type": "AWS::S3::Bucket"}}}, "without a SageMaker job"),
        ({"resource": {"aws_sagemaker_pipeline": {}}}, "is Terraform code"),
        ({"version": "36.0.0", "artifacts": {}}, "manifest of the AWS CDK"),
        ({"PipelineDefinitionS3Location": {}}, "in S3: give the file"),
        ({"PipelineDefinition": "{"}, "not JSON"),
        ({"PipelineDefinition": "[]"}, "not a JSON object"),
    ],
)
def test_other_files_are_refused_with_what_to_do(document: object, expected_text: str) -> None:
    """In one sentence."""
    with pytest.raises(MalformedData, match=expected_text):
        recognise(document, api_model())
