"""The audit as a document: schema 1 of what History stores, notices show and the CLI prints.

Keys are always present and only ever added. Money is USD, rounded to 6 decimals when written; an
unknown value is None. Read a document with `json.loads(text, parse_float=Decimal)`, so that no
figure becomes a float. Enumerated words are plain text: `Bucket(finding["bucket"])` reads one.

To add a key, add it to the document's class. The audit's attribute of that name fills it, or the
function below the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, TypedDict

from sageaudit.domain.audit.audit import Audit, Judged
from sageaudit.domain.audit.bill_document import BillDocument, line_document, qualify_bill
from sageaudit.domain.audit.finding_document import (
    FindingDocument,
    NotApplicableDocument,
    UnknownDocument,
    fill_document,
    finding_document,
    iso,
    other_outcomes,
    round_usd,
)
from sageaudit.domain.bill.counterfactual import Slice
from sageaudit.domain.bill.idle_capacity import IdleCapacity, IdleCause, Unit
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.moments import Moment
from sageaudit.domain.usage.measurements import Measurements, Metric

SCHEMA = 1
_MICRO = Decimal("0.000001")
_MILLI = Decimal("0.001")


class AuditDocument(TypedDict):
    """The audit of one job. The audit of a roll-up sums the jobs that it launched."""

    schema: int
    job: JobDocument
    audit: AuditDocumentMeta
    phases: list[PhaseDocument]
    bill: BillDocument
    judged: Annotated[str, Judged]
    """How much of the run was judged."""
    not_judged: list[str]
    """A few sentences on what was not judged, why, and what to do; none if all was judged."""
    avoidable_usd: Decimal | None
    """Avoidable dollars; None if no rule that can find waste could judge, or if the cost is
    unknown."""
    lost_usd: Decimal | None
    lost_up_to_usd: Decimal | None
    """The most that may be lost, in USD; equal to `lost_usd` (the certain part) if no loss is a
    range."""
    possible_usd: Decimal | None
    idle_capacity: IdleCapacityDocument | None
    """In no sum; None for a roll-up, or if unknown: `audit.coverage.missing` has the reason."""
    findings: list[FindingDocument]
    unknown: list[UnknownDocument]
    not_applicable: list[NotApplicableDocument]
    clear: list[str]
    waterfall: list[SliceDocument]
    children: list[AuditDocument] | None
    rollup: bool
    rollup_rules: list[str]
    """The rules whose findings are the roll-up's own, and in no child's audit."""
    unauditable: str | None
    """Why the job could not be audited, such as that it was deleted; None for a real audit."""


def document(audit: Audit, children: Sequence[AuditDocument] | None = None) -> AuditDocument:
    """Returns the audit as it is stored and printed. History sets `audit.version`.

    `children`: the children's documents to include; None if the history has their audits.
    """
    return fill_document(
        AuditDocument,
        audit.savings,
        audit.judgement,
        audit,
        schema=SCHEMA,
        job=_job(audit),
        audit=_meta(audit),
        phases=[
            fill_document(PhaseDocument, cost.phase, usd=round_usd(cost.usd))
            for cost in audit.bill.phases
        ],
        bill=_bill(audit),
        idle_capacity=_idle_capacity(audit.idle_capacity),
        findings=[finding_document(finding) for finding in audit.savings.findings],
        **other_outcomes(audit.outcomes),
        waterfall=_waterfall(audit.savings.waterfall, audit.bill.total_usd),
        children=None if children is None else list(children),
    )


def _bill(audit: Audit) -> BillDocument:
    lines = list(map(line_document, audit.bill.lines))
    bill = fill_document(
        BillDocument, audit.bill, audit.bill_facts, lines=lines, spend_qualifier=""
    )
    return {**bill, "spend_qualifier": qualify_bill(bill).value}


class JobDocument(TypedDict):
    """The job of an audit. Times are ISO 8601 in UTC."""

    name: str
    arn: str | None
    kind: Annotated[str, JobKind]
    status: str
    account: str | None
    region: str | None
    family: str
    owner: str | None
    created_at: Annotated[str, Moment] | None
    started_at: Annotated[str, Moment] | None
    ended_at: Annotated[str, Moment] | None
    tags: dict[str, str | None]
    """The cost tags that the policy shows; null for a tag that the job does not have."""
    image: str | None
    """The container image, without the digest."""
    instances: str | None
    """The instances, for people: "2 x ml.g5.12xlarge"."""
    purchase: Annotated[str, Purchase] | None
    """How the capacity was bought. None for a roll-up, or if unknown."""
    parent: str | None
    """ARN of the tuning, AutoML, labeling, monitoring or training job that started the job."""


def _job(audit: Audit) -> JobDocument:
    job = audit.job
    has_purchase = not job.kind.spec.rollup and audit.unauditable is None
    return fill_document(
        JobDocument,
        job,
        audit,
        tags=dict(audit.tags),
        purchase=job.purchase.value if has_purchase else None,
        parent=job.parent.arn if job.parent else None,
    )


class AuditDocumentMeta(TypedDict):
    """Facts about the audit itself. `settled`: false while the audit is provisional.

    `due_at`: when the job is audited again; null if it is not. `pool`: null for a run that was
    judged alone, or not at all.
    """

    version: int
    settled: bool
    due_at: Annotated[str, Moment] | None
    ruleset: str
    policy: str
    coverage: CoverageDocument
    pool: PoolDocument | None


def _meta(audit: Audit) -> AuditDocumentMeta:
    return fill_document(
        AuditDocumentMeta,
        audit,
        version=1,
        settled=audit.is_settled,
        due_at=iso(audit.due_at),
        coverage=_coverage(audit.usage, audit.notes),
        pool=_pool(audit),
    )


class PoolDocument(TypedDict):
    """The runs of the family by whose active minutes a short run was judged.

    `runs`: their number, including this run. `earlier_runs`: the names of the other runs, newest
    first. `avoidable_usd`: the sum of these runs' own avoidable dollars. Every other figure of the
    audit is this run's alone.
    """

    runs: int
    active_minutes: Decimal
    own_active_minutes: Decimal
    earlier_runs: list[str]
    avoidable_usd: Decimal | None


def _pool(audit: Audit) -> PoolDocument | None:
    if (pool := audit.pool) is None:
        return None
    own_usd, earlier_usd = audit.savings.avoidable_usd, audit.pool_avoidable_usd
    total_usd = None if own_usd is None or earlier_usd is None else own_usd + earlier_usd
    return fill_document(
        PoolDocument,
        pool,
        active_minutes=Decimal(str(round(pool.usage.minutes, 1))),
        own_active_minutes=Decimal(str(round(pool.own_usage.minutes, 1))),
        earlier_runs=list(pool.names),
        avoidable_usd=round_usd(total_usd),
    )


class CoverageDocument(TypedDict):
    """How much of the metrics was read. `period_s`: the seconds of one point.

    `hosts`: the number of hosts with metrics. `share`: by metric, the share (0..1) of points
    present.
    """

    period_s: int | None
    hosts: int
    hosts_expected: int | None
    share: dict[str, Decimal | None]
    missing: list[str]
    """One sentence for each thing that could not be read."""


def _coverage(usage: Measurements | None, notes: Sequence[str]) -> CoverageDocument:
    shares = {} if usage is None else {metric: usage.share(metric) for metric in Metric}
    missing = [*notes]
    if usage is not None:
        absent = dict.fromkeys(
            f"{metric.value}: {missing.reason}"
            for metric, missing in usage.missing.items()
            if missing.code not in {"no_gpu", "not_asked"}
        )
        missing = [*absent, *usage.notes, *notes]
    return {
        "period_s": usage.period_s if usage else None,
        "hosts": len(usage.hosts) if usage else 0,
        "hosts_expected": usage.hosts_expected if usage else None,
        "share": {
            metric.value: None if share is None else Decimal(share).quantize(_MILLI)
            for metric, share in shares.items()
        },
        "missing": missing,
    }


class PhaseDocument(TypedDict):
    """One occurrence of a phase. `usd`: the phase's share of the compute lines.

    `not_billed_because`: why a phase in which instances worked is not billed; null for other
    phases.
    """

    name: str
    seconds: Decimal | None
    billed: bool
    not_billed_because: str | None
    usd: Decimal | None


class IdleCapacityDocument(TypedDict):
    """The device hours that were paid for, worked and idle, and the value of the idle hours.

    Paid hours are worked plus idle hours. `list_usd`: None if no rate is known. `counted_usd`: the
    part of `list_usd` that is in `avoidable_usd` or `lost_usd`. `likely_causes`: why the devices
    may have waited.
    """

    unit: Unit
    paid: Decimal
    worked: Decimal
    idle: Decimal
    list_usd: Decimal | None
    counted_usd: Decimal | None
    likely_causes: list[IdleCause]


def _idle_capacity(idle_capacity: IdleCapacity | None) -> IdleCapacityDocument | None:
    """Returns the document of the idle capacity; None if there is none.

    Paid and worked hours are rounded first, so that worked and idle add up to paid.
    """
    if idle_capacity is None:
        return None
    paid, worked = idle_capacity.paid.quantize(_MICRO), idle_capacity.worked.quantize(_MICRO)
    return fill_document(
        IdleCapacityDocument, idle_capacity, paid=paid, worked=worked, idle=paid - worked
    )


class SliceDocument(TypedDict):
    """One slice of the waterfall. All slices sum to `bill.total_usd`."""

    slice: str
    usd: Decimal


def _waterfall(slices: Sequence[Slice], total_usd: Decimal | None) -> list[SliceDocument]:
    """Returns the rounded slices. The last one gets the rounding difference, so that they sum to
    the bill.
    """
    total = round_usd(total_usd)
    if total is None or not slices:
        return []
    *counted, remainder = slices
    rows: list[SliceDocument] = [
        {"slice": part.name, "usd": part.usd.quantize(_MICRO)} for part in counted
    ]
    remainder_usd = total - sum((row["usd"] for row in rows), Decimal(0))
    return [*rows, {"slice": remainder.name, "usd": remainder_usd}]
