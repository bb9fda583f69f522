from functools import partial

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, REQUESTED, request_answer, request_finding
from tests.fakes.rule_cases import CLEAR, FOUND, does_not_apply, finds

RULE = "request-conflict"
IMAGE, NAME = "AlgorithmSpecification.TrainingImage", "AlgorithmSpecification.AlgorithmName"
GROUPS = [{"InstanceGroupName": "a", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1}]
SIZE, KEY = "ResourceConfig.VolumeSizeInGB", "ResourceConfig.VolumeKmsKeyId"
NVME = {"ResourceConfig.InstanceType": "ml.g5.2xlarge"}
PAYLOAD, AT_A_TIME = "MaxPayloadInMB", "MaxConcurrentTransforms"
CONFIG = "HyperParameterTuningJobConfig"
PARALLEL = f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs"
IN_ALL = f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs"


verdict = partial(request_answer, RULE)


def test_an_image_or_a_name_but_not_both() -> None:
    """One of them is needed."""
    assert verdict({NAME: "mine"}) == finds("…both…")
    assert verdict({IMAGE: None}) == finds("…neither…")
    assert verdict({IMAGE: None, NAME: "mine"}) == CLEAR


def test_a_value_that_is_known_later_is_in_no_conflict() -> None:
    """The image of a plan that builds it."""
    assert verdict({IMAGE: LATER}) == CLEAR


def test_instances_are_asked_for_in_one_way() -> None:
    """None is missing, and groups with a type are two."""
    assert verdict({"ResourceConfig.InstanceType": None}) == finds("…no instance type…")
    assert verdict({"ResourceConfig.InstanceGroups": GROUPS}) == finds(
        "…InstanceType and InstanceGroups…"
    )


def test_a_serverless_job_needs_none_of_them() -> None:
    """AWS chooses."""
    result = verdict({"ServerlessJobConfig": {"BaseModelArn": "arn:aws:x"}, IMAGE: None})
    assert result == does_not_apply("…")


def test_a_type_without_local_storage_needs_a_size() -> None:
    """Local storage needs none."""
    assert verdict({SIZE: None}) == finds(paths=[SIZE])
    assert verdict(NVME | {SIZE: None}) == CLEAR


def test_local_storage_takes_no_key() -> None:
    """A volume does."""
    assert verdict(NVME | {KEY: "key"}) == finds(paths=[KEY])
    assert verdict({KEY: "key"}) == CLEAR


def test_a_type_that_is_known_later_is_not_judged() -> None:
    """It may be of either kind."""
    assert verdict({"ResourceConfig.InstanceType": LATER, SIZE: None}) == CLEAR


def test_a_healthy_request_of_each_kind_is_clear() -> None:
    """Processing must give a size anyway."""
    for kind in REQUESTED:
        assert verdict(kind=kind) == CLEAR


def test_6_payloads_of_20_mb_at_a_time_are_over_100_mb_and_refused() -> None:
    """The fix keeps the payload."""
    result = verdict({PAYLOAD: 20, AT_A_TIME: 6}, kind=JobKind.TRANSFORM)
    assert result == finds(paths=[AT_A_TIME], fix=[5])


def test_5_payloads_of_20_mb_and_16_of_6_mb_are_taken_and_17_of_6_mb_are_refused() -> None:
    """A payload that is not set is 6 MB."""
    assert verdict({PAYLOAD: 20, AT_A_TIME: 5}, kind=JobKind.TRANSFORM) == CLEAR
    assert verdict({AT_A_TIME: 16}, kind=JobKind.TRANSFORM) == CLEAR
    assert verdict({AT_A_TIME: 17}, kind=JobKind.TRANSFORM) == FOUND


def test_a_size_or_a_strategy_that_is_known_later_is_not_judged() -> None:
    """It may be taken."""
    assert verdict({PAYLOAD: LATER, AT_A_TIME: 50}, kind=JobKind.TRANSFORM) == CLEAR
    assert verdict({f"{CONFIG}.Strategy": LATER}, kind=JobKind.TUNING) == CLEAR


def test_what_aws_refuses_of_a_search_is_found() -> None:
    """Each with the parameter to change."""
    assert verdict({f"{CONFIG}.Strategy": "Hyperband"}, kind=JobKind.TUNING) == finds("…Hyperband…")
    assert verdict({"TrainingJobDefinition": None}, kind=JobKind.TUNING) == finds(
        "…no training job definition…"
    )
    result = verdict({"TrainingJobDefinitions": [{"DefinitionName": "a"}]}, kind=JobKind.TUNING)
    assert result == finds("…TrainingJobDefinitions…")
    assert verdict({PARALLEL: 9, IN_ALL: 8}, kind=JobKind.TUNING) == finds(
        "…9 parallel training jobs…"
    )


def test_8_training_jobs_of_8_in_parallel_are_no_mistake() -> None:
    assert verdict({PARALLEL: 8, IN_ALL: 8}, kind=JobKind.TUNING) == CLEAR


def test_all_conflicts_are_reported_at_once() -> None:
    """Each with its own fix."""
    channel = {
        "ChannelName": "train",
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": "s3://b/x",
                "InstanceGroupNames": ["b"],
            }
        },
    }
    finding = request_finding(
        RULE,
        {
            "ResourceConfig.InstanceType": None,
            "ResourceConfig.InstanceGroups": GROUPS,
            "ResourceConfig.KeepAlivePeriodInSeconds": 60,
            "InputDataConfig": [channel],
        },
    )
    assert [fix.path.rpartition(".")[2] for fix in finding.detection.fix] == [
        "KeepAlivePeriodInSeconds",
        "InstanceGroupNames[0]",
    ]
