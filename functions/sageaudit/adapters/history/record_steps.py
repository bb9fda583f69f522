"""What recording an audit changes: its version, its family's order and the daily sums.

Every history decides by these pure functions, from the newest version that it holds.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from msgspec import Struct

from sageaudit.adapters.history.codec import as_utc, ended_sk
from sageaudit.domain.audit.record import FAMILY_RUNS, Entry, Recorded, Verdict
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope, SumRow, Sums
from sageaudit.structs import replace


class RecordStep(enum.Enum):
    """WRITE a new version; ADVANCE only the time of the job's last change; CONFIRM the newest
    version, which was judged again with the same result; or do nothing.
    """

    WRITE = "write"
    CONFIRM = "confirm"
    ADVANCE = "advance"
    DUPLICATE = "duplicate"
    OLDER = "older"


def next_step(newest: AuditSummary | None, entry: Entry, digest: str) -> RecordStep:
    """Decides so that the result does not depend on the order or number of deliveries.

    ADVANCE stores the newer time of an unchanged document, so that an older state is rejected
    later. For the same state of a job, only its first final audit or an entry with `again` makes a
    new version: two deliveries that read the metrics a second apart count as one audit. CONFIRM
    stores by which runs of its family the same document was judged this time.
    """
    if newest is None:
        return RecordStep.WRITE
    modified_at, known_at = as_utc(entry.last_modified_at), as_utc(newest.last_modified_at)
    if modified_at < known_at:
        return RecordStep.OLDER
    newer = modified_at > known_at
    if digest == newest.digest:
        if entry.again:
            return RecordStep.CONFIRM
        return RecordStep.ADVANCE if newer else RecordStep.DUPLICATE
    becomes_final = entry.document["audit"]["settled"] and not newest.settled
    return RecordStep.WRITE if newer or becomes_final or entry.again else RecordStep.DUPLICATE


def unchanged(step: RecordStep, newest: AuditSummary) -> Recorded:
    """The result for an entry that made no new version."""
    verdict = Verdict.OLDER if step is RecordStep.OLDER else Verdict.DUPLICATE
    return Recorded(verdict, newest.version, newest)


STAMP_LENGTH = 8
"""Letters of what `run_stamp` makes."""


class FamilyRow(Struct, frozen=True):
    """One run in its family, in order of ends.

    A run is judged by the runs of its family that ended before it. `compared`: the stamps of the
    earlier runs that its audit had read; None if none were read. `since`: the sort key of the
    oldest of them where no more fitted; older ones do not matter. So two rows tell whether one of
    them was missed.
    """

    key: JobKey
    ended_sk: str
    stamp: str
    compared: tuple[str, ...] | None
    since: str

    @property
    def compared_text(self) -> str | None:
        """The stamps without anything between: each has STAMP_LENGTH letters."""
        return None if self.compared is None else "".join(self.compared)

    def misses(self, earlier: FamilyRow) -> bool:
        """Whether it was not judged with a run that ended before it, as that run is now."""
        if self.compared is None or earlier.ended_sk < self.since:
            return False
        return earlier.stamp not in self.compared


def read_compared(text: str | None) -> tuple[str, ...] | None:
    """The stamps of a text of all of them."""
    if text is None:
        return None
    return tuple(text[at : at + STAMP_LENGTH] for at in range(0, len(text), STAMP_LENGTH))


def family_row(entry: Entry, head: AuditSummary) -> FamilyRow | None:
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


def sum_row(head: AuditSummary, scope: Scope) -> SumRow:
    """What an audit adds to one scope of the daily sums."""
    names = {
        Scope.ACCOUNT: None,
        Scope.FAMILY: head.family,
        Scope.OWNER: head.owner,
        Scope.TYPE: head.instance_type,
    }
    day = as_utc(head.ended_at).date()
    return SumRow(scope, head.account, head.region, names[scope], day, head.sums)


def changes(newest: AuditSummary | None, head: AuditSummary) -> Iterator[SumRow]:
    """What recording a version adds to the sums, as differences to the newest one before it.

    No difference is zero: a roll-up without findings of its own adds nothing anywhere.
    """
    for scope in Scope:
        new = sum_row(head, scope)
        rows = [new]
        if newest is not None:
            old = sum_row(newest, scope)
            moved = replace(old, sums=Sums()) != replace(new, sums=Sums())
            taken_out = replace(old, sums=-old.sums)
            rows = [taken_out, new] if moved else [replace(new, sums=new.sums - old.sums)]
        yield from (row for row in rows if row.sums != Sums())
