"""What a rule answers, and what a found slice of the bill becomes once it has its dollars."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from sageaudit.domain.bill.change import Change


class Severity(enum.StrEnum):
    """How much a finding matters, the worst first; follows the dollars."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the least; as words they sort by letters."""
        return len(Severity) - 1 - list(Severity).index(self)


class Confidence(enum.StrEnum):
    """How a figure is known.

    Measured: was billed and produced nothing. Derived: between two figures under a stated
    assumption, the low end is counted. Heuristic: an advice with a reason.
    """

    MEASURED = "measured"
    DERIVED = "derived"
    HEURISTIC = "heuristic"


class Bucket(enum.StrEnum):
    """Which sum a finding's dollars belong to; `possible` is never added to the others."""

    AVOIDABLE = "avoidable"
    LOST = "lost"
    POSSIBLE = "possible"
    NONE = "none"

    @property
    def counted(self) -> bool:
        """Its dollars are part of the bill: they are in a sum."""
        return self in {Bucket.AVOIDABLE, Bucket.LOST}


Scalar = str | int | float | Decimal | bool | None
Evidence = Scalar | list[dict[str, object]]
"""A number of the sentence, or small series for a plot (`plot`)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter to change: its path in the Create*Job request, old and new value."""

    path: str
    old: Scalar
    new: Scalar


@dataclass(frozen=True, slots=True)
class Clear:
    """Judged, and nothing to say."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Could not be judged: a stable code and a sentence."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Does not apply to this job, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """One slice of the bill and its fix.

    `change` is the fix as counted: the job with it is billed again. `best` is the other end of a
    derived or heuristic range. Without `change` there are no dollars, and `caution` says why.
    """

    confidence: Confidence
    bucket: Bucket
    summary: str
    evidence: Mapping[str, Evidence]
    fix: tuple[Parameter, ...] = ()
    alternatives: tuple[tuple[Parameter, ...], ...] = ()
    change: Change | None = None
    best: Change | None = None
    caution: str | None = None


Outcome = Found | Clear | Unknown | NotApplicable


@dataclass(frozen=True, slots=True)
class Exemption:
    """Marks a finding as accepted: it stays visible and leaves the sums."""

    by: str
    until: date | None
    reason: str


@dataclass(frozen=True, slots=True)
class RuleName:
    """How documents name a rule."""

    id: str
    name: str
    in_chat: bool = True
    subsumes: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Finding:
    """A Found with its rule, severity and dollars (USD, exact; None where the bill is unknown).

    `alone_usd` is this fix by itself; `saving_usd` its share when all fixes are applied in order.
    """

    rule: RuleName
    found: Found
    severity: Severity
    saving_usd: Decimal | None
    alone_usd: Decimal | None
    range_usd: tuple[Decimal, Decimal] | None
    superseded_by: str | None = None
    subsumed_by: str | None = None
    exempt: Exemption | None = None

    @property
    def stands(self) -> bool:
        """Nobody exempted it, and no other finding includes or replaces it."""
        return not (self.exempt or self.superseded_by or self.subsumed_by)
