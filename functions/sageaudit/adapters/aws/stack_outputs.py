"""The outputs of a deployed stack: the names of its resources in AWS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import aws_errors, error_code, error_message
from sageaudit.errors import ResourceNotFound

CLI_PERMISSIONS = ("cloudformation:DescribeStacks",)
QUEUE_URL_PREFIX = "NoticesQueueUrl"
"""Prefix of an output for each channel, before the channel's name: the URL of its queue."""
CHANNEL = "Channel"
"""Prefix of an output for each channel, before the channel's name: its service and address."""

AUDITS_AT_ONCE = "AuditsAtOnce"
"""Name of an output: how many audits run at the same time."""


def pascal_case(channel: str) -> str:
    """Returns a channel's name for use in CloudFormation: `ml-platform` becomes `MlPlatform`."""
    return "".join(word.capitalize() for word in channel.split("-"))


def outputs_by_channel(outputs: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Returns the outputs with this prefix, by channel."""
    return {
        re.sub(r"(?<!^)(?=[A-Z])", "-", name.removeprefix(prefix)).lower(): value
        for name, value in outputs.items()
        if name.startswith(prefix)
    }


def read_stack_outputs(client: Any, name: str) -> dict[str, str]:
    """Returns the outputs of one stack. `client` is boto3's CloudFormation client.

    Raises ResourceNotFound if there is no such stack, or AwsError.
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
