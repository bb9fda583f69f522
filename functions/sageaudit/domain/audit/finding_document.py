"""A finding, and the other outcomes of the rules, as a document shows them.

The function below each document class fills it. Other keys get the attribute of the same name.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, TypedDict, TypeVar, cast

from msgspec import Struct

from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Detection,
    Finding,
    NotApplicable,
    Outcome,
    Parameter,
    RuleInfo,
    Scalar,
    Severity,
    Unknown,
)
from sageaudit.domain.moments import Day

Outcomes = Sequence[tuple[RuleInfo, Outcome]]
Shape = TypeVar("Shape")
_MICRO = Decimal("0.000001")

MAX_RECOMMENDATIONS = 6
"""The most recommendations that a run stores; the largest ones are kept."""
_LONGEST_VALUE = 100
"""The most characters of a parameter's value that are stored and compared."""
_LONGEST_REASON = 200
"""The most characters of a reason for an exemption that are stored."""


def fill_document(shape: type[Shape], *sources: object, **overrides: Any) -> Shape:
    """Returns a document of this class.

    Each key gets its value from `overrides`, or from the first source with an attribute of this
    name.
    """
    document = {}
    for key in shape.__annotations__:
        if key in overrides:
            document[key] = overrides[key]
            continue
        for source in sources:
            if hasattr(source, key):
                break
        document[key] = to_plain_value(getattr(source, key))
    return cast(Shape, document)


def to_plain_value(value: Any) -> Any:
    """Converts a value to its form in documents."""
    if value is None or type(value) is str:  # most values
        return value
    if isinstance(value, Decimal):
        return round_usd(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def round_usd(value: Decimal | None) -> Decimal | None:
    """Rounds USD to 6 decimals; None stays None."""
    return None if value is None else value.quantize(_MICRO)


def iso(moment: datetime | None) -> str | None:
    """Formats a time in ISO 8601 in UTC, ending in Z; None stays None."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


class FindingDocument(TypedDict):
    """One finding, its reason and its fix. All parameters of `fix` apply together."""

    rule: str
    id: str
    severity: Annotated[str, Severity]
    confidence: Annotated[str, Confidence]
    bucket: Annotated[str, Bucket]
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
    """What to do first if there is no parameter to change, or before the fix."""
    alternatives: list[list[FixDocument]]
    alternatives_usd: list[Decimal | None]
    """What each of the first alternatives saves alone, in USD; empty if none was priced."""
    caution: str | None
    """One or two sentences on when the fix may be wrong, or why the finding has no dollars."""
    sent_to_channels: bool
    """False for guard-rails that are stored and shown, but never posted."""
    estimated: bool
    """Whether the finding's dollars depend on an estimated rate."""
    reported_for_run: str | None
    """The family's newest earlier run with the same finding, if the rule reports it once per
    family. Views then only name the rule."""


def is_standing(finding: FindingDocument) -> bool:
    """Returns whether the finding is not exempt, and no other finding includes or replaces it."""
    return not (finding["exempt"] or finding["superseded_by"] or finding["subsumed_by"])


def has_open_trial(findings: Iterable[FindingDocument]) -> bool:
    """Returns whether a standing finding has possible dollars of unknown amount.

    Only a trial run can show this amount.
    """
    return any(
        is_standing(finding)
        and finding["bucket"] == Bucket.POSSIBLE
        and finding["saving_usd"] is None
        for finding in findings
    )


def max_saving_usd(finding: FindingDocument) -> Decimal | None:
    """Returns the most that the finding may save, in USD; None if unknown.

    The upper end of a range counts if the counted saving is 0. It also counts for a possible saving
    that no other fix reduces. Otherwise the result is `saving_usd`.
    """
    saving_usd, span = finding["saving_usd"], finding["saving_range_usd"]
    if saving_usd is None or not span or not is_standing(finding):
        return saving_usd
    is_possible = Bucket(finding["bucket"]) is Bucket.POSSIBLE
    is_range_open = not saving_usd or (is_possible and saving_usd == span[0])
    return max(saving_usd, span[-1]) if is_range_open else saving_usd


def finding_document(finding: Finding) -> FindingDocument:
    """Returns the document of a finding."""
    detection = finding.detection
    return fill_document(
        FindingDocument,
        finding,
        detection,
        finding.rule,
        rule=finding.rule.name,
        saving_alone_usd=round_usd(finding.alone_usd),
        saving_range_usd=to_plain_value(
            finding.range_usd and tuple(map(round_usd, finding.range_usd))
        ),
        exempt=None if finding.exempt is None else fill_document(ExemptDocument, finding.exempt),
        evidence={key: _to_exact_value(value) for key, value in detection.evidence.items()},
        fix=[_fix(item) for item in detection.fix],
        first_step=detection.first_step or _page_first_step(finding),
        alternatives=[[_fix(item) for item in fix] for fix in detection.alternatives],
        alternatives_usd=list(map(round_usd, finding.alternatives_usd)),
    )


def _page_first_step(finding: Finding) -> str | None:
    detection = finding.detection
    return None if detection.fix or detection.alternatives else finding.rule.first_step


def parse_finding(document: FindingDocument) -> Finding:
    """Parses a finding of a document. Its `change` is None, because documents do not have it."""
    span = document["saving_range_usd"]
    return Finding(
        rule=RuleInfo(
            document["id"],
            document["rule"],
            sent_to_channels=document["sent_to_channels"],
            first_step=document.get("first_step"),
        ),
        detection=Detection(
            confidence=Confidence(document["confidence"]),
            bucket=Bucket(document["bucket"]),
            summary=document["summary"],
            evidence=document["evidence"],
            fix=tuple(map(_parameter, document["fix"])),
            alternatives=tuple(tuple(map(_parameter, fix)) for fix in document["alternatives"]),
            caution=document["caution"],
        ),
        severity=Severity(document["severity"]),
        saving_usd=document["saving_usd"],
        alone_usd=document["saving_alone_usd"],
        range_usd=(span[0], span[1]) if span else None,
        estimated=document["estimated"],
        reported_for_run=document["reported_for_run"],
        alternatives_usd=tuple(document.get("alternatives_usd", ())),
    )


class FixDocument(TypedDict):
    """One parameter of a fix. `parameter`: its path in the Create*Job request.

    `old`: None if the parameter was not set.
    """

    parameter: str
    old: Any
    new: Any


def _fix(item: Parameter) -> FixDocument:
    return {
        "parameter": item.path,
        "old": _to_exact_value(item.old),
        "new": _to_exact_value(item.new),
    }


def _parameter(document: FixDocument) -> Parameter:
    return Parameter(document["parameter"], document["old"], document["new"])


class ExemptDocument(TypedDict):
    """Who accepted a finding, until when (ISO date; None without an end) and why."""

    by: str
    until: Annotated[str, Day] | None
    reason: str


def _to_exact_value(value: Any) -> Any:
    """Converts a float to the Decimal of its printed form, as documents contain no floats."""
    return Decimal(str(value)) if isinstance(value, float) else value


class UnknownDocument(TypedDict):
    """A rule that could not judge the job. `code`: a stable word. `reason`: a sentence."""

    rule: str
    code: str
    reason: str


class NotApplicableDocument(TypedDict):
    """A rule that does not apply to this job, and the reason."""

    rule: str
    reason: str


def other_outcomes(outcomes: Outcomes) -> dict[str, list[Any]]:
    """Returns the rules without a finding, by key of the document."""
    return {
        "unknown": [
            fill_document(UnknownDocument, outcome, rule=rule.name)
            for rule, outcome in outcomes
            if isinstance(outcome, Unknown)
        ],
        "not_applicable": [
            fill_document(NotApplicableDocument, outcome, rule=rule.name)
            for rule, outcome in outcomes
            if isinstance(outcome, NotApplicable)
        ],
        "clear": [rule.name for rule, outcome in outcomes if isinstance(outcome, Clear)],
    }


class AmountKind(enum.StrEnum):
    """The kind of a recommendation's dollars. Amounts of different kinds are never added."""

    COUNTED = "counted"
    """Avoidable or lost USD."""
    POSSIBLE = "trial"
    """USD that a trial run has to prove."""


class RunRecommendation(Struct, frozen=True):
    """What a standing finding of a run recommends.

    `parameter` and `new`: the first parameter of the fix and its new value; empty without a fix.
    `other_parameters`: the paths of the other parameters. `amount`: in USD; None if unknown.
    `exempt`: who accepted the finding and why; None if nobody did.
    """

    rule: str
    parameter: str
    new: str
    severity: Severity
    amount_kind: AmountKind = AmountKind.COUNTED
    amount: Decimal | None = None
    other_parameters: tuple[str, ...] = ()
    exempt: str | None = None

    @property
    def line(self) -> tuple[str, str, AmountKind]:
        """A key that is equal for recommendations with the same rule, parameter and amount kind."""
        return self.rule, self.parameter or self.new, self.amount_kind


def recommendation_from_finding(finding: FindingDocument) -> RunRecommendation | None:
    """Returns a finding's recommendation; None if no message could include it.

    The amount of a loss is the upper end of its range.
    """
    bucket, amount, exempt = Bucket(finding["bucket"]), finding["saving_usd"], finding["exempt"]
    fix, exempt_text = finding["fix"], None
    if exempt:
        amount = finding["saving_alone_usd"]
        until_text = f" until {exempt['until']}" if exempt["until"] else ""
        exempt_text = f"{exempt['by']}{until_text}: {exempt['reason']}"[:_LONGEST_REASON]
    if bucket is Bucket.LOST:
        range_ends = finding["saving_range_usd"] or []
        amount = max([*range_ends, *([] if amount is None else [amount])], default=None)
    is_sendable = is_standing({**finding, "exempt": None}) and finding["sent_to_channels"]
    is_minor = bucket.is_counted and (
        finding["severity"] == Severity.INFO or finding["reported_for_run"]
    )
    if bucket is Bucket.NONE or is_minor or amount == 0 or not is_sendable:
        return None
    return RunRecommendation(
        rule=finding["rule"],
        parameter=fix[0]["parameter"] if fix else "",
        new=value_text(fix[0]["new"]) if fix else "",
        severity=Severity(finding["severity"]),
        amount_kind=AmountKind.COUNTED if bucket.is_counted else AmountKind.POSSIBLE,
        amount=amount,
        other_parameters=tuple(item["parameter"] for item in fix[1:]),
        exempt=exempt_text,
    )


def largest_recommendations(
    recommendations: Iterable[RunRecommendation],
) -> tuple[RunRecommendation, ...]:
    """Returns the largest recommendation of each `line`.

    Avoidable and lost amounts come first, then possible amounts.
    """
    kinds = list(AmountKind)
    rows = sorted(
        recommendations,
        key=lambda row: (kinds.index(row.amount_kind), -(row.amount or Decimal(0)), row.new),
    )
    return tuple({row.line: row for row in reversed(rows)}.values())[::-1][:MAX_RECOMMENDATIONS]


def value_text(value: Scalar) -> str:
    """Returns a parameter's value as a text that can be compared; "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    is_number = isinstance(value, int | float | Decimal)
    text = f"{Decimal(str(value)).normalize():f}" if is_number else str(value)
    return text[:_LONGEST_VALUE]
