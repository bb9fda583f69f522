import json
from typing import Any

import pytest

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.request import ParsedRequests, UnknownValue
from sageaudit.domain.request.terraform import requests_in_plan
from sageaudit.errors import MalformedData

TRAINING = "aws_sagemaker_training_job"
VALUES: dict[str, Any] = {
    "training_job_name": "train",
    "resource_config": [
        {"instance_type": "ml.g5.xlarge", "instance_count": 1, "volume_size_in_gb": 50}
    ],
    "checkpoint_config": [{"local_path": None}],
    "serverless_job_config": [],
    "output_data_config": [{"kms_key_id": "", "s3_output_path": "s3://b/o"}],
    "hyper_parameters": {"epochs": "10"},
    "tags": {"owner": "vision"},
    "region": "eu-west-1",
    "timeouts": None,
}


def resource(kind: str, values: dict[str, Any], name: str = "x") -> dict[str, Any]:
    """Returns one resource that a plan changes."""
    address = f"module.m.{kind}.{name}"
    return {"address": address, "mode": "managed", "type": kind, "change": {"after": values}}


def plan(*resources: dict[str, Any], unknown: object = None, actions: Any = None) -> ParsedRequests:
    """Returns the plan of these resources."""
    how = {"actions": actions or ["create"], "after_unknown": unknown or {}}
    changes = [{**resource, "change": {**resource["change"], **how}} for resource in resources]
    return requests_in_plan({"resource_changes": changes}, api_model())


def test_arguments_become_the_apis_parameters() -> None:
    """Terraform has snake case, lists of one object, maps of tags and empty texts."""
    [request] = plan(resource(TRAINING, VALUES)).requests
    assert request.body == {
        "TrainingJobName": "train",
        "ResourceConfig": {
            "InstanceType": "ml.g5.xlarge",
            "InstanceCount": 1,
            "VolumeSizeInGB": 50,
        },
        "CheckpointConfig": {},
        "OutputDataConfig": {"S3OutputPath": "s3://b/o"},
        "HyperParameters": {"epochs": "10"},
        "Tags": [{"Key": "owner", "Value": "vision"}],
    }
    assert (request.kind, request.region) == (JobKind.TRAINING, "eu-west-1")


def test_a_parameter_has_the_path_of_its_resource() -> None:
    """Nobody edits a plan, so its lines are not named."""
    [request] = plan(resource(TRAINING, VALUES)).requests
    place = request.origin.path_in_file(("ResourceConfig", "InstanceType"))
    assert place == ("resource_changes", 0, "change", "after")


def test_what_is_known_after_apply_is_not_known() -> None:
    """Other values of the same resource are."""
    later = {"role_arn": True, "checkpoint_config": [{"s3_uri": True}]}
    [request] = plan(resource(TRAINING, VALUES), unknown=later).requests
    assert isinstance(request.body["RoleArn"], UnknownValue)
    assert isinstance(request.value("CheckpointConfig.S3Uri"), UnknownValue)


def test_a_resource_that_does_not_change_starts_nothing() -> None:
    """It is named as not checked."""
    result = plan(resource(TRAINING, VALUES), actions=["no-op"])
    assert result.requests == ()
    assert result.unchecked_sentences == (f"module.m.{TRAINING}.x: the plan does not change it",)


def test_a_tuning_job_has_shorter_names_in_terraform() -> None:
    """`config` and `objective`."""
    values = {
        "name": "search",
        "config": [
            {"strategy": "Bayesian", "objective": [{"metric_name": "m", "type": "Minimize"}]}
        ],
    }
    [request] = plan(resource("aws_sagemaker_hyper_parameter_tuning_job", values)).requests
    assert request.name == "search"
    config = "HyperParameterTuningJobConfig"
    assert request.value(f"{config}.HyperParameterTuningJobObjective.MetricName") == "m"


def test_pipelines_of_both_providers_are_read() -> None:
    """Their definition is one string of the file."""
    text = json.dumps({"Steps": [{"Name": "T", "Type": "Training", "Arguments": {}}]})
    aws = resource("aws_sagemaker_pipeline", {"pipeline_name": "P", "pipeline_definition": text})
    awscc = resource(
        "awscc_sagemaker_pipeline",
        {"pipeline_name": "P", "pipeline_definition": {"pipeline_definition_body": text}},
    )
    result = plan(aws, awscc)
    assert [r.label for r in result.requests] == [
        "module.m.aws_sagemaker_pipeline.x, step T",
        "module.m.awscc_sagemaker_pipeline.x, step T",
    ]
    assert {r.step for r in result.requests} == {"pipeline/p/T"}
    assert result.requests[0].origin.path_in_file(("ResourceConfig",))[-1] == "pipeline_definition"


def test_a_definition_that_cannot_be_read_is_named() -> None:
    """It is in S3, known after apply, or not JSON."""
    kind = "aws_sagemaker_pipeline"
    assert "in S3" in plan(resource(kind, {})).unchecked_sentences[0]
    later = plan(resource(kind, {}), unknown={"pipeline_definition": True})
    assert "after apply" in later.unchecked_sentences[0]
    assert "not JSON" in plan(resource(kind, {"pipeline_definition": "{"})).unchecked_sentences[0]


def test_a_processing_job_of_awscc_is_read() -> None:
    """Its tags are a list, and AWS names it."""
    values = {
        "processing_resources": {"cluster_config": {"instance_type": "ml.m5.xlarge"}},
        "tags": [{"key": "owner", "value": "x"}],
    }
    [request] = plan(resource("awscc_sagemaker_processing_job", values)).requests
    assert request.value("ProcessingResources.ClusterConfig.InstanceType") == "ml.m5.xlarge"
    assert request.tags == {"owner": "x"}
    assert request.name_source == "AWS"


def test_a_plan_of_other_providers_is_refused() -> None:
    """A plan of another cloud is refused; it is not a plan without jobs."""
    assert plan(resource("aws_s3_bucket", {})) == ParsedRequests(())
    with pytest.raises(MalformedData, match="without any resource of AWS"):
        plan(resource("google_storage_bucket", {}))


def test_invalid_parts_of_a_plan_are_ignored() -> None:
    """Each part has another type."""
    for part in (None, 3, "x", [], [3], [{"change": 3}], {"root_module": 3}):
        nonsense = {"resource_changes": part, "configuration": part}
        with pytest.raises(MalformedData, match="without any resource of AWS"):
            requests_in_plan(nonsense, api_model())
    [request] = plan(resource(TRAINING, {"resource_config": 3, "tags": 4})).requests
    assert request.body["ResourceConfig"] == 3


def test_tags_are_those_that_the_job_gets() -> None:
    """The provider adds its default tags, including those that are known only after apply."""
    values = {**VALUES, "tags_all": {"owner": "vision", "team": "ml"}}
    [request] = plan(resource(TRAINING, values)).requests
    assert request.tags == {"owner": "vision", "team": "ml"}
    later = {"tags_all": {"stage": True}}
    [request] = plan(resource(TRAINING, values), unknown=later).requests
    assert [request.tag(name)[1] for name in ("team", "stage")] == [
        None,
        "it is not known yet (known after apply)",
    ]
    [request] = plan(resource(TRAINING, values), unknown={"tags_all": True}).requests
    assert request.tag("team") == (None, "it is not known yet (known after apply)")
