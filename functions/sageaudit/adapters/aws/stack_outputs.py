"""The outputs of a deployed stack: what it is called in AWS."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import aws_errors, code_of, message_of
from sageaudit.errors import ResourceNotFound

CLI_PERMISSIONS = ("cloudformation:DescribeStacks",)


def stack_outputs(client: Any, name: str) -> dict[str, str]:
    """The outputs of one stack. `client` is boto3's CloudFormation client.

    Raises ResourceNotFound if there is no such stack, or AwsError.
    """
    with aws_errors("cloudformation", name):
        try:
            stacks = client.describe_stacks(StackName=name).get("Stacks", [])
        except ClientError as error:
            if code_of(error) == "ValidationError" and "does not exist" in message_of(error):
                stacks = []
            else:
                raise
    if not stacks:
        raise ResourceNotFound(
            f"There is no stack {name} in {client.meta.region_name}: check --stack, --region and"
            " --profile."
        )
    return {one["OutputKey"]: one["OutputValue"] for one in stacks[0].get("Outputs", [])}
