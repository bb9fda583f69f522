"""Which jobs a section of the policy is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sageaudit.domain.job.ref import is_account_id
from sageaudit.domain.policy.table_reader import TableReader


@dataclass(frozen=True, slots=True)
class Conditions:
    """A job matches where it matches all that are given."""

    family: str | None = None
    tag: tuple[str, str] | None = None
    account: str | None = None

    def matches_job(self, account: str | None, family: str, tags: Mapping[str, str]) -> bool:
        """Whether this job matches."""
        return (
            self.family in {None, family}
            and self.account in {None, account}
            and (self.tag is None or tags.get(self.tag[0]) == self.tag[1])
        )


def conditions(reader: TableReader) -> Conditions:
    """Those of one section. Raises BadPolicy."""
    family, tag = reader.take("family", str, None), reader.take("tag", str, None)
    account = reader.take("account", str, None)
    name, equals, value = (tag or "").partition("=")
    if tag is not None and not (name and equals):
        raise reader.refusal("tag", 'is not written "key=value"')
    if account is not None and not is_account_id(account):
        raise reader.refusal("account", "is not an account id of 12 digits")
    return Conditions(family, (name, value) if tag is not None else None, account)
