from typing import Any

import pytest

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.domain.request.aws_names import AwsNames
from sageaudit.domain.request.request import UnknownValue

SHAPE = "CreateTrainingJobRequest"
EXPECTED = {
    "TrainingJobName": "x",
    "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "EnableManagedSpotTraining": True,
    "HyperParameters": {"learning_rate": "1"},
    "Tags": [{"Key": "team", "Value": "a"}],
}


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            {
                "trainingJobName": "x",
                "resourceConfig": {
                    "instanceType": "ml.g5.xlarge",
                    "instanceCount": 2,
                    "volumeSizeInGB": 30,
                },
                "enableManagedSpotTraining": True,
                "hyperParameters": {"learning_rate": "1"},
                "tags": [{"key": "team", "value": "a"}],
            },
            id="CloudTrail",
        ),
        pytest.param(
            {
                "training_job_name": "x",
                "resource_config": [
                    {"instance_type": "ml.g5.xlarge", "instance_count": 2, "volume_size_in_gb": 30}
                ],
                "enable_managed_spot_training": True,
                "hyper_parameters": {"learning_rate": "1"},
                "tags": {"team": "a"},
                "output_data_config": [],
                "role_arn": "",
            },
            id="Terraform",
        ),
        pytest.param(
            {
                "TrainingJobName": "x",
                "ResourceConfig": {
                    "InstanceType": "ml.g5.xlarge",
                    "InstanceCount": "2",
                    "VolumeSizeInGB": "30",
                },
                "EnableManagedSpotTraining": "true",
                "HyperParameters": {"learning_rate": "1"},
                "Tags": [{"Key": "team", "Value": "a"}],
            },
            id="CloudFormation",
        ),
        pytest.param(
            {
                "trainingJobName": "x",
                "resourceConfig": {
                    "instanceType": "ml.g5.xlarge",
                    "instanceCount": 2,
                    "volumeSizeInGB": 30,
                },
                "enableManagedSpotTraining": True,
                "hyperParameters": [{"name": "learning_rate", "value": "1"}],
                "tags": [{"key": "team", "value": "a"}],
            },
            id="the operator for Kubernetes",
        ),
    ],
)
def test_the_names_and_types_of_other_tools_become_awss(values: dict[str, Any]) -> None:
    """Keys of maps are not names, and stay."""
    left_out: list[str] = []
    assert AwsNames(api_model(), left_out).structure(SHAPE, values) == EXPECTED
    assert left_out == []


def test_a_misspelled_name_is_reported_and_its_parameter_is_not_known() -> None:
    """So that no rule says that the parameter is missing."""
    left_out: list[str] = []
    body = AwsNames(api_model(), left_out).structure("Channel", {"ChannelNam": "x", "xyz": 1})
    assert list(body) == ["ChannelName"]
    assert isinstance(body["ChannelName"], UnknownValue)
    assert left_out == [
        "ChannelNam is not a parameter that AWS knows (did you mean ChannelName?): it is left out",
        "xyz is not a parameter that AWS knows: it is left out",
    ]
