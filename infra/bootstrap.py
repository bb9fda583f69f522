"""Whether a region is bootstrapped for the CDK: it then has a bucket and roles for deployments.

The version is read from the SSM parameter that the template's own check reads, whatever name the
toolkit's stack has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from botocore.exceptions import ClientError

from infra.deploy_flags import Flags
from sageaudit.workflows.doctor.deployment import DEFAULT_QUALIFIER

QUALIFIER_KEY = "@aws-cdk/core:bootstrapQualifier"
"""The key of the CDK's context that names another bootstrap than the default one."""
REQUIRED_VERSION = 6
"""The lowest version of the bootstrap that the template accepts."""


def bootstrap_qualifier(context: Mapping[str, Any]) -> str:
    """Returns the qualifier in the names of the bootstrap's parameter, bucket and roles."""
    return str(context.get(QUALIFIER_KEY) or DEFAULT_QUALIFIER)


def should_bootstrap(ssm: Any, flags: Flags, qualifier: str) -> bool:
    """Returns whether the region must be bootstrapped first, to which somebody then agreed.

    Raises ClickException if it may not be bootstrapped, or if its version is unknown or too low,
    and Abort.
    """
    name = f"/cdk-bootstrap/{qualifier}/version"
    version = _read_version(ssm, name)
    if version is None:
        _agree(flags, name)
        return True
    if version < REQUIRED_VERSION:
        raise click.ClickException(
            f"the CDK bootstrap of this region has version {version}, and sageaudit needs"
            f" {REQUIRED_VERSION} or newer: whoever bootstrapped it must run `cdk bootstrap` again"
        )
    return False


def _read_version(ssm: Any, name: str) -> int | None:
    """Returns the bootstrap's version; None if the region is not bootstrapped."""
    try:
        return int(ssm.get_parameter(Name=name)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        return None
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDeniedException":
            raise
        raise click.ClickException(
            f"ssm:GetParameter on {name} is denied, so it is unknown whether this region is"
            " bootstrapped for the CDK: `sageaudit doctor --policy deploy` prints the policy that"
            " a deployment needs"
        ) from error


def _agree(flags: Flags, name: str) -> None:
    if flags.bootstrap:
        click.echo("This region is not bootstrapped for the CDK: it is bootstrapped (--bootstrap).")
    elif flags.assume_yes or not flags.is_interactive:
        raise click.ClickException(
            f"this region is not bootstrapped for the CDK, as there is no SSM parameter {name}: add"
            " --bootstrap, which gives CloudFormation's role AdministratorAccess, or let an"
            " administrator bootstrap it with another policy (docs/before-you-deploy.md)"
        )
    else:
        flags.confirm(
            "This region is not bootstrapped for the CDK (a bucket and roles for deployments)."
            " Bootstrap it now, with AdministratorAccess for CloudFormation's role?"
        )
