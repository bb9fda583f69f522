"""Builders of sent alerts, open recommendations and message cards."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sageaudit.domain.advice.advice import FamilyRecommendation, State
from sageaudit.domain.advice.totals import Month
from sageaudit.domain.alert.alert import Alert, AlertDecision, AlertKind
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text.alert_card import alert_card
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation
from tests.fakes.documents import ACCOUNT, REGION

NINE = datetime(2026, 5, 20, 9, 2, tzinfo=UTC)


def alert(
    figures: AlertFigures, version: int = 1, at: datetime = NINE, run: str = "r", **more: Any
) -> Alert:
    """Returns a sent alert; by default the first one about a run."""
    return Alert(
        run,
        **{"family": "f", "kind": AlertKind.FIRST} | more,
        version=version,
        figures=figures,
        at=at,
    )


_MONTH = Month(AmountKind.COUNTED, Decimal(540), Decimal(540), 12, occasions=12)


def first_decision(**more: Any) -> AlertDecision:
    """Returns the decision for a first message about 12 runs in a month, as `notify` makes it."""
    return AlertDecision(**({"month": _MONTH, "saves": _MONTH} | more))


def document_card(
    document: AuditDocument,
    decision: AlertDecision | None = None,
    place: HistoryLocation = DEFAULT_HISTORY,
) -> MessageCard:
    """Returns the message card that `notify` writes for a document."""
    return alert_card(MessageAudit.parse(document), decision or first_decision(), place)


def open_advice(
    rule: str = "gpu-underused", worth: AmountKind = AmountKind.COUNTED
) -> FamilyRecommendation:
    """Returns an open recommendation of a rule for the family of these audits."""
    at = datetime(2026, 5, 20, 13, tzinfo=UTC)
    return FamilyRecommendation(
        id="abcdefgh",
        account=ACCOUNT,
        region=REGION,
        family="train-bert",
        owner="anna",
        rule=rule,
        parameter="",
        old=None,
        new="",
        state=State.OPEN,
        severity=Severity.LOW,
        amount_kind=worth,
        amount=None,
        occurrences=(),
        all_amounts=(None,),
        appearances=1,
        first_at=at,
        since=at,
        last_at=at,
    )
