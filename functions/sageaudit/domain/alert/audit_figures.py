"""The findings and figures of an audit that count for a message; no I/O.

Every audit is stored. A message is sent if someone can act on it and enough money is at stake. A
job that could not be judged has no message, since nobody knows that money is at stake.
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
    Recommendation,
    is_standing,
    largest_recommendations,
    recommendation_from_finding,
)
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.domain.bill.idle_capacity import Unit
from sageaudit.domain.job.ref import rollup_from_arn

_IDLE_MIN_USD = Decimal(10)
"""Idle capacity is shown from this list value that no finding counts: by default, the amount of a
medium finding. Our choice."""
_IDLE_MIN_HOURS: dict[Unit, Decimal] = {"gpu_hours": Decimal(10), "vcpu_hours": Decimal(200)}
"""The same without a price: about $10 at the cheapest rates of either. Our choice."""
_IDLE_MIN_SHARE: dict[Unit, Decimal] = {"gpu_hours": Decimal("0.2"), "vcpu_hours": Decimal("0.5")}
"""Share of the paid hours up to which a job is healthy. A vCPU is half a core, so half of the vCPUs
can be all of the cores. Our choice."""
_CENT = Decimal("0.01")
_REGRESSION = "cost-regression"
MIN_CHANGE_USD = Decimal(1)
MIN_CHANGE_SHARE = Decimal("0.1")
"""A figure is corrected if it changed by $1 and by a tenth. Late metrics change figures by a few
percent, which changes nobody's decision. Our choice."""


class AlertFigures(Struct, frozen=True):
    """The figures of a message: USD to the cent, as they are shown; None is unknown.

    `severity` is INFO if no finding counts. `possible_loss_usd`: what may be lost beyond
    `lost_usd`. `accepted_usd`: the dollars that a policy or tag accepts; no message shows them.
    """

    severity: Severity
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    possible_loss_usd: Decimal = Decimal(0)
    accepted_usd: Decimal = Decimal(0)

    @property
    def usd(self) -> Decimal | None:
        """Avoidable plus lost, which are certain; None if neither is known."""
        if self.avoidable_usd is None and self.lost_usd is None:
            return None
        return (self.avoidable_usd or Decimal(0)) + (self.lost_usd or Decimal(0))

    @property
    def at_stake_usd(self) -> Decimal:
        """Avoidable plus lost, with what may be lost."""
        return (self.usd or Decimal(0)) + self.possible_loss_usd

    @property
    def has_dollars(self) -> bool:
        """Whether a finding counts; else the message is about a trial, or withdraws one."""
        return self.severity is not Severity.INFO

    @property
    def is_standing(self) -> bool:
        """False if all dollars were corrected to 0: then it suppresses no other message."""
        return bool(self.usd is None or self.at_stake_usd)


def should_correct(figures: AlertFigures, before: AlertFigures) -> bool:
    """Whether a figure of the last alert changed enough to be corrected."""
    if not before.has_dollars and not figures.has_dollars:
        return False
    if (figures.usd is None) != (before.usd is None):
        return True
    rose = figures.severity.rank > before.severity.rank and figures.usd == before.usd
    if figures.has_dollars and before.has_dollars and rose:
        return True
    certain = _is_changed(figures.usd or Decimal(0), before.usd or Decimal(0))
    return certain or _is_changed(figures.possible_loss_usd, before.possible_loss_usd)


def _is_changed(now: Decimal, before: Decimal) -> bool:
    return abs(now - before) >= max(MIN_CHANGE_USD, MIN_CHANGE_SHARE * before)


class MessageAudit(Struct, frozen=True):
    """One version of an audit for a decision and a card: its document, parsed once.

    `counted_findings` count for a message; `trial_findings` may save dollars after a trial.
    `run_findings` have dollars of this run, also if an earlier run had the finding. `regressions`
    report that the run cost more than comparable ones. All lists have the largest saving first.
    `shows_idle`: whether idle hours have a line.
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
    recommendations: tuple[Recommendation, ...]
    shows_idle: bool

    @classmethod
    def parse(cls, document: AuditDocument) -> MessageAudit:
        """Reads a document. Raises KeyError, TypeError or ValueError if its form is wrong."""
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
        """Whether a roll-up launched the job; then the roll-up's messages have its dollars."""
        return rollup_from_arn(self.job["parent"]) is not None

    def without_silenced(
        self,
        recommendations: Mapping[str, FamilyRecommendation],
        run: AuditSummary,
        *,
        is_worse: bool = False,
    ) -> MessageAudit:
        """Returns the audit without silenced findings, as if the policy accepted them.

        `recommendations` are by id. With `is_worse`, those that are sent if worse stay.
        """

        def silencing(advised: Recommendation) -> FamilyRecommendation | None:
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
    """Returns why an audit has no message whatever its figures; None if they decide."""
    if audit.document["unauditable"] is not None:
        return "unauditable"
    launched_by = rollup_from_arn(audit.job["parent"])
    return None if launched_by is None else f"child of {launched_by.kind.spec.label_with_article}"


def _accepted_usd(findings: Sequence[FindingDocument]) -> Decimal:
    """Returns what the exempt findings would save."""
    accepted = (
        finding["saving_alone_usd"] or Decimal(0)
        for finding in findings
        if finding["exempt"] and Bucket(finding["bucket"]).is_counted
    )
    return sum(accepted, Decimal(0))


def counted_findings(findings: Sequence[FindingDocument]) -> tuple[FindingDocument, ...]:
    """Returns the findings that count for a message, the largest saving first."""
    return tuple(sorted(filter(_is_counted, findings), key=_weight))


def read_recommendations(document: AuditDocument) -> tuple[Recommendation, ...]:
    """Returns the largest recommendations of an audit, counted ones first."""
    recommendations = map(recommendation_from_finding, document["findings"])
    return largest_recommendations(filter(None, recommendations))


def _is_trial(finding: FindingDocument) -> bool:
    """True for a finding that a trial has to prove, also if an earlier run had it."""
    possible = Bucket(finding["bucket"]) is Bucket.POSSIBLE
    return possible and finding["sent_to_channels"] and is_standing(finding)


def _is_own(finding: FindingDocument) -> bool:
    """True for dollars of this run, also if an earlier run had the finding.

    Unknown savings and possible losses count; a saving of 0 does not.
    """
    return (
        finding["sent_to_channels"]
        and is_standing(finding)
        and Bucket(finding["bucket"]).is_counted
        and (finding["saving_usd"] != 0 or _possible_loss_usd(finding) > 0)
    )


def is_regression(finding: FindingDocument) -> bool:
    """Whether it says that the run cost more than comparable runs, not that this has ended."""
    return finding["rule"] == _REGRESSION and "above_median_usd" in finding["evidence"]


def _exempt_silenced(
    document: AuditDocument,
    silencing_recommendation: Callable[[Recommendation], FamilyRecommendation | None],
) -> AuditDocument:
    """Exempts the findings whose recommendation is silenced, as if the policy accepted them.

    Their dollars leave the sums. Returns the same document if there are none.
    """
    whole: dict[str, Any] = {**document, "findings": []}
    for finding in document["findings"]:
        advised = None if finding["exempt"] else recommendation_from_finding(finding)
        recommendation = (
            silencing_recommendation(advised) if advised and is_standing(finding) else None
        )
        if recommendation is None:
            whole["findings"].append(finding)
            continue
        whole["findings"].append({**finding, "exempt": _silence_exemption(recommendation)})
        for key, usd in _sum_contributions(finding):
            if whole[key] is not None:
                whole[key] = max(whole[key] - usd, Decimal(0))
    silenced = whole["findings"] != document["findings"]
    return cast("AuditDocument", whole) if silenced else document


def _silence_exemption(recommendation: FamilyRecommendation) -> ExemptDocument:
    known = recommendation.decision
    until = known.until.isoformat() if known and known.until else None
    return {
        "by": known.by if known else "its runs",
        "until": until,
        "reason": (known.reason if known else None) or recommendation.state_label,
    }


def _sum_contributions(finding: FindingDocument) -> list[tuple[str, Decimal]]:
    """Returns what a finding adds to the sums of its audit, by key."""
    usd, bucket = finding["saving_usd"] or Decimal(0), Bucket(finding["bucket"])
    if bucket is Bucket.LOST:
        return [("lost_usd", usd), ("lost_up_to_usd", max(usd, _possible_loss_usd(finding)))]
    return [(f"{bucket.value}_usd", usd)] if bucket is not Bucket.NONE else []


def worst_severity(findings: tuple[FindingDocument, ...]) -> Severity:
    """Returns the severity of a message, which is that of its worst finding."""
    severities = (Severity(finding["severity"]) for finding in findings)
    return max(severities, key=lambda severity: severity.rank, default=Severity.INFO)


def is_postable(finding: FindingDocument) -> bool:
    """True for a standing finding that may be posted and was not reported for an earlier run."""
    return (
        finding["sent_to_channels"] and is_standing(finding) and not finding.get("reported_for_run")
    )


def _is_counted(finding: FindingDocument) -> bool:
    """True for dollars of this run that were not reported earlier and are not only INFO."""
    is_new = not finding.get("reported_for_run") and finding["severity"] != Severity.INFO
    return is_new and _is_own(finding)


def _possible_loss_usd(finding: FindingDocument) -> Decimal:
    """Returns the upper end of a lost range; 0 for any other finding."""
    lost = Bucket(finding["bucket"]) is Bucket.LOST
    return max(finding["saving_range_usd"] or [Decimal(0)]) if lost else Decimal(0)


def _weight(finding: FindingDocument) -> tuple[bool, Decimal, int, str]:
    """Sort key: unknown dollars last; severity and name make the order stable."""
    saving = finding["saving_usd"]
    severity = Severity(finding["severity"])
    usd_at_stake = max(saving or Decimal(0), _possible_loss_usd(finding))
    return saving is None, -usd_at_stake, -severity.rank, finding["rule"]


def should_show_idle(figure: IdleCapacityDocument | None) -> bool:
    """Whether a message mentions the idle hours; `figure` is None if they are not known."""
    if figure is None:
        return False
    if figure["idle"] <= figure["paid"] * _IDLE_MIN_SHARE[figure["unit"]]:
        return False
    if figure["list_usd"] is None:
        return figure["idle"] >= _IDLE_MIN_HOURS[figure["unit"]]
    return figure["list_usd"] - (figure["counted_usd"] or 0) >= _IDLE_MIN_USD


def _cents(amount: Decimal | None) -> Decimal | None:
    """Rounds to the cent: metrics read a second later may add a fraction of one."""
    return None if amount is None else amount.quantize(_CENT, ROUND_HALF_UP)
