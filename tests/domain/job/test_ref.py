"""Which ARNs name a job."""

import pytest

from sageaudit.domain.job.ref import JobRef

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
