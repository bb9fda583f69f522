"""The outcomes of a rule, and a finding: an outcome with its rule, severity and dollars."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import TypedDict

from msgspec import Struct, field

from sageaudit.domain.bill.change import Change


class Severity(enum.StrEnum):
    """How much a finding costs, the most severe first."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """A number by which severities sort; 0 is the least severe."""
        return len(Severity) - 1 - list(Severity).index(self)


class Confidence(enum.StrEnum):
    """How sure a figure is.

    Measured: billed time or capacity that produced nothing. Derived: a range under a stated
    assumption, of which the low end is counted. Heuristic: a suggestion with a reason.
    """

    MEASURED = "measured"
    DERIVED = "derived"
    HEURISTIC = "heuristic"


class Bucket(enum.StrEnum):
    """The sum that a finding's dollars belong to; `possible` is never added to the others."""

    AVOIDABLE = "avoidable"
    LOST = "lost"
    POSSIBLE = "possible"
    NONE = "none"

    @property
    def is_counted(self) -> bool:
        """Whether the bucket's dollars are in the totals."""
        return self in {Bucket.AVOIDABLE, Bucket.LOST}


Scalar = str | int | float | Decimal | bool | None
"""The value of a parameter, or a value in a finding's evidence."""


class Parameter(Struct, frozen=True):
    """A parameter to change: its path in the Create*Job request, old and new value."""

    path: str
    old: Scalar
    new: Scalar


class Clear(Struct, frozen=True):
    """The rule judged the job and found nothing."""


class Unknown(Struct, frozen=True):
    """The rule could not judge the job. `code`: a stable word. `reason`: a sentence."""

    code: str
    reason: str


class NotApplicable(Struct, frozen=True):
    """The rule does not apply to this job, and the reason."""

    reason: str


class Detection(Struct, frozen=True):
    """A part of the bill that a rule says can be saved, and its fix.

    `change`: the fix that is billed; without it there are no dollars, and `caution` says why.
    `best`: the change at the other end of a range. `other_changes`: those of the `alternatives`
    that can be billed, in their order. `reported_for_run`: the family's earlier run with the same
    finding. `first_step`: what to do before the fix.
    """

    confidence: Confidence
    bucket: Bucket
    summary: str
    evidence: Mapping[str, Scalar]
    fix: tuple[Parameter, ...] = ()
    alternatives: tuple[tuple[Parameter, ...], ...] = ()
    change: Change | None = None
    best: Change | None = None
    other_changes: tuple[Change, ...] = ()
    caution: str | None = None
    reported_for_run: str | None = None
    first_step: str | None = None

    @property
    def certainty_order(self) -> tuple[bool, bool]:
        """Sort key: counted fixes first, then fixes that the family's runs show, then guesses."""
        return not self.bucket.is_counted, self.confidence is Confidence.HEURISTIC


class DetectionDetails(TypedDict, total=False):
    """The fields of `Detection` that have a default, as keyword arguments of a builder."""

    fix: tuple[Parameter, ...]
    alternatives: tuple[tuple[Parameter, ...], ...]
    change: Change | None
    best: Change | None
    other_changes: tuple[Change, ...]
    caution: str | None
    reported_for_run: str | None
    first_step: str | None


Outcome = Detection | Clear | Unknown | NotApplicable


class Exemption(Struct, frozen=True):
    """Marks a finding as accepted: it stays visible but is in no total.

    `by`: who accepted it. `until`: the last day; None without an end.
    """

    by: str
    until: date | None
    reason: str


class RuleInfo(Struct, frozen=True):
    """A rule's id and name, and what the rule specifies for its findings.

    `subsumes`: the rules whose dollars its findings include. `compared`: whether later runs are
    judged again if such a finding appears or disappears. `first_step`: what to do without a
    parameter to change. `severity`: that of findings without dollars, unless the policy sets
    another.
    """

    id: str
    name: str
    sent_to_channels: bool = True
    subsumes: frozenset[str] = field(default_factory=frozenset)
    compared: bool = False
    can_tag_accept: bool = True
    first_step: str | None = None
    severity: Severity | None = None


class Finding(Struct, frozen=True):
    """A Detection with its rule, severity and dollars (exact USD; None if the bill is unknown).

    `alone_usd`: the saving of this fix alone. `saving_usd`: the fix's share if all fixes are
    applied. `range_usd`: the lowest and the highest saving; None without a range.
    `superseded_by`: the rule whose fix replaces this fix. `subsumed_by`: the rule whose dollars
    already include these dollars. `estimated`: the dollars depend on an estimated rate.
    `reported_for_run`: the family's earlier run that had this finding; it is not reported again.
    `alternatives_usd`: the saving of each alternative alone.
    """

    rule: RuleInfo
    detection: Detection
    severity: Severity
    saving_usd: Decimal | None
    alone_usd: Decimal | None
    range_usd: tuple[Decimal, Decimal] | None
    superseded_by: str | None = None
    subsumed_by: str | None = None
    exempt: Exemption | None = None
    estimated: bool = False
    reported_for_run: str | None = None
    alternatives_usd: tuple[Decimal | None, ...] = ()

    @property
    def is_standing(self) -> bool:
        """Whether the finding is not exempt, and no other finding includes or replaces it."""
        return not (self.exempt or self.superseded_by or self.subsumed_by)
