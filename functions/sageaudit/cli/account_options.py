"""The options that select other accounts, and the list of these accounts' jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from sageaudit.adapters.aws import accounts
from sageaudit.adapters.aws.accounts import AccountList, NamedAccount, Role, identity
from sageaudit.adapters.aws.clients import aws_errors, client
from sageaudit.adapters.aws.pace import RateLimiter
from sageaudit.cli import options
from sageaudit.cli.interruption import Interruption
from sageaudit.cli.messages import print_message
from sageaudit.errors import BadUsage
from sageaudit.output.text.words import count_text

if TYPE_CHECKING:
    from sageaudit.workflows.scan.run import ScanRun


class OtherAccounts(Struct, frozen=True):
    """The other accounts to read, and the role to assume in them."""

    accounts: tuple[str, ...]
    organization: bool
    role: str | None
    external_id: str | None

    def check_consistency(self) -> None:
        """Raises BadUsage if the options contradict each other."""
        if self.accounts and self.organization:
            raise BadUsage("give either --account ID or --organization, not both")
        for account in self.accounts:
            options.check_account_id(account, "--account")
        if self.external_id is not None and self.role is None:
            raise BadUsage("--external-id needs --role NAME")
        if self.role is not None and not self:
            raise BadUsage("--role needs the accounts that have it: --account ID or --organization")
        if self.organization and self.role is None:
            raise BadUsage("--organization needs --role NAME: the role to assume in each account")
        self._role()

    def __bool__(self) -> bool:
        return bool(self.accounts) or self.organization

    def list_accounts(self, session: Any, region: str) -> AccountList:
        """Returns the named accounts, or else the organization's active accounts.

        Raises BadUsage or AwsError.
        """
        own_identity = identity(session, region)
        named_accounts = [NamedAccount(account) for account in dict.fromkeys(self.accounts)]
        if not named_accounts:
            with aws_errors("organizations"):
                named_accounts = accounts.active_accounts(client(session, "organizations", region))
        role = self._role()
        other_ids = [account.id for account in named_accounts if account.id != own_identity.account]
        if other_ids and role is None:
            raise BadUsage(
                f"--account names {other_ids[0]}, which is not your own account"
                f" {own_identity.account}: give the role to assume there with --role NAME"
            )
        return AccountList(own_identity, tuple(named_accounts), role)

    def _role(self) -> Role | None:
        return None if self.role is None else Role(self.role, self.external_id)


OTHER_ACCOUNTS_OPTIONS = options.option_group(
    "other_accounts",
    OtherAccounts,
    click.option(
        "--account",
        "accounts",
        metavar="ID",
        multiple=True,
        help="Account to read; may be repeated.",
    ),
    click.option(
        "--organization",
        is_flag=True,
        help="Read all active accounts of your organization; needs credentials of its management"
        " account or of a delegated administrator.",
    ),
    click.option(
        "--role",
        metavar="NAME",
        help="Name of the role to assume in each account except your own, with its path if it"
        " has one.",
    ),
    click.option(
        "--external-id", metavar="TEXT", help="External ID that the role's trust policy requires."
    ),
)


def list_live_jobs(
    run: ScanRun,
    session: Any,
    other_accounts: OtherAccounts,
    home_region: str,
    pace: RateLimiter,
    interruption: Interruption,
) -> dict[str, str | None]:
    """Lists the jobs of your own account, or of the other accounts, for a scan.

    Returns each other account's name in its organization. Raises ScanStopped after Ctrl-C, or
    AwsError.
    """
    from sageaudit.cli.views.scan import listing_line  # noqa: PLC0415 - doctor needs no rules
    from sageaudit.workflows.scan.accounts import (  # noqa: PLC0415
        ScannedAccount,
        ScannedAccounts,
    )

    line = listing_line(run.scope.regions, run.scope.days)
    if not other_accounts:
        print_message(line)
        run.list_account(ScannedAccount(session, pace))
        return {}
    scanned_accounts = ScannedAccounts(
        session, other_accounts.list_accounts(session, home_region), home_region, pace
    )
    print_message(f"{line}, {count_text(len(scanned_accounts), 'account')}")
    run.list_accounts(scanned_accounts, lambda: interruption.is_requested)
    return scanned_accounts.account_list.account_names
