"""Access to other accounts: sessions, the organization's list of accounts, and assumed roles."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from sageaudit.adapters.aws.clients import (
    CONFIG,
    aws_errors,
    client,
    error_code,
    new_session,
    no_answer_error,
    parse_errors,
    read_text,
    require_key,
)
from sageaudit.domain.job.ref import REGION, region_partition
from sageaudit.domain.members import ASSUME_ROLE
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.errors import AccessDenied, BadUsage, Unavailable

SESSION_NAME = "sageaudit"
_NAME = re.compile(r"[\w+=,.@-]{1,64}(?:/[\w+=,.@-]{1,64}){0,8}\Z", re.ASCII)
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}\Z", re.ASCII)
PERMISSIONS = (ASSUME_ROLE,)
"""The permission to assume roles in other accounts. A scan uses the user's own credentials."""
_RENEW_BEFORE_EXPIRY_S = 300
_MAX_CLIENTS = 256
"""The maximum number of cached clients. Each takes half a megabyte of memory."""
LIST_PERMISSIONS = ("organizations:ListAccounts",)
"""AWS allows this call only in the management account and in accounts of delegated administrators.
"""
_NO_ORGANIZATION_CODE = "AWSOrganizationsNotInUseException"
_MAX_PAGES = 5_000


class Role(Struct, frozen=True):
    """A role that has the same name, including its path, in every account."""

    name: str
    external_id: str | None = None

    def __post_init__(self) -> None:
        """Raises BadUsage for values that IAM does not accept."""
        if not _NAME.match(self.name):
            raise BadUsage(
                f"--role {self.name} is not the name of a role: give the name alone, with its path"
                " if it has one, such as audit/sageaudit-read"
            )
        if self.external_id is not None and not _EXTERNAL_ID.match(self.external_id):
            raise BadUsage("--external-id must have 2 to 1,224 letters, digits or any of +=,.@:/-_")

    def arn(self, account: str, region: str) -> str:
        """Returns the role's ARN in an account. `region` determines the partition."""
        return role_arn(self.name, account, region)


def role_arn(role: str, account: str, region: str) -> str:
    """Returns the ARN of `role`, which is a name or already an ARN. `region` determines the
    partition.
    """
    return role if ":" in role else f"arn:{region_partition(region)}:iam::{account}:role/{role}"


def no_role(_: str) -> None:
    """Returns None: every account is read with the session's own credentials."""


class AccountClients:
    """Creates clients on any thread, and caches them until their credentials expire.

    `own_account` is the account of `session`. `role_of` returns the ARN or name of an account's
    role; None for an account that is read with the session's own credentials. `region` is the
    region in which STS is called; None means each client's own region. `clock` returns seconds
    since the epoch.
    """

    def __init__(
        self,
        session: Any,
        own_account: str,
        role_of: Callable[[str], str | None],
        clock: Callable[[], float],
        *,
        external_id: str | None = None,
        region: str | None = None,
    ) -> None:
        self._session = session
        self._own = own_account
        self._role_of = role_of
        self._clock = clock
        self._trust = {} if external_id is None else {"ExternalId": external_id}
        self._sts_region = region
        self._sts_clients: dict[str, Any] = {}
        self._credentials: dict[str, tuple[dict[str, str], float]] = {}
        self._clients: dict[tuple[str, str, str], tuple[Any, float | None]] = {}
        self._lock = threading.Lock()

    @classmethod
    def for_members(
        cls, session: Any, own_account: str, members: MemberAccounts, clock: Callable[[], float]
    ) -> Self:
        """Returns the clients for a deployment's own account and its member accounts."""
        external_id = members.external_id
        return cls(session, own_account, members.role, clock, external_id=external_id)

    def is_own(self, account: str) -> bool:
        """Returns whether an account is read with the session's own credentials."""
        return account == self._own

    def client_factory(self, service: str, config: Config = CONFIG) -> Callable[[str, str], Any]:
        """Returns a function from account and region to the service's client.

        All calls for one service must pass the same `config`. The function raises AccessDenied if
        the role is missing, does not trust the caller, or belongs to another account; AWS does not
        tell the first two apart. It may raise another AwsError.
        """
        return lambda account, region: self._client(service, account, region, config)

    def _client(self, service: str, account: str, region: str, config: Config) -> Any:
        key = (service, account, region)
        cached, expires_at = self._clients.get(key, (None, None))
        if cached is not None and (expires_at is None or self._clock() < expires_at):
            return cached
        role, credentials, expires_at = self._role_of(account), dict[str, str](), None
        if role is not None and account != self._own:
            arn = role_arn(role, account, region)
            credentials, expires_at = self.credentials(account, arn, region)
        with self._lock:
            new_client = self._session.client(
                service, region_name=region, config=config, **credentials
            )
            if len(self._clients) >= _MAX_CLIENTS:
                del self._clients[next(iter(self._clients))]
            self._clients[key] = new_client, expires_at
        return new_client

    def credentials(self, account: str, role: str, region: str) -> tuple[dict[str, str], float]:
        """Returns a role's credentials, and when to renew them, in seconds since the epoch.

        Raises AwsError.
        """
        cached = self._credentials.get(account)
        if cached is None or self._clock() >= cached[1]:
            cached = self._credentials[account] = self._assume_role(account, role, region)
        return cached

    def _sts_client(self, region: str) -> Any:
        with self._lock:  # a boto3 session can create only one client at a time
            if region not in self._sts_clients:
                self._sts_clients[region] = client(self._session, "sts", region)
            return self._sts_clients[region]

    def _assume_role(self, account: str, role: str, region: str) -> tuple[dict[str, str], float]:
        sts = self._sts_client(self._sts_region or region)
        try:
            with aws_errors("sts", f"on {role}"):
                answer = sts.assume_role(RoleArn=role, RoleSessionName=SESSION_NAME, **self._trust)
        except AccessDenied as error:
            raise AccessDenied(
                error.action,
                f"{role} cannot be assumed: it does not exist, does not trust you, requires another"
                " external id, or you may not call sts:AssumeRole on it.",
            ) from error
        with parse_errors("sts"):
            is_of_account = read_text(require_key(answer, "AssumedRoleUser"), "Arn").split(":")[
                4:5
            ] == [account]
        if not is_of_account:
            raise AccessDenied(
                ASSUME_ROLE, f"the role {role} that reads {account} belongs to another account"
            )
        issued_credentials = require_key(answer, "Credentials")
        with parse_errors("sts"):
            credentials = {
                "aws_access_key_id": read_text(issued_credentials, "AccessKeyId"),
                "aws_secret_access_key": read_text(issued_credentials, "SecretAccessKey"),
                "aws_session_token": read_text(issued_credentials, "SessionToken"),
            }
            return credentials, issued_credentials[
                "Expiration"
            ].timestamp() - _RENEW_BEFORE_EXPIRY_S


class NamedAccount(Struct, frozen=True):
    """An account. `name` is its name in the organization; None without an organization."""

    id: str
    name: str | None = None


def active_accounts(client: Any) -> list[NamedAccount]:
    """Returns the organization's active accounts, sorted by id.

    Raises BadUsage if there is no organization, AccessDenied, or another AwsError.
    """
    accounts: list[NamedAccount] = []
    arguments: dict[str, Any] = {}
    for _ in range(_MAX_PAGES):
        answer = _page(client, arguments)
        accounts += [
            NamedAccount(str(row["Id"]), str(row.get("Name") or "") or None)
            for row in answer.get("Accounts", ())
            if _is_active(row)
        ]
        token = answer.get("NextToken")
        if not token or token == arguments.get("NextToken"):
            return sorted(accounts, key=lambda account: account.id)
        arguments["NextToken"] = token
    raise Unavailable("organizations:ListAccounts returned no last page.")


def _page(client: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        with aws_errors("organizations"):
            try:
                answer: dict[str, Any] = client.list_accounts(**arguments)
            except ClientError as error:
                if error_code(error) == _NO_ORGANIZATION_CODE:
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
    # AWS replaced `Status` by `State` on 2026-09-09.
    return (row.get("State") or row.get("Status")) == "ACTIVE"


def open_session(profile: str | None, region: str | None) -> Any:
    """Opens a session. None means the profile or region of the AWS settings.

    The session's region may be None. Raises NoCredentials, or BadUsage for an invalid region name.
    """
    try:
        session = new_session(profile, region)
    except BotoCoreError as error:
        raise no_answer_error(error, "AWS's configuration") from error
    name = session.region_name
    if name is not None and not REGION.fullmatch(name):
        raise BadUsage(f"{name!r} is not a region; a region looks like eu-west-1")
    return session


class Identity(Struct, frozen=True):
    """The account and ARN that a session's credentials belong to."""

    account: str
    arn: str


class AccountList(Struct, frozen=True):
    """The requested accounts. `role` is assumed in all of them but the user's own."""

    own_identity: Identity
    accounts: tuple[NamedAccount, ...]
    role: Role | None

    @property
    def account_names(self) -> dict[str, str | None]:
        """The accounts' names in the organization, by account id."""
        return {account.id: account.name for account in self.accounts}

    def make_clients(self, session: Any, region: str) -> AccountClients:
        """Returns the clients of all accounts. STS is called in `region`."""
        own_account, role = self.own_identity.account, self.role
        other_accounts = (
            [name for name in self.account_names if name != own_account] if role else []
        )
        return AccountClients(
            session,
            own_account,
            {account: role.arn(account, region) for account in other_accounts if role}.get,
            time.time,
            external_id=role.external_id if role else None,
            region=region,
        )


def home_region(session: Any, regions: Sequence[str], *, all_regions: bool) -> str:
    """Returns the region in which to call STS, or "" if `regions` is empty.

    The region is in the partition of `regions`. The session's region is preferred, since the
    account has probably enabled it.
    """
    if not regions:
        return ""
    own_region, partition = session.region_name, region_partition(regions[0])
    if own_region is not None and region_partition(own_region) == partition:
        return str(own_region)
    return "us-east-1" if all_regions and partition == "aws" else regions[0]


def identity(session: Any, region: str | None) -> Identity:
    """Returns the account and ARN of the session's credentials. Raises AwsError."""
    with aws_errors("sts"):
        answer = client(session, "sts", region).get_caller_identity()
    return Identity(str(require_key(answer, "Account")), str(require_key(answer, "Arn")))
