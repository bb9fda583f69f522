from functools import partial

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, body, request_answer
from tests.fakes.rule_cases import CLEAR, cannot_judge, finds

RULE = "processing-replicated"
PROCESSING = JobKind.PROCESSING
THREE = {"ProcessingResources.ClusterConfig.InstanceCount": 3}


def sharded() -> dict[str, object]:
    """Its input, in shards."""
    inputs = body(PROCESSING)["ProcessingInputs"]
    inputs[0]["S3Input"]["S3DataDistributionType"] = "ShardedByS3Key"
    return {"ProcessingInputs": inputs}


verdict = partial(request_answer, RULE, kind=PROCESSING)


def test_all_data_on_each_instance_is_found() -> None:
    """AWS replicates by default."""
    assert verdict(THREE) == finds(
        fix=[("ProcessingInputs[data].S3Input.S3DataDistributionType", None, "ShardedByS3Key")]
    )


def test_shards_or_one_instance_are_clear() -> None:
    """And so is Spark, which splits the work itself."""
    assert verdict(THREE | sharded()) == CLEAR
    assert verdict() == CLEAR
    result = verdict(
        THREE | {"AppSpecification.ImageUri": "registry.example/sagemaker-spark-processing:3"}
    )
    assert result == CLEAR


def test_a_number_that_is_known_later_is_not_judged() -> None:
    """It may be one."""
    assert verdict({"ProcessingResources.ClusterConfig.InstanceCount": LATER}) == cannot_judge("…")
