from typing import Any

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, asked, body, told
from tests.fakes.rule_cases import CLEAR, FOUND, cases, row

RULE = "one-object"
TWO = {"TransformResources.InstanceCount": 2}
URI = "TransformInput.DataSource.S3DataSource.S3Uri"


def channels(address: str, distribution: str) -> dict[str, Any]:
    """The training channel at an address."""
    [channel] = body()["InputDataConfig"]
    channel["DataSource"]["S3DataSource"] |= {
        "S3Uri": address,
        "S3DataDistributionType": distribution,
    }
    return {"InputDataConfig": [channel], "ResourceConfig.InstanceCount": 2}


test_cases = cases(
    RULE,
    "A prefix or one instance is clear. How many objects it has is not in the request.",
    row(CLEAR, TWO),
    row(CLEAR, {URI: "s3://bucket/in/all.csv"}),
    "A training channel counts where it is sharded. A replicated one is whole on each instance.",
    row(FOUND, channels("s3://bucket/x.parquet", "ShardedByS3Key"), kind=JobKind.TRAINING),
    row(CLEAR, channels("s3://bucket/x.parquet", "FullyReplicated"), kind=JobKind.TRAINING),
    row(CLEAR, channels("s3://bucket/x/", "ShardedByS3Key"), kind=JobKind.TRAINING),
    "An address that is known later is not judged. It may be a prefix.",
    row("unknown: …", TWO | {URI: LATER}),
    ask=asked,kind=JobKind.TRANSFORM,
)  # fmt: skip


def test_one_file_for_several_instances_is_found() -> None:
    """The others are idle; the fix is billed again for each hour."""
    finding = told(RULE, TWO | {URI: "s3://bucket/in/all.csv"}, kind=JobKind.TRANSFORM)
    assert finding.found.fix[0].new == 1
    assert finding.alone_usd is not None
