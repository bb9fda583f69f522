"""Other accounts and regions: what they may do here, and what the functions may do there.

`infra/member.yaml` is the template for members. `make deploy` creates its stack in the other
regions of this account. In other accounts, an administrator of the organization creates it
(docs/organization.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from botocore.exceptions import ClientError

from infra.settings import Settings, tag_list
from sageaudit.domain.policy.scope import MemberAccounts

TEMPLATE = Path(__file__).parent / "member.yaml"
MAX_MEMBERS_WITHOUT_ORGANIZATION = 100
"""The maximum number of listed accounts: IAM and EventBridge limit the length of their policies."""
Grant = tuple[list[str], Mapping[str, Any] | None]
"""The resources of a grant, and its condition; None without a condition."""


def check_members(members: MemberAccounts) -> MemberAccounts:
    """Returns the members unchanged.

    Raises ValueError for more accounts than policies without an organization can list.
    """
    if (
        members.organization is None
        and len(members.role_by_account) > MAX_MEMBERS_WITHOUT_ORGANIZATION
    ):
        raise ValueError(
            f"policy.toml names {len(members.role_by_account)} accounts: with more than"
            f" {MAX_MEMBERS_WITHOUT_ORGANIZATION}, set organization in [accounts]"
        )
    return members


def forward_statement(members: MemberAccounts, bus_arn: str) -> dict[str, Any]:
    """Returns the bus's policy statement, for the accounts of the organization or the listed
    accounts.
    """
    senders: dict[str, Any] = {
        "Principal": {
            "AWS": [
                f"arn:{cdk.Aws.PARTITION}:iam::{account}:root"
                for account in members.role_by_account
            ]
        }
    }
    if members.organization is not None:
        condition = {"StringEquals": {"aws:PrincipalOrgID": members.organization}}
        senders = {"Principal": "*", "Condition": condition}
    return {
        "Sid": "sageaudit",
        "Effect": "Allow",
        "Action": "events:PutEvents",
        "Resource": bus_arn,
        **senders,
    }


def assumable_roles(members: MemberAccounts) -> Iterator[Grant]:
    """Yields the roles that the functions may assume: by name in the organization or the listed
    accounts, and by ARN.
    """
    arns = {role for role in members.role_by_account.values() if ":" in role}
    name_by_account = {
        account: role for account, role in members.role_by_account.items() if role not in arns
    }
    if members.organization is None:
        arns |= {_role(account, role) for account, role in name_by_account.items()}
    else:
        # AWS's own managed policies use this key for sts:AssumeRole, such as
        # AWS-SSM-DiagnosisAutomation-OperationalAccountAdministrationRolePolicy.
        condition = {"StringEquals": {"aws:ResourceOrgID": members.organization}}
        names = {*name_by_account.values(), *filter(None, [members.organization_role])}
        if names:
            yield sorted(_role("*", role) for role in names), condition
    if arns:
        yield sorted(arns), None


def _role(account: str, name: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:iam::{account}:role/{name}"


def create_forwarding(
    session: Any, home_account_region: tuple[str, str], settings: Settings, regions: list[str]
) -> None:
    """Creates the stacks that forward this account's events from other regions.

    `home_account_region`: where sageaudit is deployed. Raises ClientError or WaiterError.
    """
    account, region = home_account_region
    parameters = {
        "HomeAccount": account,
        "HomeRegion": region,
        "HomeStack": settings.stack,
        "HomeRolePath": settings.role_path,
        "RolePath": settings.role_path,
        "PermissionsBoundary": settings.permissions_boundary or "",
        "OfHome": "yes",
    }
    for member_region in regions:
        _create_or_update(
            session.client("cloudformation", region_name=member_region),
            f"{settings.stack}-member",
            parameters,
            settings.all_tags,
        )


def delete_forwarding(session: Any, stack: str, regions: list[str]) -> None:
    """Deletes the stacks that forward events from these regions, if any. Raises ClientError."""
    for region in regions:
        session.client("cloudformation", region_name=region).delete_stack(
            StackName=f"{stack}-member"
        )


def _create_or_update(
    formation: Any, name: str, parameters: Mapping[str, str], tags: Mapping[str, str]
) -> None:
    """Creates or updates a stack; replaces a stack whose creation failed."""
    arguments = {
        "StackName": name,
        "TemplateBody": TEMPLATE.read_text(encoding="utf-8"),
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
        ],
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
        "Tags": tag_list(tags),
    }
    try:
        formation.update_stack(**arguments)
        waiter = "stack_update_complete"
    except ClientError as error:
        message = error.response["Error"].get("Message", "")
        if "No updates" in message:
            return
        if "ROLLBACK_COMPLETE" in message and "UPDATE_" not in message:
            formation.delete_stack(StackName=name)
            formation.get_waiter("stack_delete_complete").wait(StackName=name)
        elif "does not exist" not in message:
            raise
        formation.create_stack(**arguments)
        waiter = "stack_create_complete"
    formation.get_waiter(waiter).wait(StackName=name)
