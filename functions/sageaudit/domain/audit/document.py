"""The audit as a document: schema 1 of what History stores, notices show and the CLI prints.

Keys are always present and only ever added. Money is USD, rounded to 6 decimals when written; a
value that is not known is None. Read it back with `json.loads(text, parse_float=Decimal)`: no
figure passes through a float.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, TypedDict

SCHEMA = 1

Severity = Literal["high", "medium", "low", "info"]
Confidence = Literal["measured", "derived", "heuristic"]
Bucket = Literal["avoidable", "lost", "possible", "none"]
Basis = Literal["billable_seconds", "estimated_from_times", "upper_bound", "prepaid", "none"]
PriceKind = Literal["list", "own"]


class JobDocument(TypedDict):
    """Which job. Times are ISO 8601 in UTC."""

    name: str
    arn: str | None
    kind: str
    status: str
    account: str | None
    region: str | None
    family: str
    owner: str | None
    created_at: str | None
    started_at: str | None
    ended_at: str | None
    instances: str | None
    """What it ran on, for people: "2 x ml.g5.12xlarge"."""
    purchase: Literal["on_demand", "spot", "training_plan", "serverless"] | None
    parent: str | None
    """ARN of the tuning, AutoML, labeling, monitoring or training job that started it."""


class CoverageDocument(TypedDict):
    """What the metrics cover: period, hosts seen of hosts expected, share 0..1 per metric."""

    period_s: int | None
    hosts: int
    hosts_expected: int | None
    share: dict[str, Decimal | None]
    missing: list[str]
    """One sentence for each thing that could not be read."""


class AuditDocumentHead(TypedDict):
    """`due_at`: when a second look will settle it, ISO 8601; None when settled or not planned."""

    version: int
    settled: bool
    due_at: str | None
    ruleset: str
    policy: str
    coverage: CoverageDocument


class PhaseDocument(TypedDict):
    """One occurrence of a phase. `usd` is its share of the compute lines."""

    name: str
    seconds: Decimal | None
    billed: bool
    usd: Decimal | None


class LineDocument(TypedDict):
    """One line of the bill. `usd` is None when the rate or the quantity is not known.

    `price_kind`: AWS's list price, or the company's own by its policy.
    """

    item: str
    usage_type: str | None
    quantity: Decimal | None
    unit: str
    rate_usd: Decimal | None
    usd: Decimal | None
    price_as_of: str | None
    price_source: str | None
    price_kind: PriceKind | None
    note: str | None


class BillDocument(TypedDict):
    """`missing`: one sentence for each thing that keeps the bill from being complete.

    `spot_saved_usd`: what the seconds that spot did not bill would have cost.
    `prepaid_value_usd`: what a training plan's capacity would have cost on demand.
    `notes`: what to know of the figure, such as what is not in it.
    """

    total_usd: Decimal | None
    complete: bool
    missing: list[str]
    basis: Basis
    lines: list[LineDocument]
    price_kind: PriceKind | None
    spot_saved_usd: Decimal | None
    prepaid_value_usd: Decimal | None
    notes: list[str]


class FixDocument(TypedDict):
    """`parameter` is the path in the Create*Job request; `old` None when it was not set."""

    parameter: str
    old: Any
    new: Any


class ExemptDocument(TypedDict):
    """Who exempted a finding, until when (ISO date or None) and why."""

    by: str
    until: str | None
    reason: str


class FindingDocument(TypedDict):
    """One slice of the bill, its reason and its fix. A `fix` list applies together."""

    rule: str
    id: str
    severity: Severity
    confidence: Confidence
    bucket: Bucket
    summary: str
    saving_usd: Decimal | None
    saving_alone_usd: Decimal | None
    saving_range_usd: list[Decimal] | None
    superseded_by: str | None
    subsumed_by: str | None
    exempt: ExemptDocument | None
    evidence: dict[str, Any]
    fix: list[FixDocument]
    alternatives: list[list[FixDocument]]
    caution: str | None
    """What may make the advice wrong, or why it has no dollars: one or two sentences."""
    in_chat: bool
    """False for guard-rails that are stored and shown, but never posted."""


def stands(finding: FindingDocument) -> bool:
    """Nobody exempted it, and no other finding tells its story or takes its place."""
    return not (finding["exempt"] or finding["superseded_by"] or finding["subsumed_by"])


class UnknownDocument(TypedDict):
    """A rule that could not be judged: a stable code and a sentence."""

    rule: str
    code: str
    reason: str


class NotApplicableDocument(TypedDict):
    """A rule that does not speak of this job, and why."""

    rule: str
    reason: str


class SliceDocument(TypedDict):
    """One slice of the waterfall; slices sum to `bill.total_usd`."""

    slice: str
    usd: Decimal


class AuditDocument(TypedDict):
    """One audit of one job (or the roll-up of a tuning job's children)."""

    schema: int
    job: JobDocument
    audit: AuditDocumentHead
    phases: list[PhaseDocument]
    bill: BillDocument
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    possible_usd: Decimal | None
    findings: list[FindingDocument]
    unknown: list[UnknownDocument]
    not_applicable: list[NotApplicableDocument]
    clear: list[str]
    waterfall: list[SliceDocument]
    children: list[AuditDocument] | None
    rollup: bool
    unauditable: str | None
    """Why the job could not be audited at all (gone, never described); None for a real audit."""
