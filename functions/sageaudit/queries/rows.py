"""Rows of lists: an audit's summary, or a finding beside it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.record import NOT_NAMED, RuleFinding
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.queries.question import Sort
from sageaudit.structs import replace

_ZERO = Decimal(0)
_OWN = (Sort.TOTAL, Sort.AVOIDABLE, Sort.LOST)
"""Amounts of a roll-up that its summary has of its training jobs."""
NEVER_STARTED = "Never started"
"""The status of jobs that failed or were stopped before their start; no word of AWS."""
OF_A_FINDING = frozenset(
    [
        *("ended_at", "job", "arn", "created_at", "kind", "account", "region", "family", "owner"),
        *("rollup", "severity", "estimated", "rule", "rule_id", "confidence", "bucket"),
        *("saving_usd", "saving_up_to_usd", "saving_alone_usd", "summary", "fix"),
    ]
)
"""The fields that a list of one rule knows without reading the audit's head."""


def listed(head: AuditSummary) -> AuditSummary:
    """An audit as lists show it.

    A roll-up (a tuning job) repeats the dollars of its training jobs, so it has only those that it
    adds itself: the columns of any list add up to the daily sums.
    """
    sums = head.sums
    if head.rollup:
        own: dict[str, Any] = {f"{sort}_usd": sort.of(sums) for sort in _OWN}
        possible_usd = sums.known_possible_usd
        exact = SpendQualifier.EXACT
        return replace(head, possible_usd=possible_usd, spend_qualifier=exact, **own)
    if head.possible_usd != sums.known_possible_usd:
        head = replace(head, possible_usd=sums.known_possible_usd)
    if not _never_started(head):
        return head
    waited_s = sum(head.phase_s.values()) or None
    waiting_s = None if waited_s is None else round(waited_s)
    return replace(head, status=NEVER_STARTED, judged=None, waiting_s=waiting_s)


def _never_started(head: AuditSummary) -> bool:
    """Whether a job ended before its start: it has no times, and its bill is known to be 0."""
    if head.purchase is None or head.total_usd is None:
        return False
    times = (head.elapsed_s, head.billable_s)
    return head.status != "Completed" and not head.total_usd and not any(times)


def with_head(row: RuleFinding, head: AuditSummary | None) -> RuleFinding:
    """The row with its audit's whole summary, where that could be read.

    Of a roll-up, whose head must be read, the savings are those that no training job counts.
    """
    if head is None:
        return row
    finding = row.finding
    if head.rollup:
        own = head.sums.rules.get(finding.rule, RuleSums())
        has_dollars = finding.bucket is not Bucket.NONE
        finding = replace(
            finding,
            saving_usd=own.known_usd(finding.bucket) if has_dollars else None,
            saving_up_to_usd=own.most_usd(finding.bucket) if has_dollars else None,
        )
    summary = replace(listed(head), severity=finding.severity, estimated=finding.estimated)
    return RuleFinding(finding, summary, is_read=True)


def needs_head(row: RuleFinding) -> bool:
    """True where the list does not tell the account, region and kind, or what a finding adds."""
    return row.summary.rollup or row.summary.kind == NOT_NAMED


def amount(row: AuditSummary | RuleFinding, sort: Sort) -> Decimal:
    """What a row is sorted by; 0 if it is not known. A finding: its saving."""
    if isinstance(row, RuleFinding):
        return row.finding.saving_usd or _ZERO
    return Decimal(getattr(row, sort.field) or 0)


def head_amount(head: AuditSummary, sort: Sort) -> Decimal:
    """The same of a stored summary, which is made a row of only where it has no such amount."""
    if sort is Sort.WASTE and not head.rollup:
        return (head.avoidable_usd or _ZERO) + (head.lost_usd or _ZERO)
    return amount(listed(head), sort)
