"""The findings and figures of an audit that count for a message; no I/O.

A message is sent if someone can act on it and enough money is at stake. A job that could not be
judged gets no message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, cast

from msgspec import Struct

from sageaudit.domain.advice.advice import FamilyRecommendation, State, recommendation_id
from sageaudit.domain.audit.bill_document import BillDocument
from sageaudit.domain.audit.document import AuditDocument, IdleCapacityDocument, JobDocument
from sageaudit.domain.audit.finding_document import (
    ExemptDocument,
    FindingDocument,
    RunRecommendation,
    is_standing,
    largest_recommendations,
    recommendation_from_finding,
)
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.domain.bill.idle_capacity import Unit
from sageaudit.domain.job.ref import rollup_from_arn
from sageaudit.domain.money import CENT

_IDLE_MIN_USD = Decimal(10)
"""A message shows idle capacity if at least this many USD of it are in no finding, at list price.
Our choice: the default minimum of a medium finding."""
_IDLE_MIN_HOURS: dict[Unit, Decimal] = {"gpu_hours": Decimal(10), "vcpu_hours": Decimal(200)}
"""If idle hours have no price, a message shows them from this number on. Our choice: these hours
cost about $10 at the cheapest rates."""
_IDLE_MIN_SHARE: dict[Unit, Decimal] = {"gpu_hours": Decimal("0.2"), "vcpu_hours": Decimal("0.5")}
"""Idle hours are normal up to this share of the paid hours. A vCPU is half a core, so half of the
vCPUs can be all of the cores. Our choice."""
_REGRESSION = "cost-regression"
MIN_CHANGE_USD = Decimal(1)
"""A figure is corrected only if it changed by at least this many USD. Our choice: late metrics
change figures by a few percent, which changes nobody's decision."""
MIN_CHANGE_SHARE = Decimal("0.1")
"""A figure is corrected only if it changed by at least this share of the earlier figure. Our
choice."""


class AlertFigures(Struct, frozen=True):
    """The figures of a message: USD to the cent, as the message shows them. None means unknown.

    `severity`: INFO if no finding counts. `possible_loss_usd`: what may be lost beyond `lost_usd`.
    `accepted_usd`: dollars that no message shows, because a policy or tag accepts them.
    """

    severity: Severity
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    possible_loss_usd: Decimal = Decimal(0)
    accepted_usd: Decimal = Decimal(0)

    @property
    def usd(self) -> Decimal | None:
        """The certain dollars, avoidable plus lost; None if neither is known."""
        if self.avoidable_usd is None and self.lost_usd is None:
            return None
        return (self.avoidable_usd or Decimal(0)) + (self.lost_usd or Decimal(0))

    @property
    def at_stake_usd(self) -> Decimal:
        """Avoidable, lost and possibly lost dollars together."""
        return (self.usd or Decimal(0)) + self.possible_loss_usd

    @property
    def has_dollars(self) -> bool:
        """Whether a finding counts.

        If no finding counts, the message is about a trial or withdraws a finding.
        """
        return self.severity is not Severity.INFO

    @property
    def is_standing(self) -> bool:
        """Whether the figures count: False if all dollars are 0.

        An alert with figures that do not count suppresses no other message.
        """
        return bool(self.usd is None or self.at_stake_usd)


def should_correct(figures: AlertFigures, earlier_figures: AlertFigures) -> bool:
    """Returns whether a figure changed enough since the last alert for a correction.

    `earlier_figures`: the figures that were sent.
    """
    if not earlier_figures.has_dollars and not figures.has_dollars:
        return False
    if (figures.usd is None) != (earlier_figures.usd is None):
        return True
    has_higher_severity = (
        figures.severity.rank > earlier_figures.severity.rank and figures.usd == earlier_figures.usd
    )
    if figures.has_dollars and earlier_figures.has_dollars and has_higher_severity:
        return True
    is_usd_changed = _is_changed(figures.usd or Decimal(0), earlier_figures.usd or Decimal(0))
    return is_usd_changed or _is_changed(
        figures.possible_loss_usd, earlier_figures.possible_loss_usd
    )


def _is_changed(now: Decimal, earlier_usd: Decimal) -> bool:
    return abs(now - earlier_usd) >= max(MIN_CHANGE_USD, MIN_CHANGE_SHARE * earlier_usd)


class MessageAudit(Struct, frozen=True):
    """One version of an audit for a decision and its card.

    `counted_findings`: those that count for a message. `trial_findings`: those that may save
    dollars after a trial. `run_findings`: those with dollars of this run, even if an earlier run
    had them too. `regressions`: those that report a higher cost than comparable runs. All lists
    have the largest saving first. `shows_idle`: whether a message mentions the idle hours.
    """

    document: AuditDocument
    job: JobDocument
    bill: BillDocument
    is_rollup: bool
    figures: AlertFigures
    counted_findings: tuple[FindingDocument, ...]
    trial_findings: tuple[FindingDocument, ...]
    run_findings: tuple[FindingDocument, ...]
    regressions: tuple[FindingDocument, ...]
    recommendations: tuple[RunRecommendation, ...]
    shows_idle: bool

    @classmethod
    def parse(cls, document: AuditDocument) -> MessageAudit:
        """Returns the audit of a document. Raises KeyError, TypeError or ValueError if it is
        invalid.
        """
        findings, lost_usd = sorted(document["findings"], key=_weight), document["lost_usd"]
        counted = tuple(filter(_is_counted, findings))
        possible_loss_usd = (document["lost_up_to_usd"] or Decimal(0)) - (lost_usd or Decimal(0))
        figures = AlertFigures(
            severity=worst_severity(counted),
            avoidable_usd=_cents(document["avoidable_usd"]),
            lost_usd=_cents(lost_usd),
            possible_loss_usd=max(_cents(possible_loss_usd) or Decimal(0), Decimal(0)),
            accepted_usd=_accepted_usd(findings),
        )
        return cls(
            document=document,
            job=document["job"],
            bill=document["bill"],
            is_rollup=document["rollup"],
            figures=figures,
            counted_findings=counted,
            trial_findings=tuple(filter(_is_trial, findings)),
            run_findings=tuple(filter(_is_own, findings)),
            regressions=tuple(filter(is_regression, findings)),
            recommendations=read_recommendations(document),
            shows_idle=should_show_idle(document["idle_capacity"]),
        )

    @property
    def is_in_roll_up(self) -> bool:
        """Whether a roll-up launched the job, and so reports its dollars."""
        return rollup_from_arn(self.job["parent"]) is not None

    def without_silenced(
        self,
        recommendations: Mapping[str, FamilyRecommendation],
        run: AuditSummary,
        *,
        is_worse: bool = False,
    ) -> MessageAudit:
        """Returns the audit without silenced findings, as if the policy accepted them.

        `recommendations`: those of the family by id. `is_worse`: keeps silenced findings that are
        sent again if they get worse.
        """

        def silencing(advised: RunRecommendation) -> FamilyRecommendation | None:
            recommendation = recommendations.get(
                recommendation_id(run.account, run.region, run.family, advised)
            )
            if (
                recommendation is None
                or recommendation.is_open
                or (is_worse and recommendation.is_sent_if_worse)
            ):
                return None
            is_over = recommendation.state is State.CLOSED and recommendation.comparison is None
            return None if is_over else recommendation

        document = _exempt_silenced(self.document, silencing)
        return self if document is self.document else self.parse(document)


def permanent_suppression_reason(audit: MessageAudit) -> str | None:
    """Returns why an audit gets no message, whatever its figures; None if the figures decide."""
    if audit.document["unauditable"] is not None:
        return "unauditable"
    roll_up = rollup_from_arn(audit.job["parent"])
    return None if roll_up is None else f"child of {roll_up.kind.spec.label_with_article}"


def _accepted_usd(findings: Sequence[FindingDocument]) -> Decimal:
    exempt_savings = (
        finding["saving_alone_usd"] or Decimal(0)
        for finding in findings
        if finding["exempt"] and Bucket(finding["bucket"]).is_counted
    )
    return sum(exempt_savings, Decimal(0))


def counted_findings(findings: Sequence[FindingDocument]) -> tuple[FindingDocument, ...]:
    """Returns the findings that count for a message, the largest saving first."""
    return tuple(sorted(filter(_is_counted, findings), key=_weight))


def read_recommendations(document: AuditDocument) -> tuple[RunRecommendation, ...]:
    """Returns the largest recommendations of an audit, counted ones first."""
    recommendations = map(recommendation_from_finding, document["findings"])
    return largest_recommendations(filter(None, recommendations))


def _is_trial(finding: FindingDocument) -> bool:
    is_possible = Bucket(finding["bucket"]) is Bucket.POSSIBLE
    return is_possible and finding["sent_to_channels"] and is_standing(finding)


def _is_own(finding: FindingDocument) -> bool:
    """Returns whether the finding has dollars of this run.

    Unknown savings and possible losses count; a saving of 0 does not.
    """
    return (
        finding["sent_to_channels"]
        and is_standing(finding)
        and Bucket(finding["bucket"]).is_counted
        and (finding["saving_usd"] != 0 or _possible_loss_usd(finding) > 0)
    )


def is_regression(finding: FindingDocument) -> bool:
    """Returns whether the finding reports that the run cost more than comparable runs.

    False for a report that a higher cost has ended.
    """
    return finding["rule"] == _REGRESSION and "above_median_usd" in finding["evidence"]


def _exempt_silenced(
    document: AuditDocument,
    silencing_recommendation: Callable[[RunRecommendation], FamilyRecommendation | None],
) -> AuditDocument:
    """Returns the document with silenced findings marked as exempt.

    Their dollars are subtracted from its sums. `silencing_recommendation`: returns the silenced
    recommendation of a finding, or None. If no finding is silenced, the same document is returned.
    """
    exempted: dict[str, Any] = {**document, "findings": []}
    for finding in document["findings"]:
        finding_recommendation = None if finding["exempt"] else recommendation_from_finding(finding)
        recommendation = (
            silencing_recommendation(finding_recommendation)
            if finding_recommendation and is_standing(finding)
            else None
        )
        if recommendation is None:
            exempted["findings"].append(finding)
            continue
        exempted["findings"].append({**finding, "exempt": _silence_exemption(recommendation)})
        for key, usd in _sum_contributions(finding):
            if exempted[key] is not None:
                exempted[key] = max(exempted[key] - usd, Decimal(0))
    has_silenced = exempted["findings"] != document["findings"]
    return cast("AuditDocument", exempted) if has_silenced else document


def _silence_exemption(recommendation: FamilyRecommendation) -> ExemptDocument:
    decision = recommendation.decision
    until = decision.until.isoformat() if decision and decision.until else None
    return {
        "by": decision.by if decision else "its runs",
        "until": until,
        "reason": (decision.reason if decision else None) or recommendation.state_label,
    }


def _sum_contributions(finding: FindingDocument) -> list[tuple[str, Decimal]]:
    usd, bucket = finding["saving_usd"] or Decimal(0), Bucket(finding["bucket"])
    if bucket is Bucket.LOST:
        return [("lost_usd", usd), ("lost_up_to_usd", max(usd, _possible_loss_usd(finding)))]
    return [(f"{bucket.value}_usd", usd)] if bucket is not Bucket.NONE else []


def worst_severity(findings: tuple[FindingDocument, ...]) -> Severity:
    """Returns the highest severity of the findings; INFO without findings."""
    severities = (Severity(finding["severity"]) for finding in findings)
    return max(severities, key=lambda severity: severity.rank, default=Severity.INFO)


def is_postable(finding: FindingDocument) -> bool:
    """Returns whether a finding stands, may be posted, and was not reported for an earlier run."""
    return (
        finding["sent_to_channels"] and is_standing(finding) and not finding.get("reported_for_run")
    )


def _is_counted(finding: FindingDocument) -> bool:
    is_new = not finding.get("reported_for_run") and finding["severity"] != Severity.INFO
    return is_new and _is_own(finding)


def _possible_loss_usd(finding: FindingDocument) -> Decimal:
    """Returns the upper end of a lost finding's range in USD.

    0 without a range, and for findings that are not in bucket LOST.
    """
    is_lost = Bucket(finding["bucket"]) is Bucket.LOST
    return max(finding["saving_range_usd"] or [Decimal(0)]) if is_lost else Decimal(0)


def _weight(finding: FindingDocument) -> tuple[bool, Decimal, int, str]:
    saving_usd = finding["saving_usd"]
    severity = Severity(finding["severity"])
    usd_at_stake = max(saving_usd or Decimal(0), _possible_loss_usd(finding))
    return saving_usd is None, -usd_at_stake, -severity.rank, finding["rule"]


def should_show_idle(idle_capacity: IdleCapacityDocument | None) -> bool:
    """Returns whether a message mentions the idle hours; False if they are unknown."""
    if idle_capacity is None:
        return False
    if idle_capacity["idle"] <= idle_capacity["paid"] * _IDLE_MIN_SHARE[idle_capacity["unit"]]:
        return False
    if idle_capacity["list_usd"] is None:
        return idle_capacity["idle"] >= _IDLE_MIN_HOURS[idle_capacity["unit"]]
    return idle_capacity["list_usd"] - (idle_capacity["counted_usd"] or 0) >= _IDLE_MIN_USD


def _cents(amount: Decimal | None) -> Decimal | None:
    """Rounds USD to the cent, as late metrics may change an amount by a fraction of a cent."""
    return None if amount is None else amount.quantize(CENT, ROUND_HALF_UP)
