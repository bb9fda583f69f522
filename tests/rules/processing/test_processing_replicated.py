from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, body, said, told

RULE = "processing-replicated"
PROCESSING = JobKind.PROCESSING
THREE = {"ProcessingResources.ClusterConfig.InstanceCount": 3}


def sharded() -> dict[str, object]:
    """Its input, in shards."""
    inputs = body(PROCESSING)["ProcessingInputs"]
    inputs[0]["S3Input"]["S3DataDistributionType"] = "ShardedByS3Key"
    return {"ProcessingInputs": inputs}


def test_all_data_on_each_instance_is_found() -> None:
    """AWS replicates where the request does not say."""
    finding = told(RULE, THREE, kind=PROCESSING)
    [fix] = finding.found.fix
    assert fix.path == "ProcessingInputs[data].S3Input.S3DataDistributionType"
    assert (fix.old, fix.new) == (None, "ShardedByS3Key")


def test_shards_or_one_instance_are_clear() -> None:
    """And so is Spark, which splits the work itself."""
    assert said(RULE, THREE | sharded(), kind=PROCESSING) == Clear()
    assert said(RULE, kind=PROCESSING) == Clear()
    spark = {"AppSpecification.ImageUri": "registry.example/sagemaker-spark-processing:3"}
    assert said(RULE, THREE | spark, kind=PROCESSING) == Clear()


def test_a_number_that_is_known_later_is_not_judged() -> None:
    """It may be one."""
    later = {"ProcessingResources.ClusterConfig.InstanceCount": LATER}
    assert isinstance(said(RULE, later, kind=PROCESSING), Unknown)
