"""Which ARNs name a job."""

import boto3
import pytest

from sageaudit.domain.job.ref import REGION, JobRef, region_partition

ARN = "arn:aws:sagemaker:us-east-1:111122223333"


@pytest.mark.parametrize(
    ("arn", "name", "same"),
    [
        (f"{ARN}:training-job/my-job", "My-Job", True),
        (f"{ARN}:training-job/my-job", "other", False),
        (f"{ARN}:training-job/my-job", None, True),
        (f"{ARN}:endpoint/my-job", "my-job", False),
        ("arn:aws:s3:::bucket", None, False),
        (f"{ARN}:training-job/my-job\n", "my-job", False),
        (f"{ARN}:training-job/my-job/x", None, False),
        ("arn:aws-cn:sagemaker:cn-north-1:111122223333:processing-job/a", "a", True),
        ("arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:transform-job/a", "a", True),
        ("arn:aws-eusc:sagemaker:eusc-de-east-1:111122223333:training-job/a", "a", True),
        # one job has one ARN: another partition of the same job is forged
        ("arn:aws-cn:sagemaker:us-east-1:111122223333:training-job/my-job", None, False),
    ],
)
def test_an_arn_names_a_job_or_nothing(arn: str, name: str | None, same: bool) -> None:
    """Real ARNs have the name in lower case. Anything other than a job's ARN is refused."""
    assert (JobRef.from_arn(arn, name) is not None) is same


@pytest.mark.parametrize("partition", boto3.Session().get_available_partitions())
def test_each_region_of_a_partition_is_known_by_its_name(partition: str) -> None:
    """All partitions and regions that the SDK lists, and their jobs' ARNs."""
    regions = boto3.Session().get_available_regions("sagemaker", partition_name=partition)
    assert regions
    for region in regions:
        assert REGION.fullmatch(region)
        assert region_partition(region) == partition
        arn = f"arn:{partition}:sagemaker:{region}:111122223333:training-job/a"
        assert JobRef.from_arn(arn, "a") is not None
