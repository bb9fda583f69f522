"""Reads a synthesized template, and what the templates of the tests are made of."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import MAX_CHANNELS, ChannelConfig, default_channels
from sageaudit.domain.policy.scope import MEMBER_ROLE, MemberAccounts

Template = Mapping[str, Any]
OTHER_ACCOUNT = "444455556666"
OTHER_ROLE = f"arn:aws:iam::{OTHER_ACCOUNT}:role/sageaudit-reader"
OTHER_KEY = "arn:aws:kms:eu-west-1:111122223333:key/2234abcd-12ab-34cd-56ef-1234567890ab"
OWN_KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER_TOPIC = "arn:aws:sns:eu-west-1:111122223333:data-platform"
WITH_KEYS = Policy(
    channels={
        "sns": ChannelConfig("sns", key_arn=OWN_KEY),
        "data-platform": ChannelConfig("sns", topic_arn=OTHER_TOPIC, key_arn=OTHER_KEY),
    }
)
"""Topics under keys of their own."""
MANY_CHANNELS = default_channels() | {
    name: ChannelConfig("slack", secret=f"sageaudit/channel/{name}")
    for name in (f"c{number:019}" for number in range(1, MAX_CHANNELS))
}
"""As many as a policy may have, with the longest names."""
ORGANIZATION = MemberAccounts(
    {str(200000000000 + number): MEMBER_ROLE for number in range(1000)},
    "o-a1b2c3d4e5",
    "of-sageaudit",
    tuple(
        f"{area}-{side}-{number}"
        for area in ("ap", "eu", "us")
        for side in ("northeast", "west")
        for number in (1, 2)
    ),
)
"""As many accounts and regions as a large company has."""
ACCOUNTS = MemberAccounts(dict(list(ORGANIZATION.role_by_account.items())[:100]))
"""As many accounts as can be named one by one."""
TOO_MANY = MemberAccounts(dict(list(ORGANIZATION.role_by_account.items())[:101]))
KEPT_TABLE = "kept-table"
KEPT_STREAM = f"arn:aws:dynamodb:us-east-1:111122223333:table/{KEPT_TABLE}/stream/2026-05-20"
CDK_CONTEXT = {
    "@aws-cdk/core:bootstrapQualifier": "audit12345",
    "@aws-cdk/core:permissionsBoundary": {"name": "of-the-cdk"},
}
"""Settings of the CDK itself."""
REFUSED = (
    ("stack", "1st"),
    ("table_name", "kept-table"),
    ("audits_at_once", "1"),
    ("tracing", "yes"),
)
"""Answers in the context that stop a synthesis."""


def read(folder: Path, name: str) -> Any:
    """One JSON file."""
    return json.loads((folder / name).read_text(encoding="utf-8"))


def of_type(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """The properties of every resource of one type, by logical id."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def only_resource(template: Template, kind: str, prefix: str = "") -> dict[str, Any]:
    """The properties of the only resource of its type whose logical id starts so."""
    [properties] = [
        properties
        for name, properties in of_type(template, kind).items()
        if name.startswith(prefix)
    ]
    return properties


def text(value: object) -> str:
    """A value with its intrinsics written as ${...}; logical ids lose their hash."""
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return "${" + _readable(name) + "}"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return "${" + f"{_readable(name)}.{attribute}" + "}"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(text(part) for part in parts)
    raise ValueError(f"no text for {value}")


def statements(template: Template, prefix: str) -> Iterator[tuple[str, str]]:
    """Every (action, resource) that the role whose id starts so is allowed."""
    policy = only_resource(template, "AWS::IAM::Policy", prefix)
    for statement in policy["PolicyDocument"]["Statement"]:
        assert statement["Effect"] == "Allow"
        for action in _listed(statement["Action"]):
            for resource in _listed(statement["Resource"]):
                yield action, text(resource)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _readable(name: str) -> str:
    return name if name.startswith("AWS::") else name[:-8]
