"""Decides what recording an audit does, from the newest version; shared by all histories."""

from __future__ import annotations

import enum

from sageaudit.adapters.history.moments import as_utc
from sageaudit.domain.audit.record import Entry, Head, Recorded, Verdict


class RecordStep(enum.Enum):
    """WRITE a new version; ADVANCE only the time of the job's last change; CONFIRM the newest
    version, which was judged again with the same result; or do nothing.
    """

    WRITE = "write"
    CONFIRM = "confirm"
    ADVANCE = "advance"
    DUPLICATE = "duplicate"
    OLDER = "older"


def next_step(newest: Head | None, entry: Entry, digest: str) -> RecordStep:
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


def unchanged(step: RecordStep, newest: Head) -> Recorded:
    """The result for an entry that made no new version."""
    verdict = Verdict.OLDER if step is RecordStep.OLDER else Verdict.DUPLICATE
    return Recorded(verdict, newest.version, newest)
