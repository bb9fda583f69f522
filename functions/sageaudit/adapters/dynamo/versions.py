"""What recording an audit does, given what stands: pure, and the same over both histories."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from sageaudit.adapters.dynamo.keys import as_utc
from sageaudit.domain.audit.record import Entry, Recorded, Verdict


@dataclass(frozen=True, slots=True)
class Standing:
    """What HEAD says of the newest version. `finding_ids` are the rules that have a row."""

    version: int
    last_modified_at: datetime
    settled: bool
    digest: str
    finding_ids: tuple[str, ...]


class Step(enum.Enum):
    """WRITE a new version; ADVANCE only the time of the job's last change; or do nothing."""

    WRITE = "write"
    ADVANCE = "advance"
    DUPLICATE = "duplicate"
    OLDER = "older"


def next_step(standing: Standing | None, entry: Entry, digest: str) -> Step:
    """Decides, so that the order and number of deliveries do not change where it ends.

    ADVANCE keeps an older state out after a newer one that said the same. For one state of the job
    only a second look that settles it, or an order to judge it `again`, makes another version:
    two deliveries that read the metrics a second apart are one audit.
    """
    if standing is None:
        return Step.WRITE
    modified_at, known_at = as_utc(entry.last_modified_at), as_utc(standing.last_modified_at)
    if modified_at < known_at:
        return Step.OLDER
    newer = modified_at > known_at
    if digest == standing.digest:
        return Step.ADVANCE if newer else Step.DUPLICATE
    settles = entry.document["audit"]["settled"] and not standing.settled
    return Step.WRITE if newer or settles or entry.again else Step.DUPLICATE


def unchanged(step: Step, standing: Standing) -> Recorded:
    """The answer for an entry that made no new version."""
    verdict = Verdict.OLDER if step is Step.OLDER else Verdict.DUPLICATE
    return Recorded(verdict, standing.version)
