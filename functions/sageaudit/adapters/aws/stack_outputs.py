"""Reads the outputs of a deployed stack: the names of its resources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import aws_errors, error_code, error_message
from sageaudit.errors import ResourceNotFound

CLI_PERMISSIONS = ("cloudformation:DescribeStacks",)
QUEUE_URL_PREFIX = "NoticesQueueUrl"
"""Prefix of the outputs that have a channel's queue URL. The channel's name follows."""
CHANNEL = "Channel"
"""Prefix of the outputs that have a channel's service and address. The channel's name follows."""

AUDITS_AT_ONCE = "AuditsAtOnce"
"""Name of the output that says how many audits run at the same time."""


def pascal_case(channel: str) -> str:
    """Returns a channel's name for CloudFormation: `ml-platform` becomes `MlPlatform`."""
    return "".join(word.capitalize() for word in channel.split("-"))


def outputs_by_channel(outputs: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Returns the outputs with this prefix, by channel name."""
    return {
        re.sub(r"(?<!^)(?=[A-Z])", "-", name.removeprefix(prefix)).lower(): value
        for name, value in outputs.items()
        if name.startswith(prefix)
    }


def read_stack_outputs(client: Any, name: str) -> dict[str, str]:
    """Returns the outputs of a stack. `client` is boto3's CloudFormation client.

    Raises ResourceNotFound if the stack does not exist, or AwsError.
    """
    with aws_errors("cloudformation", name):
        try:
            stacks = client.describe_stacks(StackName=name).get("Stacks", [])
        except ClientError as error:
            if error_code(error) == "ValidationError" and "does not exist" in error_message(error):
                stacks = []
            else:
                raise
    if not stacks:
        raise ResourceNotFound(
            f"There is no stack {name} in {client.meta.region_name}: check --stack, --region and"
            " --profile."
        )
    return {output["OutputKey"]: output["OutputValue"] for output in stacks[0].get("Outputs", [])}
