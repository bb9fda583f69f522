"""The settings that each Lambda function reads from its environment.

A field's variable has the field's name in capitals. `region` comes from AWS_REGION.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Self

from msgspec import Struct

from sageaudit.domain.job.ref import AccountRegion
from sageaudit.errors import BadSettings

_ACCOUNT = re.compile(r"\d{12}\Z")


class FunctionSettings(Struct, frozen=True, kw_only=True):
    """Settings of every function."""

    table_name: str

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Reads and checks the environment. Raises BadSettings."""
        values = {
            name: _READERS.get(name, _required)(environ, name.upper())
            for name in cls.__struct_fields__
        }
        return cls(**values)


class HomeSettings(FunctionSettings, frozen=True, kw_only=True):
    """Settings of functions that know their own account and region, such as `digest`."""

    account_id: str
    region: str

    @property
    def home(self) -> AccountRegion:
        """The account and region of the deployment."""
        return AccountRegion(self.account_id, self.region)


class SweepSettings(HomeSettings, frozen=True, kw_only=True):
    """Settings of `sweep`."""

    finished_queue_url: str


class AuditSettings(SweepSettings, frozen=True, kw_only=True):
    """Settings of `audit`. Without a fingerprint secret, jobs are stored without fingerprints."""

    finished_dlq_url: str
    fingerprint_secret_id: str | None


class NotifySettings(FunctionSettings, frozen=True, kw_only=True):
    """Settings of `notify`. `notices_queue_urls` has the URL of each channel's queue."""

    region: str
    notices_queue_urls: Mapping[str, str]
    decisions_queue_url: str
    undecided_queue_url: str


class DeliverSettings(FunctionSettings, frozen=True, kw_only=True):
    """Settings of `deliver`. `topic_arn` is the ARN of the stack's own topic."""

    region: str
    notices_queue_urls: Mapping[str, str]
    notices_dlq_url: str
    topic_arn: str


class DigestSettings(HomeSettings, frozen=True, kw_only=True):
    """Settings of `digest`. `report_key_arn` is the KMS key of the reports, if any."""

    report_key_arn: str | None


def notices_queue_variable(channel: str) -> str:
    """Returns the name of the variable with the URL of a channel's queue."""
    return f"NOTICES_QUEUE_URL_{channel.upper().replace('-', '_')}"


def _required(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise BadSettings(f"the environment variable {name} is missing or empty")
    return value


def _account_id(environ: Mapping[str, str], name: str) -> str:
    account_id = _required(environ, name)
    if not _ACCOUNT.match(account_id):
        raise BadSettings(f"{name} is not an account id of 12 digits: {account_id!r}")
    return account_id


def _notices_queue_urls(environ: Mapping[str, str], _name: str) -> dict[str, str]:
    # The comma-separated variable CHANNELS names the channels.
    names = dict.fromkeys(name.strip() for name in _required(environ, "CHANNELS").split(","))
    return {name: _required(environ, notices_queue_variable(name)) for name in names}


_READERS: dict[str, Callable[[Mapping[str, str], str], Any]] = {
    "account_id": _account_id,
    "region": lambda environ, _: _required(environ, "AWS_REGION"),
    "fingerprint_secret_id": lambda environ, name: environ.get(name) or None,
    "report_key_arn": lambda environ, name: environ.get(name) or None,
    "notices_queue_urls": _notices_queue_urls,
}
