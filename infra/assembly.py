"""The CDK app: reads the stack's inputs and writes the cloud assembly."""

from __future__ import annotations

import hashlib
import json
import os
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
from sageaudit.domain.policy.policy import Policy


def assemble() -> None:
    """Writes the templates and the asset into cdk.out, or into the CDK CLI's own folder."""
    outdir = os.environ.get("CDK_OUTDIR", "cdk.out")
    policy = checked_policy(POLICY)
    asset = to_deploy(policy)
    code = lambda_.Code.from_asset(str(asset.folder), asset_hash=asset.tree_hash)
    synthesize(code=code, policy=policy, outdir=outdir)
    for copy in Path(outdir).glob("asset.*"):
        file_tree.set_modes(copy)  # CDK makes the folders of its copy under this process's umask


def synthesize(
    *,
    code: lambda_.Code,
    policy: Policy,
    outdir: str,
    context: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Writes the assembly to `outdir` and returns the template.

    The context says in `alarms_to` and `notices_to` who is subscribed to the stack's topics;
    `context` overrides it. Raises ValueError.
    """
    app = cdk.App(context=cdk_context(), outdir=outdir)
    stack = SageAuditStack(
        app,
        STACK,
        code=code,
        roles=policy.accounts,
        channels=policy.channels,
        digest=policy.digest if policy.mode == "tell" else None,
    )
    for topic, key in ((stack.alarms.topic, "alarms_to"), (stack.notices.topic, "notices_to")):
        text = (context or {}).get(key, app.node.try_get_context(key))
        _subscribe(topic, text or "", key)
    template: dict[str, Any] = app.synth().get_stack_by_name(stack.stack_name).template
    return template


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
