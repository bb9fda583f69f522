"""What the commands that ask AWS share: other accounts, Ctrl-C, and the list of jobs.

Ctrl-C is a wish that a long command looks at, so that what is done is kept and shown.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

import click
from msgspec import Struct

from sageaudit.adapters.aws import accounts
from sageaudit.adapters.aws.accounts import AccountList, NamedAccount, Role, identity
from sageaudit.adapters.aws.clients import aws_errors, client
from sageaudit.adapters.aws.pace import RateLimiter, ScanStopped
from sageaudit.cli import options
from sageaudit.cli.messages import print_message
from sageaudit.errors import BadUsage
from sageaudit.output.text.words import count_text

if TYPE_CHECKING:
    from sageaudit.workflows.scan.run import ScanRun

_POLL_INTERVAL_S = 0.1
"""How often a thread that waits looks whether Ctrl-C was pressed."""


class Interruption:
    """While it is open, the first Ctrl-C only marks; the second one ends the command at once.

    The mark has no lock: a handler that waits for one that its own thread holds waits for ever.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._wished = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._mark)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @property
    def is_requested(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._wished

    @contextmanager
    def during_question(self) -> Iterator[None]:
        """While somebody is asked, Ctrl-C answers at once."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, self._mark)

    def sleep(self, seconds: float) -> None:
        """Waits. Raises Stopped as soon as Ctrl-C was pressed."""
        until = time.monotonic() + seconds
        while not self._wished and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_INTERVAL_S))
        if self._wished:
            raise ScanStopped

    def _mark(self, number: int, frame: FrameType | None) -> None:
        if self.is_requested:
            signal.default_int_handler(number, frame)
        self._wished = True
        with suppress(RuntimeError):  # it may come while stderr is written
            self._say("stopping: what is done is kept. Ctrl-C again ends at once.")


class OtherAccounts(Struct, frozen=True):
    """Which other accounts are asked, and by which role."""

    accounts: tuple[str, ...]
    organization: bool
    role: str | None
    external_id: str | None

    def check_consistency(self) -> None:
        """Raises BadUsage where the options do not fit together."""
        if self.accounts and self.organization:
            raise BadUsage("name the accounts once: either --account ID or --organization")
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


OTHER_ACCOUNTS = options.option_group(
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


def list_live_jobs(
    run: ScanRun,
    session: Any,
    other_accounts: OtherAccounts,
    home_region: str,
    pace: RateLimiter,
    interruption: Interruption,
) -> dict[str, str | None]:
    """Lists the jobs of the own account, or of the others, into a scan, and says where it looks.

    Returns the others with what the organization calls them. Raises Stopped after Ctrl-C, or
    AwsError.
    """
    from sageaudit.cli.views.scan import listing_line  # noqa: PLC0415 - doctor needs no rules
    from sageaudit.workflows.scan.accounts import (  # noqa: PLC0415
        ScannedAccount,
        ScannedAccounts,
    )

    where = listing_line(run.scope.regions, run.scope.days)
    if not other_accounts:
        print_message(where)
        run.list_account(ScannedAccount(session, pace))
        return {}
    several = ScannedAccounts(
        session, other_accounts.list_accounts(session, home_region), home_region, pace
    )
    print_message(f"{where}, {count_text(len(several), 'account')}")
    run.list_accounts(several, lambda: interruption.is_requested)
    return several.listed.account_names
