"""Writes the template of every combination of options: `python -m tools.combinations FOLDER`.

A template whose resources are all in an earlier one is left out, because a linter would find
nothing new.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from infra.members import TEMPLATE as MEMBER
from infra.release_template import released_template
from infra.template import synthesize_with_placeholder
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import CHANNEL_SECRETS, ChannelConfig, default_channels
from sageaudit.domain.policy.scope import MEMBER_ROLE, DigestSchedule, MemberAccounts
from sageaudit.workflows.pack import TEMPLATE_CHANNELS

_ACCOUNT = "444455556666"
_ARN = f"arn:aws:{{}}:us-east-1:{_ACCOUNT}:{{}}"
_KEY = _ARN.format("kms", "key/1234abcd-12ab-34cd-56ef-1234567890ab")
_STREAM = _ARN.format("dynamodb", "table/kept/stream/2026-05-20")
CHANNELS: Mapping[str, Mapping[str, ChannelConfig]] = {
    "topic": default_channels(),
    "key": {"sns": ChannelConfig("sns", key_arn=_KEY)},
    "all": {
        **default_channels(),
        "chat": ChannelConfig("slack", secret=f"{CHANNEL_SECRETS}chat", max_per_hour=20),
        "team": ChannelConfig("teams", secret=f"{CHANNEL_SECRETS}team", max_per_hour=20),
        "other": ChannelConfig("sns", topic_arn=_ARN.format("sns", "other"), key_arn=_KEY),
    },
}
DIGESTS = {
    "digest": DigestSchedule(),
    "report": DigestSchedule(report_bucket="reports"),
    "silent": None,
}
MEMBERS = {
    "alone": MemberAccounts(),
    "accounts": MemberAccounts({_ACCOUNT: f"arn:aws:iam::{_ACCOUNT}:role/reader"}),
    "organization": MemberAccounts(
        {_ACCOUNT: MEMBER_ROLE},
        "o-a1b2c3d4e5",
        "of-sageaudit",
        ("eu-west-1", "us-east-1"),
        organization_role=MEMBER_ROLE,
    ),
}
CONTEXTS: Mapping[str, Mapping[str, str]] = {
    "own": {},
    "adopted": {"tracing": "on", "table_name": "kept", "table_stream_arn": _STREAM},
}
"""No resource depends on both tracing and an existing table, so one context has both."""
STRICT = {
    "runtime": "python3.14",
    "architecture": "x86_64",
    "log_retention_days": 400,
    "dashboard": "off",
    "kms_key_arn": _KEY,
    "subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "security_group_ids": ["sg-0123456789abcdef0"],
    "permissions_boundary": "audit/boundary",
    "role_path": "/audit/",
    "tags": {"team": "ml-platform", "stage": "prod"},
}
"""The settings that are off by default. Each one changes the same resources in every combination,
so they are all set in the two combinations that together have every resource."""
STRICT_COMBINATIONS = (("all", "report", "organization"), ("key", "silent", "accounts"))


def combinations() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a name and a template for every combination."""
    for context in CONTEXTS:
        for choices in product(CHANNELS, DIGESTS, MEMBERS):
            yield _combination(choices, context, CONTEXTS[context])
    for choices in STRICT_COMBINATIONS:
        yield _combination(choices, "strict", STRICT)


def _combination(
    choices: tuple[str, str, str], context_name: str, context: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    channels, digest, members = choices
    policy = Policy(channels=CHANNELS[channels], digest=DIGESTS[digest], members=MEMBERS[members])
    return "-".join((*choices, context_name)), synthesize_with_placeholder(policy, **context)


def main(folder: Path) -> None:
    """Writes the templates with new resources, those of a release, and that of a member."""
    folder.mkdir(parents=True, exist_ok=True)
    seen, count, written = set[str](), 0, 0
    for name, template in combinations():
        resources = {
            f"{logical_id} {json.dumps(resource)}"
            for logical_id, resource in template["Resources"].items()
        }
        count += 1
        if resources - seen:
            seen |= resources
            written += 1
            (folder / f"{name}.json").write_text(json.dumps(template, indent=1), encoding="utf-8")
    for name, channels in TEMPLATE_CHANNELS.items():
        released = released_template(channels, "0.0.0")
        target = folder / f"released-{name.partition('.')[0]}.json"
        target.write_text(json.dumps(released, indent=1), encoding="utf-8")
    shutil.copy(MEMBER, folder / "member.yaml")
    print(f"{count} combinations, {written} with resources of their own, {len(seen)} resources")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
