"""An audit as a message needs it: what of it counts, and its figures; pure.

Every audit is stored. A message is sent when someone can act on it and enough money is at stake. A
job that could not be judged gets none by itself: nobody knows that money is at stake.
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
"""Idle list value beside what is counted above, from which it is shown: as much as makes a finding
medium by default. Our choice."""
_IDLE_MIN_HOURS: dict[Unit, Decimal] = {"gpu_hours": Decimal(10), "vcpu_hours": Decimal(200)}
"""The same where nothing is priced: about $10 at the cheapest rates of either. Our choice."""
_IDLE_MIN_SHARE: dict[Unit, Decimal] = {"gpu_hours": Decimal("0.2"), "vcpu_hours": Decimal("0.5")}
"""Share of the paid hours up to which a job is healthy. A vCPU is half a core, so half of the vCPUs
can be all of the cores. Our choice."""
_CENT = Decimal("0.01")
_REGRESSION = "cost-regression"
MIN_CHANGE_USD = Decimal(1)
MIN_CHANGE_SHARE = Decimal("0.1")
"""A figure is corrected when it changed by $1 and by a tenth. Metrics that come late
move figures by a few percent, and nobody decides otherwise for that; a tenth is what a reader may
have acted on. Our choice."""


class AlertFigures(Struct, frozen=True):
    """The figures of a message: USD to the cent, as they are shown; None is unknown.

    `severity` is INFO where no finding counts. `possible_loss_usd`: what may be lost beyond
    `lost_usd`.
    `accepted_usd` are the dollars that a policy or tag accepts: no message shows them.
    """

    severity: Severity
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    possible_loss_usd: Decimal = Decimal(0)
    accepted_usd: Decimal = Decimal(0)

    @property
    def usd(self) -> Decimal | None:
        """What is certain: avoidable and lost; None where neither is known."""
        if self.avoidable_usd is None and self.lost_usd is None:
            return None
        return (self.avoidable_usd or Decimal(0)) + (self.lost_usd or Decimal(0))

    @property
    def at_stake_usd(self) -> Decimal:
        """What is certain, and what may be lost."""
        return (self.usd or Decimal(0)) + self.possible_loss_usd

    @property
    def has_dollars(self) -> bool:
        """Whether a finding counts; else the message is about a trial, or takes one back."""
        return self.severity is not Severity.INFO

    @property
    def is_standing(self) -> bool:
        """False where everything was taken back: then it silences nobody."""
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
    """One version of an audit as a decision and a card need it: its document, parsed once.

    `counted` are the findings that count for a message, and `trials` those that are worth a trial;
    `own` is what counts of this run alone, also if an earlier run had it. `regressions` say that
    the run cost more than comparable runs. All lists have the largest saving first. `advised` is
    what the run is recommended. `shows_idle`: whether its idle hours are worth a line.
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
        """Raises KeyError, TypeError or ValueError for a document of another form."""
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
        """Whether an audited job launched it, whose messages have its dollars."""
        return rollup_from_arn(self.job["parent"]) is not None

    def without_silenced(
        self,
        recommendations: Mapping[str, FamilyRecommendation],
        run: AuditSummary,
        *,
        is_worse: bool = False,
    ) -> MessageAudit:
        """The same without what no message about the run includes now, as if the policy accepted
        it. `advices` are by id. What is silenced is included if it `is_worse`.
        """

        def silent(advised: Recommendation) -> FamilyRecommendation | None:
            advice = recommendations.get(
                recommendation_id(run.account, run.region, run.family, advised)
            )
            if advice is None or advice.is_open or (is_worse and advice.is_sent_if_worse):
                return None
            is_over = advice.state is State.CLOSED and advice.comparison is None
            return None if is_over else advice

        rest = _exempt_silenced(self.document, silent)
        return self if rest is self.document else self.parse(rest)


def permanent_suppression_reason(audit: MessageAudit) -> str | None:
    """Why no message is sent about this audit, whatever its figures; None where they decide."""
    if audit.document["unauditable"] is not None:
        return "unauditable"
    launched_by = rollup_from_arn(audit.job["parent"])
    return None if launched_by is None else f"child of {launched_by.kind.spec.label_with_article}"


def _accepted_usd(findings: Sequence[FindingDocument]) -> Decimal:
    """What the exempt findings would save: true, and accepted by a policy or a tag."""
    accepted = (
        finding["saving_alone_usd"] or Decimal(0)
        for finding in findings
        if finding["exempt"] and Bucket(finding["bucket"]).is_counted
    )
    return sum(accepted, Decimal(0))


def counted_findings(findings: Sequence[FindingDocument]) -> tuple[FindingDocument, ...]:
    """The findings that count for a message, the largest saving first."""
    return tuple(sorted(filter(_is_counted, findings), key=_weight))


def read_recommendations(document: AuditDocument) -> tuple[Recommendation, ...]:
    """What an audit advises, what is worth most first."""
    return largest_recommendations(
        one for one in map(recommendation_from_finding, document["findings"]) if one is not None
    )


def _is_trial(finding: FindingDocument) -> bool:
    """True for a finding that is worth a trial; of an earlier run or not."""
    possible = Bucket(finding["bucket"]) is Bucket.POSSIBLE
    return possible and finding["sent_to_channels"] and is_standing(finding)


def _is_own(finding: FindingDocument) -> bool:
    """True for dollars of this run alone, also if an earlier run had the finding. Unknown savings
    count too; a saving of 0 does not.

    A run that may be lost counts, although what is certain of it is 0.
    """
    return (
        finding["sent_to_channels"]
        and is_standing(finding)
        and Bucket(finding["bucket"]).is_counted
        and (finding["saving_usd"] != 0 or _possible_loss_usd(finding) > 0)
    )


def is_regression(finding: FindingDocument) -> bool:
    """Whether it says that the run cost more than its like, and not that this has ended."""
    return finding["rule"] == _REGRESSION and "above_median_usd" in finding["evidence"]


def _exempt_silenced(
    document: AuditDocument,
    silencing_recommendation: Callable[[Recommendation], FamilyRecommendation | None],
) -> AuditDocument:
    """The audit with the findings exempt whose advice is silent: as if the policy accepted them.

    Their dollars leave the sums of avoidable and lost ones. Without one it is the same document.
    """
    whole: dict[str, Any] = {**document, "findings": []}
    for finding in document["findings"]:
        advised = None if finding["exempt"] else recommendation_from_finding(finding)
        advice = silencing_recommendation(advised) if advised and is_standing(finding) else None
        if advice is None:
            whole["findings"].append(finding)
            continue
        whole["findings"].append({**finding, "exempt": _silence_exemption(advice)})
        for key, usd in _sum_contributions(finding):
            if whole[key] is not None:
                whole[key] = max(whole[key] - usd, Decimal(0))
    silenced = whole["findings"] != document["findings"]
    return cast("AuditDocument", whole) if silenced else document


def _silence_exemption(advice: FamilyRecommendation) -> ExemptDocument:
    known = advice.decision
    until = known.until.isoformat() if known and known.until else None
    return {
        "by": known.by if known else "its runs",
        "until": until,
        "reason": (known.reason if known else None) or advice.state_label,
    }


def _sum_contributions(finding: FindingDocument) -> list[tuple[str, Decimal]]:
    """What a finding adds to the sums of its audit."""
    usd, bucket = finding["saving_usd"] or Decimal(0), Bucket(finding["bucket"])
    if bucket is Bucket.LOST:
        return [("lost_usd", usd), ("lost_up_to_usd", max(usd, _possible_loss_usd(finding)))]
    return [(f"{bucket.value}_usd", usd)] if bucket is not Bucket.NONE else []


def worst_severity(findings: tuple[FindingDocument, ...]) -> Severity:
    """The severity of a message: that of its worst finding."""
    severities = (Severity(finding["severity"]) for finding in findings)
    return max(severities, key=lambda severity: severity.rank, default=Severity.INFO)


def is_postable(finding: FindingDocument) -> bool:
    """True for a finding that stands and may be posted, and was not shown for an earlier run."""
    return (
        finding["sent_to_channels"] and is_standing(finding) and not finding.get("reported_for_run")
    )


def _is_counted(finding: FindingDocument) -> bool:
    """True for dollars of this run that were not shown for an earlier one, and are not a trifle."""
    is_new = not finding.get("reported_for_run") and finding["severity"] != Severity.INFO
    return is_new and _is_own(finding)


def _possible_loss_usd(finding: FindingDocument) -> Decimal:
    """The upper end of a lost range; 0 for any other finding."""
    lost = Bucket(finding["bucket"]) is Bucket.LOST
    return max(finding["saving_range_usd"] or [Decimal(0)]) if lost else Decimal(0)


def _weight(finding: FindingDocument) -> tuple[bool, Decimal, int, str]:
    """Sort key: unknown dollars last; severity and name make the order stable."""
    saving = finding["saving_usd"]
    severity = Severity(finding["severity"])
    usd_at_stake = max(saving or Decimal(0), _possible_loss_usd(finding))
    return saving is None, -usd_at_stake, -severity.rank, finding["rule"]


def should_show_idle(figure: IdleCapacityDocument | None) -> bool:
    """Whether the idle hours are worth a sentence at all; None: they are not known."""
    if figure is None:
        return False
    if figure["idle"] <= figure["paid"] * _IDLE_MIN_SHARE[figure["unit"]]:
        return False
    if figure["list_usd"] is None:
        return figure["idle"] >= _IDLE_MIN_HOURS[figure["unit"]]
    return figure["list_usd"] - (figure["counted_usd"] or 0) >= _IDLE_MIN_USD


def _cents(amount: Decimal | None) -> Decimal | None:
    """As it is shown: metrics read a second later may add a fraction of a cent."""
    return None if amount is None else amount.quantize(_CENT, ROUND_HALF_UP)
