"""Other accounts and regions: what they may do here, what the functions may do there.

`infra/member.yaml` is their side. `make deploy` creates it in the other regions of this account;
in other accounts, whoever administers the organization does (docs/organization.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from botocore.exceptions import ClientError

from sageaudit.domain.policy.scope import MemberAccounts

TEMPLATE = Path(__file__).parent / "member.yaml"
MAX_MEMBERS_WITHOUT_ORGANIZATION = 100
"""Most accounts that can be listed: IAM and EventBridge limit the length of their policies."""
Grant = tuple[list[str], Mapping[str, Any] | None]
"""Resources, and the condition under which they are granted."""


def check_members(members: MemberAccounts) -> MemberAccounts:
    """Raises ValueError for more accounts than policies without an organization can name."""
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
    """Returns the bus's policy: for the accounts of the organization, or for the listed ones."""
    senders: dict[str, Any] = {
        "Principal": {
            "AWS": [f"arn:{cdk.Aws.PARTITION}:iam::{id_}:root" for id_ in members.role_by_account]
        }
    }
    if members.organization is not None:
        in_it = {"StringEquals": {"aws:PrincipalOrgID": members.organization}}
        senders = {"Principal": "*", "Condition": in_it}
    return {
        "Sid": "sageaudit",
        "Effect": "Allow",
        "Action": "events:PutEvents",
        "Resource": bus_arn,
        **senders,
    }


def assumable_roles(members: MemberAccounts) -> Iterator[Grant]:
    """Yields the roles of one name in the organization, and those that the policy has by ARN."""
    by_arn = {role for role in members.role_by_account.values() if ":" in role}
    by_name = {
        account: role for account, role in members.role_by_account.items() if role not in by_arn
    }
    if members.organization is None:
        by_arn |= {_role(account, role) for account, role in by_name.items()}
    elif by_name:
        in_it = {"StringEquals": {"aws:ResourceOrgID": members.organization}}
        yield sorted({_role("*", role) for role in by_name.values()}), in_it
    if by_arn:
        yield sorted(by_arn), None


def _role(account: str, name: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:iam::{account}:role/{name}"


def create_forwarding(
    session: Any, home_account_region: tuple[str, str], stack: str, regions: list[str]
) -> None:
    """Forwards this account's events of other regions.

    `home_account_region`: where the stack is. Raises ClientError, WaiterError.
    """
    account, region = home_account_region
    values = {"HomeAccount": account, "HomeRegion": region, "HomeStack": stack, "OfHome": "yes"}
    for place in regions:
        _create_or_update(
            session.client("cloudformation", region_name=place), f"{stack}-member", values
        )


def delete_forwarding(session: Any, stack: str, regions: list[str]) -> None:
    """Deletes the forwarding from these regions, if there is any. Raises ClientError."""
    for place in regions:
        session.client("cloudformation", region_name=place).delete_stack(
            StackName=f"{stack}-member"
        )


def _create_or_update(formation: Any, name: str, values: Mapping[str, str]) -> None:
    """Creates or updates the stack; replaces one whose creation failed."""
    call = {
        "StackName": name,
        "TemplateBody": TEMPLATE.read_text(encoding="utf-8"),
        "Parameters": [{"ParameterKey": k, "ParameterValue": v} for k, v in values.items()],
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
        "Tags": [{"Key": "sageaudit", "Value": values["HomeStack"]}],
    }
    try:
        formation.update_stack(**call)
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
        formation.create_stack(**call)
        waiter = "stack_create_complete"
    formation.get_waiter(waiter).wait(StackName=name)
