"""The CDK app: reads the stack's inputs and writes the cloud assembly."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns

from infra import file_tree, subscribers
from infra.bundling import POLICY, ROOT, checked_policy, to_deploy
from infra.names import STACK
from infra.stack import SageAuditStack
from sageaudit.adapters.channels.catalogue import CHANNELS, always_on

_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+")


def assemble() -> None:
    """Writes the templates and the asset into cdk.out, or into the CDK CLI's own folder."""
    outdir = os.environ.get("CDK_OUTDIR", "cdk.out")
    policy = checked_policy(POLICY)
    asset = to_deploy(policy)
    code = lambda_.Code.from_asset(str(asset.folder), asset_hash=asset.tree_hash)
    synthesize(code=code, roles=policy.accounts, outdir=outdir)
    for copy in Path(outdir).glob("asset.*"):
        file_tree.set_modes(copy)  # CDK makes the folders of its copy under this process's umask


def synthesize(
    *,
    code: lambda_.Code,
    roles: Mapping[str, str | None],
    outdir: str,
    switches: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Writes the assembly to `outdir` and returns the template.

    The context says for each optional channel whether it is "on" or "off", in `alarms_to` and
    `notices_to` who is subscribed to the topics, and in `topic_key` the ARN of an own KMS key for
    the topic of notices; `switches` override it. Raises ValueError.
    """
    app = cdk.App(context=cdk_context(), outdir=outdir)
    stack = SageAuditStack(
        app,
        STACK,
        code=code,
        roles=roles,
        channels=[c for c in CHANNELS if always_on(c) or _is_on(c.name, app, switches or {})],
        topic_key=_topic_key(app, switches or {}),
    )
    for topic, key in ((stack.alarms.topic, "alarms_to"), (stack.notices.topic, "notices_to")):
        text = (switches or {}).get(key, app.node.try_get_context(key))
        _subscribe(topic, text or "", key)
    template: dict[str, Any] = app.synth().get_stack_by_name(stack.stack_name).template
    return template


def _is_on(channel: str, app: cdk.App, switches: Mapping[str, str]) -> bool:
    switch = switches.get(channel, app.node.try_get_context(channel))
    if switch is None:
        return False
    if switch not in {"on", "off"}:
        raise ValueError(f"context {channel} must be on or off, not {switch!r}")
    return bool(switch == "on")


def _topic_key(app: cdk.App, switches: Mapping[str, str]) -> str | None:
    key = switches.get("topic_key", app.node.try_get_context("topic_key")) or None
    if key is not None and not _KEY_ARN.fullmatch(str(key)):
        raise ValueError(
            f"context topic_key must be the ARN of a KMS key, not {key!r}: the permissions of"
            " deliver are granted on it, and none can be granted on an alias"
        )
    return None if key is None else str(key)


def _subscribe(topic: sns.Topic, text: str, key: str) -> None:
    """For deployments without `make deploy`, which subscribes who is typed there."""
    try:
        addresses = subscribers.addresses(text)
    except subscribers.NoAddress as refusal:
        raise ValueError(f"context {key}: {refusal}") from refusal
    for address in addresses:
        # A logical id is shown wherever the stack is, and the path of an endpoint may hold a key.
        digest = hashlib.sha256(address.endpoint.encode()).hexdigest()[:12]
        sns.Subscription(
            topic,
            f"Listener{digest}",
            topic=topic,
            protocol=sns.SubscriptionProtocol[address.protocol.upper()],
            endpoint=address.endpoint,
        )


def cdk_context() -> dict[str, Any]:
    """The context of cdk.json, so that the stack is the same with and without the CDK CLI."""
    document = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))
    context: dict[str, Any] = document["context"]
    return context
