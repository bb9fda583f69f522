"""Creates what a try needs in the account, each under its name."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError
from msgspec import Struct

from infra.names import ASSET_BUCKET, ASSET_KEY, FINGERPRINT_KEY, TAG
from tools.try_account.account import Account, Names
from tools.try_account.cost import INSTANCE_TYPE, MAX_RUNTIME_S
from tools.try_account.removal import error_code

_JOB_S = 120
_ASSET = "asset.zip"
_TEMPLATE = "template.json"
_ROLE_ACTIONS = (
    *("cloudwatch:PutMetricData", "logs:CreateLogGroup", "logs:CreateLogStream"),
    *("logs:DescribeLogStreams", "logs:PutLogEvents", "ecr:GetAuthorizationToken"),
    *("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"),
)
"""What the job's role may do: pull the image, and write log and metrics. They are the permissions
without data in "CreateProcessingJob API: Execution Role Permissions" of SageMaker's guide."""


class Package(Struct, frozen=True):
    """What is deployed, and the job's image and rate."""

    asset: bytes
    template: str
    image: str
    usd_per_hour: Decimal


def upload(account: Account, names: Names, package: Package) -> None:
    """Creates the bucket, and puts the asset and the template into it."""
    s3, elsewhere = account.client("s3"), {"LocationConstraint": account.region}
    place = {} if account.region == "us-east-1" else {"CreateBucketConfiguration": elsewhere}
    s3.create_bucket(Bucket=names.bucket, **place)
    s3.put_object(Bucket=names.bucket, Key=_ASSET, Body=package.asset)
    s3.put_object(Bucket=names.bucket, Key=_TEMPLATE, Body=package.template.encode())


def create_fingerprint_key(account: Account, names: Names) -> None:
    """Creates the key of fingerprints, unless a deployment that stays has one."""
    store = account.client("secretsmanager")
    with suppress(store.exceptions.ResourceExistsException):
        store.create_secret(
            Name=FINGERPRINT_KEY,
            SecretString="0" * 64,
            Tags=[{"Key": TAG, "Value": names.stack}],
        )


def create_stack(account: Account, names: Names) -> None:
    """Starts the creation of the stack."""
    account.client("cloudformation").create_stack(
        StackName=names.stack,
        TemplateURL=f"https://{names.bucket}.s3.{account.region}.amazonaws.com/{_TEMPLATE}",
        Parameters=[
            {"ParameterKey": ASSET_BUCKET, "ParameterValue": names.bucket},
            {"ParameterKey": ASSET_KEY, "ParameterValue": _ASSET},
        ],
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )


def subscribe_queue(account: Account, names: Names, topic: str) -> str:
    """Subscribes a new queue to a topic, and returns its URL."""
    sqs = account.client("sqs")
    url: str = sqs.create_queue(QueueName=names.queue)["QueueUrl"]
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    arn = answer["Attributes"]["QueueArn"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": _policy(statement)})
    account.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return url


def create_role(account: Account, names: Names) -> str:
    """Creates the job's role, and returns its ARN."""
    iam = account.client("iam")
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "sagemaker.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    allowed = {"Effect": "Allow", "Action": list(_ROLE_ACTIONS), "Resource": "*"}
    role = iam.create_role(RoleName=names.role, AssumeRolePolicyDocument=_policy(trust))["Role"]
    iam.put_role_policy(RoleName=names.role, PolicyName="job", PolicyDocument=_policy(allowed))
    return str(role["Arn"])


def start_job(account: Account, names: Names, image: str, role_arn: str) -> bool | None:
    """Starts the job; returns None if the role cannot be used yet. Raises ClientError."""
    code = f"import time; time.sleep({_JOB_S})"
    cluster = {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 1}
    try:
        account.client("sagemaker").create_processing_job(
            ProcessingJobName=names.job,
            RoleArn=role_arn,
            AppSpecification={"ImageUri": image, "ContainerEntrypoint": ["python3", "-c", code]},
            ProcessingResources={"ClusterConfig": cluster},
            StoppingCondition={"MaxRuntimeInSeconds": MAX_RUNTIME_S},
            Tags=[{"Key": "owner", "Value": "sageaudit-try"}],
        )
    except ClientError as error:
        if error_code(error) == "ValidationException" and "assume" in str(error):
            return None
        raise
    return True


def _policy(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
