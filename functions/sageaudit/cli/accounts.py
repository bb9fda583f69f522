"""The options that name other accounts, and the role to assume there."""

from __future__ import annotations

from typing import Any

import click
from msgspec import Struct

from sageaudit.adapters.aws import accounts
from sageaudit.adapters.aws.accounts import AccountList, NamedAccount, Role, identity
from sageaudit.adapters.aws.clients import aws_errors, client
from sageaudit.cli import options
from sageaudit.errors import BadUsage


class OtherAccounts(Struct, frozen=True):
    """Which other accounts are asked, and by which role."""

    accounts: tuple[str, ...]
    organization: bool
    role: str | None
    external_id: str | None

    def check(self) -> None:
        """Raises BadUsage where the options do not fit together."""
        if self.accounts and self.organization:
            raise BadUsage("name the accounts once: either --account ID or --organization")
        for account in self.accounts:
            options.account_id(account, "--account")
        if self.external_id is not None and self.role is None:
            raise BadUsage("--external-id needs --role NAME")
        if self.role is not None and not self:
            raise BadUsage("--role needs the accounts that have it: --account ID or --organization")
        if self.organization and self.role is None:
            raise BadUsage("--organization needs --role NAME: the role to assume in each account")
        self._role()

    def __bool__(self) -> bool:
        return bool(self.accounts) or self.organization

    def listed(self, session: Any, region: str) -> AccountList:
        """The accounts that are named; without one, the active accounts of the organization.

        Raises BadUsage or AwsError.
        """
        own = identity(session, region)
        listed = [NamedAccount(account) for account in dict.fromkeys(self.accounts)]
        if not listed:
            with aws_errors("organizations"):
                listed = accounts.active_accounts(client(session, "organizations", region))
        role = self._role()
        others = [account.id for account in listed if account.id != own.account]
        if others and role is None:
            raise BadUsage(
                f"--account names {others[0]}, which is not your own account {own.account}: give"
                " the role to assume there with --role NAME"
            )
        return AccountList(own, tuple(listed), role)

    def _role(self) -> Role | None:
        return None if self.role is None else Role(self.role, self.external_id)


OTHER_ACCOUNTS = options.together(
    "others",
    OtherAccounts,
    click.option(
        "--account",
        "accounts",
        metavar="ID",
        multiple=True,
        help="Account to ask; may be repeated.",
    ),
    click.option(
        "--organization",
        is_flag=True,
        help="Ask all active accounts of your organization; needs credentials of its management"
        " account or of a delegated administrator.",
    ),
    click.option(
        "--role",
        metavar="NAME",
        help="Role to assume in each account except your own; its name, with its path if it has"
        " one.",
    ),
    click.option(
        "--external-id", metavar="TEXT", help="External id that the role's trust policy wants."
    ),
)
