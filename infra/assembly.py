"""The CDK app: reads the stack's inputs and writes the cloud assembly."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_

from infra import file_tree
from infra.bundling import POLICY, build_lambda_asset, load_policy
from infra.settings import SETTING_NAMES, BadSetting, Settings, cdk_context, read_settings
from infra.stack import SageAuditStack
from sageaudit.domain.policy.policy import Policy


def assemble() -> None:
    """Writes the templates and the asset into cdk.out, or into the CDK CLI's own folder."""
    outdir = os.environ.get("CDK_OUTDIR", "cdk.out")
    policy = load_policy(POLICY)

    def build_code(settings: Settings) -> lambda_.Code:
        asset = build_lambda_asset(policy, settings.python, settings.architecture)
        return lambda_.Code.from_asset(str(asset.folder), asset_hash=asset.tree_hash)

    try:
        synthesize(build_code=build_code, policy=policy, outdir=outdir)
    except BadSetting as error:
        raise SystemExit(f"sageaudit: {error}") from error
    for copy in Path(outdir).glob("asset.*"):
        file_tree.set_modes(copy)  # CDK creates the folders of its copy with this process's umask


def synthesize(
    *,
    build_code: Callable[[Settings], lambda_.Code],
    policy: Policy,
    outdir: str,
    context: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Writes the assembly to `outdir` and returns the template.

    `context` overrides the settings of cdk.json. Raises ValueError.
    """
    app = cdk.App(context=cdk_context() | dict(context or {}), outdir=outdir)
    settings = read_settings({key: app.node.try_get_context(key) for key in SETTING_NAMES})
    stack = SageAuditStack(
        app,
        settings.stack,
        code=build_code(settings),
        settings=settings,
        members=policy.members,
        channels=policy.channels,
        digest=policy.digest if policy.mode == "notify" else None,
        is_watch_on=policy.watch is not None and policy.mode == "notify",
        has_budgets=bool(policy.budgets) and policy.mode == "notify",
    )
    template: dict[str, Any] = app.synth().get_stack_by_name(stack.stack_name).template
    return template
