"""Sessions in other accounts: a role of one name is assumed in each, and renewed in time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.credentials import (
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
)
from botocore.loaders import create_loader
from botocore.session import Session

from sageaudit.adapters.aws.clients import CONFIG, aws_errors, client, parsing, part_of, text_in
from sageaudit.domain.job.ref import partition_of
from sageaudit.domain.policy.members import Members
from sageaudit.errors import AccessDenied, BadUsage, NoCredentials, RejectedEvent

ASSUME_PERMISSIONS = ("sts:AssumeRole",)
"""On the role in each account; the user's own credentials need it, the role does not."""
SESSION_NAME = "sageaudit"
_NAME = re.compile(r"[\w+=,.@-]{1,64}(?:/[\w+=,.@-]{1,64}){0,8}\Z", re.ASCII)
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Role:
    """A role that has the same name, with its path, in every account."""

    name: str
    external_id: str | None = None

    def __post_init__(self) -> None:
        """Raises BadUsage for what IAM would not accept."""
        if not _NAME.match(self.name):
            raise BadUsage(
                f"--role {self.name} is not the name of a role: give the name alone, with its path"
                " if it has one, such as audit/sageaudit-read"
            )
        if self.external_id is not None and not _EXTERNAL_ID.match(self.external_id):
            raise BadUsage("--external-id must have 2 to 1,224 letters, digits or any of +=,.@:/-_")

    def arn(self, account: str, region: str) -> str:
        """Its ARN in an account, in the partition of a region."""
        return role_arn(self.name, account, region)


def role_arn(role: str, account: str, region: str) -> str:
    """The ARN of a role in an account, in the partition of a region; `role` may be it already."""
    return role if ":" in role else f"arn:{partition_of(region)}:iam::{account}:role/{role}"


class AssumedRoles:
    """Makes one session for each account. `session` has the user's own credentials."""

    def __init__(self, session: Any, role: Role, region: str) -> None:
        self._role, self._region = role, region
        self._loader = create_loader()  # of all sessions: a service's model takes much memory
        with aws_errors("sts"):
            self._sts = client(session, "sts", region, CONFIG)

    def session(self, account: str) -> RoleSession:
        """A session in this account; its credentials last an hour, and are renewed as needed.

        Raises AccessDenied where the role is missing or does not trust the caller, which AWS does
        not tell apart, NoCredentials where the user's own credentials are refused, Throttled or
        Unavailable.
        """
        made = Session()
        made.register_component("data_loader", self._loader)
        provider = _Provider(lambda: self._assume(account))
        made.register_component("credential_provider", CredentialResolver([provider]))
        try:
            made.get_credentials().get_frozen_credentials()
        except RuntimeError as error:  # botocore's word for credentials that are expired when new
            raise NoCredentials(
                f"The credentials of the role in {account} are expired by this machine's time:"
                " set its clock."
            ) from error
        return RoleSession(made)

    def _assume(self, account: str) -> dict[str, str]:
        """New credentials, in the form in which botocore keeps them."""
        role = self._role
        arn = role.arn(account, self._region)
        more = {} if role.external_id is None else {"ExternalId": role.external_id}
        try:
            with aws_errors("sts", f"on {arn}"):
                answer = self._sts.assume_role(RoleArn=arn, RoleSessionName=SESSION_NAME, **more)
        except AccessDenied as error:
            raise AccessDenied(
                error.action,
                f"{arn} cannot be assumed: it is not there, does not trust you, wants another"
                " --external-id, or you may not call sts:AssumeRole on it.",
            ) from error
        found = answer["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }


class RoleSession:
    """Makes clients with a role's credentials, as boto3's session does."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def client(self, service: str, *, region_name: str | None, config: Config) -> Any:
        """A client of the service in a region."""
        return self._session.create_client(service, region_name=region_name, config=config)


class _Provider(CredentialProvider):  # type: ignore[misc]
    METHOD = "sageaudit-role"

    def __init__(self, assume: Callable[[], dict[str, str]]) -> None:
        super().__init__()
        self._assume = assume

    def load(self) -> DeferredRefreshableCredentials:
        """Credentials that are asked for when they are needed, and again before they expire."""
        return DeferredRefreshableCredentials(self._assume, self.METHOD)


PERMISSIONS = ("sts:AssumeRole",)
"""Only on the roles that the policy lists, or on those of one name in one organization."""
_EARLY_S = 300
_MOST_CLIENTS = 40
"""Of other accounts, kept at once: each one takes memory, and a sweep asks one after the other."""


class Accounts:
    """Creates clients and keeps them until their credentials expire.

    `own` is the account this code runs in, `members` has the roles of the others. `clock` returns
    seconds since the epoch.
    """

    def __init__(
        self,
        session: Any,
        own: str,
        members: Members,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._own = own
        self._members = members
        self._clock = clock
        self._clients: dict[tuple[str, str, str], tuple[Any, float | None]] = {}

    def of(self, service: str, config: Config = CONFIG) -> Callable[[str, str], Any]:
        """Returns a function from account and region to the service's client.

        `config`: retries and timeouts, the same at each call for one service.
        """
        return lambda account, region: self._client(service, account, region, config)

    def _client(self, service: str, account: str, region: str, config: Config) -> Any:
        key = (service, account, region)
        known, until = self._clients.get(key, (None, None))
        if known is not None and (until is None or self._clock() < until):
            return known
        made = self._make(service, account, region, config)
        self._clients[key] = made
        of_others = [one for one, (_, ends) in self._clients.items() if ends is not None]
        for one in of_others[:-_MOST_CLIENTS]:
            del self._clients[one]
        return made[0]

    def _make(
        self, service: str, account: str, region: str, config: Config
    ) -> tuple[Any, float | None]:
        role = self._members.roles.get(account)
        if account == self._own or role is None:
            return client(self._session, service, region, config), None
        answer = self._assumed(account, role_arn(role, account, region), region)
        with parsing("sts"):
            credentials = {
                "aws_access_key_id": text_in(answer, "AccessKeyId"),
                "aws_secret_access_key": text_in(answer, "SecretAccessKey"),
                "aws_session_token": text_in(answer, "SessionToken"),
            }
            until: float = answer["Expiration"].timestamp() - _EARLY_S
        made = self._session.client(service, region_name=region, config=config, **credentials)
        return made, until

    def _assumed(self, account: str, role: str, region: str) -> Any:
        """Credentials of the role. Raises RejectedEvent where they are of another account."""
        external_id = self._members.external_id
        more = {} if external_id is None else {"ExternalId": external_id}
        with aws_errors("sts", f"on {role}"):
            answer = client(self._session, "sts", region).assume_role(
                RoleArn=role, RoleSessionName=SESSION_NAME, **more
            )
        with parsing("sts"):
            own = text_in(part_of(answer, "AssumedRoleUser"), "Arn").split(":")[4:5] == [account]
        if not own:
            raise RejectedEvent(
                "role_disagrees", f"the role {role} that reads {account} is of another account"
            )
        return part_of(answer, "Credentials")
