"""The templates of a release, which CloudFormation takes without a clone, Node or the CDK.

Each is the stack of the default settings, with the alarm about budgets. What the CDK CLI fills in
at a deployment is a parameter: where the asset is, and when the digest is sent. The policy is in
the asset (`sageaudit pack`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from infra.names import ASSET_BUCKET, ASSET_KEY, TAG
from infra.template import normalize, synthesize_with_placeholder
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig
from sageaudit.domain.policy.scope import DEFAULT_TIMEZONE, DigestSchedule
from sageaudit.workflows.pack import DIGEST_CRON, DIGEST_TIMEZONE

_ANY_BUDGET = Budget("any", Decimal(1))
_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    ASSET_BUCKET: {
        "Type": "String",
        "Description": "S3 bucket, in the region of the stack, with the asset of the functions",
        "AllowedPattern": "[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
    },
    ASSET_KEY: {
        "Type": "String",
        "Description": "Key of the asset in the bucket; another asset needs another key",
        "AllowedPattern": ".*[.]zip",
    },
    DIGEST_CRON: {
        "Type": "String",
        "Description": "When the weekly digest is sent, as `sageaudit pack` prints it",
        "Default": DigestSchedule().cron,
        "AllowedPattern": "cron[(].+[)]",
    },
    DIGEST_TIMEZONE: {
        "Type": "String",
        "Description": "Time zone of DigestSchedule",
        "Default": DEFAULT_TIMEZONE,
    },
}


def released_template(channels: Mapping[str, ChannelConfig], version: str) -> dict[str, Any]:
    """Returns the template of a release for a policy with these channels."""
    template = normalize(
        synthesize_with_placeholder(Policy(channels=channels, budgets=(_ANY_BUDGET,)))
    )
    template["Description"] = f"{template['Description']} (sageaudit {version})"
    template["Parameters"] |= _PARAMETERS
    template["Resources"][_digest_schedule(template)]["Properties"] |= {
        "ScheduleExpression": {"Ref": DIGEST_CRON},
        "ScheduleExpressionTimezone": {"Ref": DIGEST_TIMEZONE},
    }
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Lambda::Function":
            properties["Code"] = {"S3Bucket": {"Ref": ASSET_BUCKET}, "S3Key": {"Ref": ASSET_KEY}}
        _follow_stack_name(properties.get("Tags", ()))
    return template


def to_text(template: Mapping[str, Any]) -> str:
    """Returns the template as one line, which is three quarters of the size."""
    return json.dumps(template, separators=(",", ":"), sort_keys=True) + "\n"


def _digest_schedule(template: Mapping[str, Any]) -> str:
    """Returns the logical id of the digest's schedule. Raises ValueError if it is not there."""
    [name] = (
        str(name)
        for name, resource in template["Resources"].items()
        if resource.get("Properties", {}).get("ScheduleExpression") == DigestSchedule().cron
    )
    return name


def _follow_stack_name(tags: Any) -> None:
    """Sets the stack's tag to its name. `make deploy` knows the name before.

    `tags`: a list of keys and values, or a mapping for the types that have one.
    """
    stack_name = {"Ref": "AWS::StackName"}
    if isinstance(tags, dict):
        tags |= {TAG: stack_name} if TAG in tags else {}
        return
    for tag in tags:
        if tag["Key"] == TAG:
            tag["Value"] = stack_name
