"""Prepares a deployment without a clone: copies a release's Lambda zip with a policy.

As with `make deploy`, code and policy are one object that never changes. So a rollback restores
both, and the functions read no further file at a cold start. A parameter of CloudFormation could
not hold a policy: it has at most 4,096 bytes.

A release has one template for each usual set of channels. Only `make deploy` can deploy other
settings of a policy that change the stack, such as other accounts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from msgspec import Struct

from sageaudit.adapters.files import lambda_asset, stored_policy
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import CHANNEL_SECRETS, ChannelConfig, default_channels
from sageaudit.domain.policy.scope import DigestSchedule
from sageaudit.errors import BadPolicy, BadUsage
from sageaudit.rules import version
from sageaudit.structs import replace

TEMPLATE_CHANNELS: Mapping[str, Mapping[str, ChannelConfig]] = {
    "sageaudit.template.json": default_channels(),
    **{
        f"sageaudit-{service}.template.json": {
            **default_channels(),
            service: ChannelConfig(service, secret=f"{CHANNEL_SECRETS}{service}"),
        }
        for service in ("slack", "teams")
    },
}
"""The channels of each template of a release. Two channels of one service, or both services, are
rare enough for `make deploy`."""
DIGEST_CRON = "DigestSchedule"
"""The parameter of the templates with the time of the digest."""
DIGEST_TIMEZONE = "DigestTimezone"


class PackedAsset(Struct, frozen=True):
    """A Lambda asset with a policy.

    `template`: the name of the release's template for it. `parameters`: the template's parameters
    that depend on the policy. `secrets`: the secrets that must exist before the deployment, without
    the key of fingerprints.
    """

    path: Path
    template: str
    parameters: Mapping[str, str]
    secrets: tuple[str, ...]


def pack(asset: Path, policy: Policy, folder: Path) -> PackedAsset:
    """Writes the asset with the policy to a folder, under a name that changes with its content.

    CloudFormation updates functions only if the key of their code changes. Raises BadPolicy if no
    template fits the policy, or BadUsage.
    """
    template = _find_template(policy)
    asset_version = lambda_asset.read_version(asset)
    own_version = version.read_version(resources.files("sageaudit"))
    if asset_version != own_version:
        raise BadUsage(
            f"{asset} is of sageaudit {asset_version}, and this command of {own_version}: use the"
            " wheel and the asset of one release"
        )
    with asset.open("rb") as file:
        asset_hash = hashlib.file_digest(file, "sha256").hexdigest()
    content = f"{stored_policy.to_text(policy)}{asset_hash}"
    name = f"{asset.stem}-{hashlib.sha256(content.encode()).hexdigest()[:12]}.zip"
    lambda_asset.write_with_policy(asset, folder / name, policy)
    secrets = tuple(row.secret for row in policy.channels.values() if row.secret)
    # Also the usual time: a parameter that an update does not name keeps its value. If the digest
    # is off, the function is invoked at the usual time, and sends nothing.
    schedule = policy.digest or DigestSchedule()
    parameters = {DIGEST_CRON: schedule.cron, DIGEST_TIMEZONE: schedule.timezone}
    return PackedAsset(folder / name, template, parameters, secrets)


def _find_template(policy: Policy) -> str:
    """Returns the first template with all channels of the policy. Raises BadPolicy."""
    members = policy.members
    if members.has_other_accounts or members.all_regions:
        raise _needs_clone("accounts", "other accounts or regions")
    if policy.digest and policy.digest.report_bucket:
        raise _needs_clone("digest", "a report_bucket")
    addresses = {name: _address(channel) for name, channel in policy.channels.items()}
    for template, channels in TEMPLATE_CHANNELS.items():
        if addresses.items() <= {n: _address(row) for n, row in channels.items()}.items():
            return template
    raise _needs_clone(
        "channels",
        "other channels than the stack's topic, and one of slack (service slack) or teams (service"
        f" teams) whose secret is {CHANNEL_SECRETS} and its name",
    )


def _needs_clone(section: str, extent: str) -> BadPolicy:
    return BadPolicy(
        f"[{section}] has {extent}, which the templates of a release do not have: deploy from a"
        " clone with `make deploy`"
    )


def _address(channel: ChannelConfig) -> ChannelConfig:
    """Returns what the stack needs to know of a channel. Limits and lines are only in the asset."""
    return replace(channel, max_per_hour=None, job_lines=False)
