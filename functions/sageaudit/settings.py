"""The settings that each Lambda function reads from its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sageaudit.errors import BadSettings

_ACCOUNT = re.compile(r"\d{12}\Z")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Settings of `audit`. Without a fingerprint secret, jobs are stored without a fingerprint."""

    table_name: str
    finished_queue_url: str
    finished_dlq_url: str
    account_id: str
    region: str
    fingerprint_secret_id: str | None

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Reads and checks the environment."""
        return cls(
            table_name=_required(environ, "TABLE_NAME"),
            finished_queue_url=_required(environ, "FINISHED_QUEUE_URL"),
            finished_dlq_url=_required(environ, "FINISHED_DLQ_URL"),
            account_id=_account_id(environ),
            region=_required(environ, "AWS_REGION"),
            fingerprint_secret_id=environ.get("FINGERPRINT_SECRET_ID") or None,
        )


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """Settings of `notify`. `notices_queue_urls`: of each channel that notices are queued for."""

    table_name: str
    notices_queue_urls: Mapping[str, str]
    decisions_queue_url: str
    undecided_queue_url: str

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Reads and checks the environment."""
        return cls(
            table_name=_required(environ, "TABLE_NAME"),
            notices_queue_urls=_notices_queue_urls(environ),
            decisions_queue_url=_required(environ, "DECISIONS_QUEUE_URL"),
            undecided_queue_url=_required(environ, "UNDECIDED_QUEUE_URL"),
        )


@dataclass(frozen=True, slots=True)
class DeliverSettings:
    """Settings of `deliver`; each channel declares the variable that holds its address."""

    table_name: str
    notices_queue_urls: Mapping[str, str]
    notices_dlq_url: str

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Reads and checks the environment."""
        return cls(
            table_name=_required(environ, "TABLE_NAME"),
            notices_queue_urls=_notices_queue_urls(environ),
            notices_dlq_url=_required(environ, "NOTICES_DLQ_URL"),
        )


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """Settings of `sweep`."""

    table_name: str
    finished_queue_url: str
    account_id: str
    region: str

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Reads and checks the environment."""
        return cls(
            table_name=_required(environ, "TABLE_NAME"),
            finished_queue_url=_required(environ, "FINISHED_QUEUE_URL"),
            account_id=_account_id(environ),
            region=_required(environ, "AWS_REGION"),
        )


def notices_queue_variable(channel: str) -> str:
    """The variable with the URL of a channel's queue."""
    return f"NOTICES_QUEUE_URL_{channel.upper()}"


def _account_id(environ: Mapping[str, str]) -> str:
    account_id = _required(environ, "ACCOUNT_ID")
    if not _ACCOUNT.match(account_id):
        raise BadSettings(f"ACCOUNT_ID is not an account id of 12 digits: {account_id!r}")
    return account_id


def _required(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise BadSettings(f"the environment variable {name} is missing or empty")
    return value


def _notices_queue_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """The URL of the queue of each of CHANNELS, a comma-separated list, in its order."""
    names = dict.fromkeys(name.strip() for name in _required(environ, "CHANNELS").split(","))
    return {name: _required(environ, notices_queue_variable(name)) for name in names}
