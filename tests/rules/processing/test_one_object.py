from functools import partial
from typing import Any

from sageaudit.domain.bill.finding import Finding
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, body, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, finds

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


verdict = partial(request_answer, RULE, kind=JobKind.TRANSFORM)


def test_a_prefix_or_one_instance_is_clear() -> None:
    """How many objects it has is not in the request."""
    assert verdict(TWO) == CLEAR
    assert verdict({URI: "s3://bucket/in/all.csv"}) == CLEAR


def test_a_training_channel_counts_where_it_is_sharded() -> None:
    """A replicated one is whole on each instance."""
    result = verdict(channels("s3://bucket/x.parquet", "ShardedByS3Key"), kind=JobKind.TRAINING)
    assert result == FOUND
    result = verdict(channels("s3://bucket/x.parquet", "FullyReplicated"), kind=JobKind.TRAINING)
    assert result == CLEAR
    assert verdict(channels("s3://bucket/x/", "ShardedByS3Key"), kind=JobKind.TRAINING) == CLEAR


def test_an_address_that_is_known_later_is_not_judged() -> None:
    """It may be a prefix."""
    assert verdict(TWO | {URI: LATER}) == cannot_judge("…")


def test_one_file_for_several_instances_is_found() -> None:
    """The others are idle; the fix is billed again for each hour."""
    result = verdict(TWO | {URI: "s3://bucket/in/all.csv"})
    assert result == finds(fix=[1])
    assert isinstance(result, Finding)
    assert result.alone_usd is not None
