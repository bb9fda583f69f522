import json
from typing import Any

import pytest

from sageaudit.adapters.aws.clients import api_model
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
    ],
)
def test_a_pipeline_may_be_wrapped(document: dict[str, Any]) -> None:
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
        ({"PipelineDefinition": "{"}, "not JSON"),
        ({"PipelineDefinition": "[]"}, "not a JSON object"),
    ],
)
def test_other_files_are_refused_with_what_to_do(document: object, expected_text: str) -> None:
    """In one sentence."""
    with pytest.raises(MalformedData, match=expected_text):
        recognise(document, api_model())
