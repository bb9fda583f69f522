"""Decides whether an audit is worth a message, with the reason; pure.

Every audit is stored. A message is sent when someone can act on it and enough money is at stake. A
job that could not be judged is no news by itself: nobody knows that money is at stake.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, FindingDocument, JobDocument, stands
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.domain.policy.policy import Mode
from sageaudit.text.money import usd


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to send a message, and the reason."""

    notify: bool
    reason: str


def decide(
    document: AuditDocument,
    *,
    mode: Mode,
    family_avoidable_30d_usd: Decimal,
    floor_usd: Decimal,
) -> Decision:
    """Decides whether one audit is worth a message.

    `family_avoidable_30d_usd`: avoidable plus lost USD of the family over 30 days, with this job.
    """
    quiet = _why_quiet(document, mode)
    if quiet is not None:
        return Decision(notify=False, reason=quiet)
    family = f"family's avoidable and lost cost over 30 days, {usd(family_avoidable_30d_usd)},"
    if family_avoidable_30d_usd < floor_usd:
        return Decision(notify=False, reason=f"{family} is under the floor of {usd(floor_usd)}")
    return Decision(notify=True, reason=f"{family} reaches the floor of {usd(floor_usd)}")


def counted_findings(document: AuditDocument) -> tuple[FindingDocument, ...]:
    """The findings that count for a message, the largest saving first."""
    return tuple(sorted(filter(_counts, document["findings"]), key=_weight))


def worst(findings: tuple[FindingDocument, ...]) -> Severity:
    """The severity of a message: that of its worst finding."""
    severities = (Severity(finding["severity"]) for finding in findings)
    return max(severities, key=lambda severity: severity.rank, default=Severity.INFO)


def _why_quiet(document: AuditDocument, mode: Mode) -> str | None:
    if document["unauditable"] is not None:
        return "unauditable"
    if mode == "observe":
        return "observe mode"
    if _is_tuning_trial(document["job"]):
        return "child of a tuning job"
    if not counted_findings(document):
        unjudged = document["judged"] == Judged.NO
        return "no finding worth a message" + (": it could not be judged" if unjudged else "")
    return None


def _is_tuning_trial(job: JobDocument) -> bool:
    """True for a trial of a tuning job: it is reported in the tuning job's message."""
    return job["kind"] == "training" and ":hyper-parameter-tuning-job/" in (job["parent"] or "")


def for_chat(finding: FindingDocument) -> bool:
    """True for a finding that stands and may be posted, and was not said of an earlier run."""
    return finding["in_chat"] and stands(finding) and not finding.get("said_of")


def _counts(finding: FindingDocument) -> bool:
    """True when the finding's dollars count. Unknown savings count too; a saving of 0 does not.

    A run that may be lost is news, although what is certain of it is 0.
    """
    return (
        for_chat(finding)
        and Bucket(finding["bucket"]).counted
        and finding["severity"] != Severity.INFO
        and (finding["saving_usd"] != 0 or _may_be_lost(finding) > 0)
    )


def _may_be_lost(finding: FindingDocument) -> Decimal:
    """The upper end of a lost range; 0 for any other finding."""
    lost = Bucket(finding["bucket"]) is Bucket.LOST
    return max(finding["saving_range_usd"] or [Decimal(0)]) if lost else Decimal(0)


def _weight(finding: FindingDocument) -> tuple[bool, Decimal, int, str]:
    """Sort key: unknown dollars last; severity and name make the order stable."""
    saving = finding["saving_usd"]
    severity = Severity(finding["severity"])
    usd_at_stake = max(saving or Decimal(0), _may_be_lost(finding))
    return saving is None, -usd_at_stake, -severity.rank, finding["rule"]
