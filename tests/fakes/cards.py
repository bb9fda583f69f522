"""The card of a message, from the audit's whole document."""

from decimal import Decimal
from typing import Any

from sageaudit.domain.advice.totals import Month
from sageaudit.domain.alert.alert import AlertDecision
from sageaudit.domain.alert.audit_figures import MessageAudit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import Worth
from sageaudit.output.text.alert_card import card_of
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace

_MONTH = Month(Worth.COUNTED, Decimal(540), Decimal(540), 12, occasions=12)


def decided(**more: Any) -> AlertDecision:
    """A first message about 12 runs of a month, with its details as `notify` sets them."""
    return AlertDecision(**({"month": _MONTH, "saves": _MONTH} | more))


def document_card(
    document: AuditDocument,
    decision: AlertDecision | None = None,
    place: HistoryPlace = OWN_HISTORY,
) -> MessageCard:
    """As `notify` writes it, from the parsed document; `decided()` without a decision."""
    return card_of(MessageAudit.parse(document), decision or decided(), place)
