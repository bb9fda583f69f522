"""Which daily sums an audit is in, and by how much a new version changes them.

Shared by all histories. docs/data-model.md describes how the table keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sageaudit.adapters.history.moments import as_utc
from sageaudit.adapters.history.rows import row_text
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Scope, SumRow, Sums


@dataclass(frozen=True, slots=True)
class SumFilter:
    """Which rows a list of sums shows; None leaves out none."""

    account: str | None
    region: str | None
    name: str | None

    @property
    def stored_name(self) -> str | None:
        """The name as rows have it."""
        return None if self.name is None else row_text(self.name)

    def fits(self, row: SumRow) -> bool:
        """Whether the list shows this row."""
        asked = (
            (self.account, row.account),
            (self.region, row.region),
            (self.stored_name, row.name),
        )
        return all(wanted is None or wanted == value for wanted, value in asked)


def sum_row(head: Head, scope: Scope) -> SumRow | None:
    """What an audit adds to one scope; None for heads that were stored before there were sums."""
    if head.sums is None:
        return None
    names = {
        Scope.ACCOUNT: None,
        Scope.FAMILY: head.family,
        Scope.OWNER: head.owner,
        Scope.TYPE: head.facts.instance_type if head.facts else None,
    }
    day = as_utc(head.ended_at).date()
    return SumRow(scope, head.account, head.region, names[scope], day, head.sums)


def changes(newest: Head | None, head: Head) -> Iterator[SumRow]:
    """What recording a version adds to the sums, as differences to the newest one before it.

    No difference is zero: a roll-up without findings of its own adds nothing anywhere.
    """
    for scope in Scope:
        new = sum_row(head, scope)
        old = None if newest is None else sum_row(newest, scope)
        if old is not None and new is not None and _place(old) == _place(new):
            rows = [replace(new, sums=new.sums - old.sums)]
        else:
            taken_out = None if old is None else replace(old, sums=-old.sums)
            rows = [row for row in (taken_out, new) if row is not None]
        yield from (row for row in rows if row.sums != Sums())


def _place(row: SumRow) -> tuple[object, ...]:
    return row.account, row.region, row.name, row.day
