"""The other accounts and regions whose jobs are audited: `[accounts]` and `regions`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct, field

from sageaudit.domain.job.ref import REGION, is_account_id
from sageaudit.domain.policy.table_reader import TableReader

MEMBER_ROLE = "sageaudit-read"
"""The role that infra/member.yaml makes in each account, unless it is told another name."""
_ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>\d{12}):role/[\w+=,.@/-]+\Z", re.ASCII)
_ROLE_NAME = re.compile(r"[\w+=,.@-]{1,64}\Z", re.ASCII)
_ORGANIZATION = re.compile(r"o-[a-z0-9]{10,32}\Z")
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}\Z", re.ASCII)


class Members(Struct, frozen=True):
    """`roles`: each other account with the role to assume there, its ARN or its name.

    `organization`: the only one whose accounts may forward events. `regions`: further ones, beside
    that of the deployment.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    organization: str | None = None
    external_id: str | None = None
    regions: tuple[str, ...] = ()


def parse(reader: TableReader, regions: list[str]) -> Members:
    """The table `[accounts]`. Raises BadPolicy."""
    role = _text(reader, "role", _ROLE_NAME, "is not the name of a role") or MEMBER_ROLE
    roles: dict[str, str] = {}
    for account in reader.strings("members"):
        if not is_account_id(account):
            raise reader.refusal("members", f"names {account!r}, which has not 12 digits")
        roles[account] = role
    members = Members(
        roles,
        _text(reader, "organization", _ORGANIZATION, "is not an organization such as o-a1b2c3d4e5"),
        _text(
            reader, "external_id", _EXTERNAL_ID, "has not 2 to 1,224 letters, digits or +=,.@:/-"
        ),
        tuple(dict.fromkeys(regions)),
    )
    for account in reader.rest():
        roles[account] = _role_arn(reader, account)
    return members


def _role_arn(reader: TableReader, account: str) -> str:
    role = reader.table[account]
    if not is_account_id(account):
        raise reader.refusal(account, "is not an account id of 12 digits")
    arn = _ROLE_ARN.match(role) if isinstance(role, str) else None
    if arn is None:
        raise reader.refusal(account, "is not the ARN of a role to assume")
    if arn["account"] != account:
        raise reader.refusal(account, f"names a role of another account, {arn['account']}")
    return str(role)


def _text(reader: TableReader, key: str, form: re.Pattern[str], why: str) -> str | None:
    value: str | None = reader.take(key, str, None)
    if value is not None and not form.match(value):
        raise reader.refusal(key, why)
    return value


def region_names(reader: TableReader) -> list[str]:
    """The top-level key `regions`. Raises BadPolicy."""
    names = reader.strings("regions")
    for name in names:
        if not REGION.fullmatch(name):
            raise reader.refusal("regions", f"names {name!r}: a region looks like eu-west-1")
    return names
