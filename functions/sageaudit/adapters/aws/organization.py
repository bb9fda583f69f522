"""AWS Organizations: the accounts of the organization."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError
from msgspec import Struct

from sageaudit.adapters.aws.clients import aws_errors, code_of
from sageaudit.errors import AccessDenied, BadUsage, Unavailable

LIST_PERMISSIONS = ("organizations:ListAccounts",)
"""Answered in the management account and in those of delegated administrators only."""
_NO_ORGANIZATION = "AWSOrganizationsNotInUseException"
_MOST_PAGES = 5_000


class NamedAccount(Struct, frozen=True):
    """An account by its id. `name` is what the organization calls it; None outside of one."""

    id: str
    name: str | None = None


def active_accounts(client: Any) -> list[NamedAccount]:
    """The active accounts of the organization, by id. Raises BadUsage without an organization.

    Raises AccessDenied, which says where to ask from, or another AwsError.
    """
    found: list[NamedAccount] = []
    call: dict[str, Any] = {}
    for _ in range(_MOST_PAGES):
        answer = _page(client, call)
        found += [
            NamedAccount(str(row["Id"]), str(row.get("Name") or "") or None)
            for row in answer.get("Accounts", ())
            if _is_active(row)
        ]
        token = answer.get("NextToken")
        if not token or token == call.get("NextToken"):
            return sorted(found, key=lambda account: account.id)
        call["NextToken"] = token
    raise Unavailable("organizations:ListAccounts returned no last page.")


def _page(client: Any, call: dict[str, Any]) -> dict[str, Any]:
    try:
        with aws_errors("organizations"):
            try:
                answer: dict[str, Any] = client.list_accounts(**call)
            except ClientError as error:
                if code_of(error) == _NO_ORGANIZATION:
                    raise BadUsage(
                        "--organization: this account is in no organization; name the accounts"
                        " with --account ID"
                    ) from error
                raise
    except AccessDenied as error:
        raise AccessDenied(
            error.action,
            f"{error.action} is not permitted: use credentials of the organization's management"
            " account or of a delegated administrator, or name the accounts with --account ID.",
        ) from error
    return answer


def _is_active(row: dict[str, Any]) -> bool:
    """By `State`, which replaces `Status`: AWS retired `Status` on 2026-09-09."""
    return (row.get("State") or row.get("Status")) == "ACTIVE"
