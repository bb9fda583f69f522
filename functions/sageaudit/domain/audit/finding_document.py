"""A finding, and the other outcomes of the rules, as a document shows them.

Each shape is filled by the function under it: a key of a shape is an attribute of the same name,
unless that function gives it.

What a run is advised is one line of each of its findings, which is stored with its summary.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypedDict, TypeVar, cast

from msgspec import Struct

from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Finding,
    Found,
    NotApplicable,
    Outcome,
    Parameter,
    RuleName,
    Scalar,
    Severity,
    Unknown,
)

Outcomes = Sequence[tuple[RuleName, Outcome]]
Shape = TypeVar("Shape")
_MICRO = Decimal("0.000001")

MOST_ADVISED = 6
"""Of a run, the dearest: what is stored of it stays small."""
_LONGEST_VALUE = 100
_LONGEST_REASON = 200


def filled(shape: type[Shape], *sources: object, **own: Any) -> Shape:
    """A document of this shape. Each key is in `own`, or an attribute of the first source that has
    one of that name: dates and times in ISO 8601, enumerated words as text, numbers to 6 decimals.
    """
    document = dict.fromkeys(shape.__annotations__)
    for key in document:
        source = next((source for source in sources if hasattr(source, key)), None)
        document[key] = own[key] if key in own else plain(getattr(source, key))
    return cast(Shape, document)


def plain(value: Any) -> Any:
    """A value as documents have it."""
    if isinstance(value, Decimal):
        return rounded(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def rounded(value: Decimal | None) -> Decimal | None:
    """At most 6 decimals; None stays None."""
    return None if value is None else value.quantize(_MICRO)


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC, ending in Z."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


class FindingDocument(TypedDict):
    """One slice of the bill, its reason and its fix. A `fix` list applies together."""

    rule: str
    id: str
    severity: str
    """A Severity."""
    confidence: str
    """A Confidence."""
    bucket: str
    """A Bucket."""
    summary: str
    saving_usd: Decimal | None
    saving_alone_usd: Decimal | None
    saving_range_usd: list[Decimal] | None
    superseded_by: str | None
    subsumed_by: str | None
    exempt: ExemptDocument | None
    evidence: dict[str, Any]
    fix: list[FixDocument]
    first_step: str | None
    """What to do first, where no parameter is to be changed."""
    alternatives: list[list[FixDocument]]
    alternatives_usd: list[Decimal | None]
    """What the first of the alternatives save, each taken alone; none where they are not billed."""
    caution: str | None
    """One or two sentences on when the advice may be wrong, or why it has no dollars."""
    sent_to_channels: bool
    """False for guard-rails that are stored and shown, but never posted."""
    estimated: bool
    """Its dollars rest on an estimated rate."""
    reported_for_run: str | None
    """The newest earlier run of the family with the same advice, where the rule gives it once a
    family: views then only name the rule."""


def stands(finding: FindingDocument) -> bool:
    """True unless the finding is exempt, or another finding includes or replaces it."""
    return not (finding["exempt"] or finding["superseded_by"] or finding["subsumed_by"])


def has_open_trial(findings: Iterable[FindingDocument]) -> bool:
    """Whether one that stands is worth a trial whose dollars are not known."""
    return any(
        stands(finding) and finding["bucket"] == Bucket.POSSIBLE and finding["saving_usd"] is None
        for finding in findings
    )


def most_usd(finding: FindingDocument) -> Decimal | None:
    """What it may save at most, as far as every view shows it; None where that is not known.

    More than `saving_usd` where nothing is counted of a range, unless another finding covers it.
    Where other fixes take a part of a possible saving, its range is no longer known.
    """
    share, span = finding["saving_usd"], finding["saving_range_usd"]
    if share is None or not span or not stands(finding):
        return share
    possible = Bucket(finding["bucket"]) is Bucket.POSSIBLE
    open_end = not share or (possible and share == span[0])
    return max(share, span[-1]) if open_end else share


def finding_document(finding: Finding) -> FindingDocument:
    """One finding as documents show it."""
    found = finding.found
    return filled(
        FindingDocument,
        finding,
        found,
        finding.rule,
        rule=finding.rule.name,
        saving_alone_usd=rounded(finding.alone_usd),
        saving_range_usd=plain(finding.range_usd and tuple(map(rounded, finding.range_usd))),
        exempt=None if finding.exempt is None else filled(ExemptDocument, finding.exempt),
        evidence={key: _exact(value) for key, value in found.evidence.items()},
        fix=[_fix(item) for item in found.fix],
        first_step=found.first_step or _of_page(finding),
        alternatives=[[_fix(item) for item in way] for way in found.alternatives],
        alternatives_usd=list(map(rounded, finding.alternatives_usd)),
    )


def _of_page(finding: Finding) -> str | None:
    """How the rule's page begins what to do, where there is no parameter to change."""
    found = finding.found
    return None if found.fix or found.alternatives else finding.rule.first_step


def read_finding(written: FindingDocument) -> Finding:
    """Parses a finding of a document; its `change` is not in the document and is None."""
    span = written["saving_range_usd"]
    return Finding(
        rule=RuleName(
            written["id"],
            written["rule"],
            sent_to_channels=written["sent_to_channels"],
            first_step=written.get("first_step"),
        ),
        found=Found(
            confidence=Confidence(written["confidence"]),
            bucket=Bucket(written["bucket"]),
            summary=written["summary"],
            evidence=written["evidence"],
            fix=tuple(map(_parameter, written["fix"])),
            alternatives=tuple(tuple(map(_parameter, way)) for way in written["alternatives"]),
            caution=written["caution"],
        ),
        severity=Severity(written["severity"]),
        saving_usd=written["saving_usd"],
        alone_usd=written["saving_alone_usd"],
        range_usd=(span[0], span[1]) if span else None,
        estimated=written["estimated"],
        reported_for_run=written["reported_for_run"],
        alternatives_usd=tuple(written.get("alternatives_usd", ())),
    )


class FixDocument(TypedDict):
    """`parameter` is the path in the Create*Job request; `old` None when it was not set."""

    parameter: str
    old: Any
    new: Any


def _fix(item: Parameter) -> FixDocument:
    return {"parameter": item.path, "old": _exact(item.old), "new": _exact(item.new)}


def _parameter(written: FixDocument) -> Parameter:
    return Parameter(written["parameter"], written["old"], written["new"])


class ExemptDocument(TypedDict):
    """Who exempted a finding, until when (ISO date or None) and why."""

    by: str
    until: str | None
    reason: str


def _exact(value: Any) -> Any:
    """A float becomes the Decimal of its printed form: a document contains no floats."""
    return Decimal(str(value)) if isinstance(value, float) else value


class UnknownDocument(TypedDict):
    """A rule that could not be judged: a stable code and a sentence."""

    rule: str
    code: str
    reason: str


class NotApplicableDocument(TypedDict):
    """A rule that does not apply to this job, and why."""

    rule: str
    reason: str


def other_outcomes(outcomes: Outcomes) -> dict[str, list[Any]]:
    """The rules without a finding, in the order of the outcomes; `clear`: those that judged and
    found nothing.
    """
    return {
        "unknown": [
            filled(UnknownDocument, outcome, rule=name.name)
            for name, outcome in outcomes
            if isinstance(outcome, Unknown)
        ],
        "not_applicable": [
            filled(NotApplicableDocument, outcome, rule=name.name)
            for name, outcome in outcomes
            if isinstance(outcome, NotApplicable)
        ],
        "clear": [name.name for name, outcome in outcomes if isinstance(outcome, Clear)],
    }


class Worth(enum.StrEnum):
    """What the dollars of an advice are; those of the two kinds are never added."""

    COUNTED = "counted"
    """Avoidable or lost USD."""
    TRIAL = "trial"
    """USD that are worth a trial."""


class Advised(Struct, frozen=True):
    """What a standing finding of a run advises; one that the policy or a tag accepts has `exempt`,
    who and why.

    `parameter` and `new` as in its fix, empty without one. `also`: the paths that change with it.
    `amount` in USD; None is unknown.
    """

    rule: str
    parameter: str
    new: str
    severity: Severity
    worth: Worth = Worth.COUNTED
    amount: Decimal | None = None
    also: tuple[str, ...] = ()
    exempt: str | None = None

    @property
    def line(self) -> tuple[str, str, Worth]:
        """The same for any value of its parameter."""
        return self.rule, self.parameter or self.new, self.worth


def advised_by(finding: FindingDocument) -> Advised | None:
    """What one finding advises; None where it has no dollars, is another's part, or never posted.

    What may be lost is at stake, too: the upper end of its range.
    """
    bucket, amount, exempt = Bucket(finding["bucket"]), finding["saving_usd"], finding["exempt"]
    fix, accepted = finding["fix"], None
    if exempt:
        amount = finding["saving_alone_usd"]
        until = f" until {exempt['until']}" if exempt["until"] else ""
        accepted = f"{exempt['by']}{until}: {exempt['reason']}"[:_LONGEST_REASON]
    if bucket is Bucket.LOST:
        ends = finding["saving_range_usd"] or []
        amount = max([*ends, *([] if amount is None else [amount])], default=None)
    whole = stands({**finding, "exempt": None}) and finding["sent_to_channels"]
    none = bucket.counted and (finding["severity"] == Severity.INFO or finding["reported_for_run"])
    if bucket is Bucket.NONE or none or amount == 0 or not whole:
        return None
    return Advised(
        rule=finding["rule"],
        parameter=fix[0]["parameter"] if fix else "",
        new=value_text(fix[0]["new"]) if fix else "",
        severity=Severity(finding["severity"]),
        worth=Worth.COUNTED if bucket.counted else Worth.TRIAL,
        amount=amount,
        also=tuple(one["parameter"] for one in fix[1:]),
        exempt=accepted,
    )


def dearest(advised: Iterable[Advised]) -> tuple[Advised, ...]:
    """The most of each line, what is worth most first: what a run stores of it stays small."""
    worths = list(Worth)
    found = sorted(
        advised, key=lambda one: (worths.index(one.worth), -(one.amount or Decimal(0)), one.new)
    )
    return tuple({one.line: one for one in reversed(found)}.values())[::-1][:MOST_ADVISED]


def value_text(value: Scalar) -> str:
    """The text of a parameter's value, by which values are compared; empty for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    number = isinstance(value, int | float | Decimal)
    text = f"{Decimal(str(value)).normalize():f}" if number else str(value)
    return text[:_LONGEST_VALUE]
