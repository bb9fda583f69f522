"""A training job of a tuning job, as the tuning rules look at it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Trial:
    """What one trial cost and reached. None means unknown.

    `objective` is the last value of the tuning job's metric; `claimed_usd` is what the trial's own
    findings took of its bill (avoidable and lost), so that tuning findings take from the rest.
    """

    name: str
    status: str
    started_at: datetime | None
    ended_at: datetime | None
    elapsed_s: Decimal | None
    total_usd: Decimal | None
    claimed_usd: Decimal | None
    objective: Decimal | None
