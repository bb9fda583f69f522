"""What the policy's channels need: their addresses, and the permissions to post to them."""

from __future__ import annotations

from collections.abc import Iterator

import aws_cdk as cdk

from infra.notices import OWN_KEY_PERMISSIONS
from sageaudit.adapters.channels.services import SERVICES, ChannelChoices
from sageaudit.domain.policy.routes import ChannelConfig


def channel_permissions(
    stack: cdk.Stack, channels: ChannelChoices, own_topic_arn: str
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yields the permissions of each service, with the ARNs of its secrets or topics."""
    for service, service_class in SERVICES.items():
        arns = [
            secret_arn(stack, channel.secret)
            if channel.secret
            else channel_address(channel, own_topic_arn)
            for channel in channels.values()
            if channel.service == service
        ]
        if arns:
            yield service_class.permissions, list(dict.fromkeys(arns))
    if keys := [channel.key_arn for channel in channels.values() if channel.key_arn]:
        yield OWN_KEY_PERMISSIONS, list(dict.fromkeys(keys))


def channel_address(channel: ChannelConfig, own_topic_arn: str) -> str:
    """Returns the name of a channel's secret, or its topic's ARN."""
    return channel.secret or channel.topic_arn or own_topic_arn


def secret_arn(stack: cdk.Stack, name: str) -> str:
    """Returns the pattern of a secret's ARN: Secrets Manager appends six characters to the name."""
    return stack.format_arn(
        service="secretsmanager",
        resource="secret",
        resource_name=f"{name}-??????",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
