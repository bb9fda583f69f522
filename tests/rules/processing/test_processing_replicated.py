from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, asked, body
from tests.fakes.rule_cases import CLEAR, cases, finds, row

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
    "All data on each instance is found. AWS replicates where the request does not say.",
    row(finds(fix=[("ProcessingInputs[data].S3Input.S3DataDistributionType", None,
        "ShardedByS3Key")]), THREE),
    "Shards or one instance are clear. And so is Spark, which splits the work itself.",
    row(CLEAR, THREE | sharded()),
    row(CLEAR),
    row(CLEAR,
        THREE | {"AppSpecification.ImageUri": "registry.example/sagemaker-spark-processing:3"}),
    "A number that is known later is not judged. It may be one.",
    row("unknown: …", {"ProcessingResources.ClusterConfig.InstanceCount": LATER}),
    ask=asked,kind=PROCESSING,
)  # fmt: skip
