"""Which audits of a family must be done again, since a run was audited out of order.

A run is judged by the runs of its family that ended before it. Each one's row says which of them
its audit had read, so that two rows tell whether one of them was missed. Shared by all histories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sageaudit.adapters.history.sort_keys import ended_sk
from sageaudit.domain.audit.record import FAMILY_RUNS, Entry, Head, JobKey


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """One run in its family, in order of ends.

    `compared`: the stamps of the earlier runs that it was judged with; None if none were read.
    `since`: the sort key of the oldest of them where no more fitted; older ones do not matter.
    """

    key: JobKey
    ended_sk: str
    stamp: str
    compared: tuple[str, ...] | None
    since: str

    def misses(self, earlier: FamilyRow) -> bool:
        """Whether it was not judged with a run that ended before it, as that run is now."""
        if self.compared is None or earlier.ended_sk < self.since:
            return False
        return earlier.stamp not in self.compared


def family_row(entry: Entry, head: Head) -> FamilyRow | None:
    """The row of a run; None for a run that none is compared with."""
    if head.stamp is None:
        return None
    read = entry.compared
    full = read is not None and len(read) >= FAMILY_RUNS
    return FamilyRow(
        key=head.key,
        ended_sk=ended_sk(head.ended_at, head.key),
        stamp=head.stamp,
        compared=None if read is None else tuple(run.stamp for run in read if run.stamp),
        since=ended_sk(read[-1].ended_at, read[-1].key) if read and full else "",
    )


def out_of_date(
    own: FamilyRow, before: Iterable[FamilyRow], after: Iterable[FamilyRow]
) -> Iterator[JobKey]:
    """The run itself if it missed one of those before it, and those after it that missed it."""
    if any(own.misses(earlier) for earlier in before):
        yield own.key
    yield from (later.key for later in after if later.misses(own))
