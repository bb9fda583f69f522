"""Clients for each account and region of the allow-list: own, or through an assumed role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.config import Config

from sageaudit.adapters.aws.clients import (
    CONFIG,
    aws_errors,
    client,
    parsing,
    part_of,
    text_in,
)
from sageaudit.errors import RejectedEvent

PERMISSIONS = ("sts:AssumeRole",)
"""Only on the roles that the policy lists."""
_EARLY_S = 300


class Accounts:
    """Creates clients and keeps them until their credentials expire.

    `own` is the account this code runs in; `roles` maps every other account to the ARN of the role
    to assume there. `clock` returns seconds since the epoch.
    """

    def __init__(
        self,
        session: Any,
        own: str,
        roles: Mapping[str, str | None],
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._own = own
        self._roles = roles
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
        return made[0]

    def _make(
        self, service: str, account: str, region: str, config: Config
    ) -> tuple[Any, float | None]:
        role = self._roles.get(account)
        if account == self._own or role is None:
            return client(self._session, service, region, config), None
        answer = self._assumed(account, role, region)
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
        with aws_errors("sts", f"on {role}"):
            answer = client(self._session, "sts", region).assume_role(
                RoleArn=role, RoleSessionName="sageaudit"
            )
        with parsing("sts"):
            own = text_in(part_of(answer, "AssumedRoleUser"), "Arn").split(":")[4:5] == [account]
        if not own:
            raise RejectedEvent(
                "role_disagrees", f"the role {role} that reads {account} is of another account"
            )
        return part_of(answer, "Credentials")
