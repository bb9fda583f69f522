"""The audit of a roll-up: the sum of its children's audits, not included in any other sum.

The cost of a tuning or AutoML job is on the jobs that it launched. A child keeps its own shares; a
finding of the roll-up is one rule's finding over all children, with the sum of their shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from sageaudit.domain.audit.audit import Audit, Judged, Judgement, combine_judgements
from sageaudit.domain.audit.bill_document import is_upper_bound, undercounted_parts
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import (
    FindingDocument,
    Outcomes,
    is_standing,
    max_saving_usd,
    parse_finding,
)
from sageaudit.domain.audit.trials import TrialSavings
from sageaudit.domain.bill.bill import Basis, BillSum
from sageaudit.domain.bill.bill_facts import BillFacts
from sageaudit.domain.bill.counterfactual import REMAINDER, Savings, Severities, Slice
from sageaudit.domain.bill.finding import Bucket, Finding, Severity
from sageaudit.domain.job.job import Job, sum_if_complete
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import rollup_from_arn
from sageaudit.domain.prices.market import PriceKind
from sageaudit.structs import replace

_ZERO = Decimal(0)


def rollup_job_from_children(children: Sequence[AuditDocument]) -> Job:
    """A roll-up without a recorded answer of its own, derived from its children."""
    rows = [child["job"] for child in children]
    first = rows[0]
    times = [
        (datetime.fromisoformat(row["started_at"]), datetime.fromisoformat(row["ended_at"]))
        for row in rows
        if row["started_at"] and row["ended_at"]
    ]
    named = rollup_from_arn(first["parent"])
    return Job(
        kind=named.kind if named else JobKind.TUNING,
        name=(first["parent"] or first["family"]).rpartition("/")[2],
        arn=first["parent"],
        account=first["account"],
        region=first["region"],
        status="Unknown",
        started_at=min((start for start, _ in times), default=None),
        ended_at=max((end for _, end in times), default=None),
    )


def roll_up(
    job: Job,
    children: Sequence[AuditDocument],
    *,
    family: str,
    owner: str | None,
    launched_count: int | None,
    severities: Severities,
    ruleset: str,
    policy: str,
    outcomes: Outcomes,
    own_savings: TrialSavings,
) -> Audit:
    """Sums the children's audits. `launched`: expected number of children, None when unknown.

    A job that launched nothing cost nothing. `outcomes` are those of its rules, and `own`
    the savings of their findings, taken from what the children's findings left.
    """
    empty = _ZERO if launched_count == 0 else None
    jobs = _children_label(job)
    missing = tuple(_missing(children, launched_count, jobs))
    guessed = sum(bool(child["bill"]["estimated"]) for child in children)
    rate = f"{guessed} of {len(children)} {jobs} are billed at an estimated rate"
    estimated = (rate,) if guessed else ()
    totals = [child["bill"]["total_usd"] for child in children]
    total_usd = sum_if_complete(totals) if totals else empty
    judged = _judgement(children, launched_count, jobs)
    return Audit(
        job=job,
        family=family,
        owner=owner,
        bill=BillSum(
            total_usd=total_usd,
            complete=not missing and all(child["bill"]["complete"] for child in children),
            missing=(*missing, *_incomplete(children, jobs), *estimated),
            estimated=estimated,
            basis=_basis(children),
        ),
        bill_facts=_facts(children),
        usage=None,
        outcomes=tuple(outcomes),
        savings=judged.without_unknown_sums(
            _savings(children, total_usd, empty, severities, own_savings, jobs)
        ),
        judgement=judged,
        is_settled=not missing and all(child["audit"]["settled"] for child in children),
        due_at=None,
        ruleset=ruleset,
        policy=policy,
        notes=missing,
        rollup_rules=tuple(finding.rule.name for finding in own_savings.findings),
    )


def _children_label(job: Job) -> str:
    """What it launched, for people."""
    rollup = job.kind.spec.rollup
    return rollup.children_label if rollup else "jobs"


def _basis(children: Sequence[AuditDocument]) -> Basis:
    """An upper bound where a part is one; else none, since the sum has no lines of its own."""
    bound = any(is_upper_bound(child["bill"]) for child in children)
    return "upper_bound" if bound else "none"


def _judgement(children: Sequence[AuditDocument], launched: int | None, jobs: str) -> Judgement:
    """How much of its jobs was judged; nothing, where none is known."""
    if not children and launched != 0:
        return Judgement(Judged.NO, (f"Its {jobs} are not audited.",))
    unaudited = max((launched or 0) - len(children), 0)
    known = all(child["avoidable_usd"] is not None for child in children)
    together = combine_judgements(list(map(_child_judgement, children)), unaudited, jobs)
    return replace(together, is_answered=known)


def _child_judgement(child: AuditDocument) -> Judgement:
    """A child's judgement; only in part where its dollars are in no sum, for want of a price."""
    judged, reasons = Judged(child["judged"]), tuple(child["not_judged"])
    if child["avoidable_usd"] is None and judged is not Judged.NO:
        return Judgement(Judged.PARTLY, (*reasons, "Its avoidable dollars are not known."))
    return Judgement(judged, reasons)


def _facts(children: Sequence[AuditDocument]) -> BillFacts:
    bills = [child["bill"] for child in children]
    kinds = {bill["price_kind"] for bill in bills if bill["price_kind"]}
    kind: PriceKind | None = next(iter(kinds)) if len(kinds) == 1 else None
    return BillFacts(
        price_kind="estimate" if "estimate" in kinds else kind,
        spot_saved_usd=_known_sum(bill["spot_saved_usd"] for bill in bills),
        prepaid_value_usd=_known_sum(bill["prepaid_value_usd"] for bill in bills),
        notes=tuple(dict.fromkeys(note for bill in bills for note in bill["notes"])),
    )


def _missing(children: Sequence[AuditDocument], launched: int | None, jobs: str) -> Iterable[str]:
    if launched is None and not children:
        yield f"the {jobs} that it launched are not known"
    elif launched is not None and len(children) < launched:
        yield f"{launched - len(children)} of {launched} {jobs} are not audited"
    unpriced = sum(child["bill"]["total_usd"] is None for child in children)
    if unpriced:
        yield f"{unpriced} of {len(children)} {jobs} have no known cost"


def _incomplete(children: Sequence[AuditDocument], jobs: str) -> Iterable[str]:
    """What the bills of its jobs lack, each reason once; without those of no known cost.

    That some of them are upper bounds is said by the basis.
    """
    counts: Counter[str] = Counter()
    for bill in (child["bill"] for child in children if child["bill"]["total_usd"] is not None):
        counts.update(undercounted_parts(bill))
    for what, count in counts.items():
        yield f"in {count} of {len(children)} {jobs}, {what}"


def _savings(
    children: Sequence[AuditDocument],
    total_usd: Decimal | None,
    empty_sum: Decimal | None,
    severities: Severities,
    own: TrialSavings,
    jobs: str,
) -> Savings:
    """The children's shares and the tuning findings' own."""

    def total(parts: Sequence[Decimal | None], bucket: Bucket) -> Decimal | None:
        usd = own.usd(bucket)
        return sum_if_complete([*parts, usd]) if parts or usd else empty_sum

    # What is not known of the possible dollars, the findings say; of the avoidable ones, `judged`.
    possible = [usd for child in children if (usd := child["possible_usd"]) is not None]
    possible_usd = total(possible, Bucket.POSSIBLE)
    if not possible_usd and len(possible) < len(children):
        possible_usd = None
    avoidable = [usd for child in children if (usd := child["avoidable_usd"]) is not None]
    findings = [*_merged_findings(children, severities, jobs), *own.findings]
    findings.sort(key=lambda finding: (-(finding.saving_usd or _ZERO), finding.rule.id))
    return Savings(
        tuple(findings),
        total(avoidable, Bucket.AVOIDABLE),
        total([child["lost_usd"] for child in children], Bucket.LOST),
        possible_usd,
        () if total_usd is None else tuple(_waterfall(children, own)),
        total([child["lost_up_to_usd"] for child in children], Bucket.LOST),
    )


def _merged_findings(
    children: Sequence[AuditDocument], severities: Severities, jobs: str
) -> Iterable[Finding]:
    by_rule: dict[str, list[FindingDocument]] = {}
    for child in children:
        for finding in filter(is_standing, child["findings"]):
            by_rule.setdefault(finding["rule"], []).append(finding)
    among = f"{len(children)} {jobs}"
    key = jobs.replace(" ", "_")
    return (_merge_rule_findings(written, among, key, severities) for written in by_rule.values())


def _merge_rule_findings(
    written: Sequence[FindingDocument], scope_text: str, key: str, severities: Severities
) -> Finding:
    """Merges a rule's findings: text of the most expensive one, sum of their shares.

    `among`: the children, counted; `key`: that of the number of findings in the evidence. What they
    may save at most is the end of its range.
    """
    findings = list(map(parse_finding, written))
    most = sum((max_saving_usd(finding) or _ZERO for finding in written), _ZERO)
    dearest = max(findings, key=lambda finding: finding.saving_usd or _ZERO)
    rule, found = dearest.rule, dearest.found
    usd = sum_if_complete(finding.saving_usd for finding in findings)
    spans = [finding.range_usd for finding in findings if finding.range_usd]
    span = None
    if spans:
        span = (sum((low for low, _ in spans), _ZERO), sum((high for _, high in spans), _ZERO))
    # Advice without dollars in every child has none here; unknown dollars stay unknown, not 0.
    priced = usd is not None or any(finding.severity is not Severity.INFO for finding in findings)
    return replace(
        dearest,
        severity=severities.severity_for(rule, found.bucket, usd, span, is_priced=priced),
        found=replace(
            found,
            summary=f"In {len(findings)} of {scope_text}, such as: {found.summary}",
            evidence={key: len(findings), **found.evidence},
        ),
        saving_usd=usd,
        alone_usd=None,
        range_usd=(usd, most) if usd is not None and most > usd else None,
        estimated=any(finding.estimated for finding in findings),
        reported_for_run=None,
    )


def _waterfall(children: Sequence[AuditDocument], own: TrialSavings) -> Iterable[Slice]:
    """Sums each slice over all children; the tuning findings' shares come out of the rest."""
    sums: dict[str, Decimal] = {}
    for child in children:
        for part in child["waterfall"]:
            sums[part["slice"]] = sums.get(part["slice"], _ZERO) + part["usd"]
    rest = sums.pop(REMAINDER, None)
    if rest is not None:
        for finding in own.findings:
            bucket, usd = finding.found.bucket, finding.saving_usd
            if usd and bucket.is_counted:
                sums[f"{bucket.value}: {finding.rule.name}"] = usd
                rest -= usd
        sums[REMAINDER] = rest
    return (Slice(name, usd) for name, usd in sums.items())


def _known_sum(values: Iterable[Decimal | None]) -> Decimal | None:
    """The known parts together; None where no part is known."""
    known = [value for value in values if value is not None]
    return sum(known, _ZERO) if known else None
