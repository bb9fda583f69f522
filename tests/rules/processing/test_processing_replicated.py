from __future__ import annotations

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, asked, body, told
from tests.fakes.rule_cases import CLEAR, cases, row

RULE = "processing-replicated"
PROCESSING = JobKind.PROCESSING
THREE = {"ProcessingResources.ClusterConfig.InstanceCount": 3}


def sharded() -> dict[str, object]:
    """Its input, in shards."""
    inputs = body(PROCESSING)["ProcessingInputs"]
    inputs[0]["S3Input"]["S3DataDistributionType"] = "ShardedByS3Key"
    return {"ProcessingInputs": inputs}


test_cases = cases(
    RULE,
    "Shards or one instance are clear. And so is Spark, which splits the work itself.",
    row(CLEAR, THREE | sharded()),
    row(CLEAR),
    row(CLEAR,
        THREE | {"AppSpecification.ImageUri": "registry.example/sagemaker-spark-processing:3"}),
    "A number that is known later is not judged. It may be one.",
    row("unknown: …", {"ProcessingResources.ClusterConfig.InstanceCount": LATER}),
    ask=asked,kind=PROCESSING,
)  # fmt: skip


def test_all_data_on_each_instance_is_found() -> None:
    """AWS replicates where the request does not say."""
    finding = told(RULE, THREE, kind=PROCESSING)
    [fix] = finding.found.fix
    assert fix.path == "ProcessingInputs[data].S3Input.S3DataDistributionType"
    assert (fix.old, fix.new) == (None, "ShardedByS3Key")
