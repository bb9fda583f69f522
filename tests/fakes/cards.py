"""The card of a message, from the audit's whole document."""

from sageaudit.domain.alert.alert import FIRST, AlertDecision
from sageaudit.domain.alert.audit_figures import MessageAudit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.text.alert_card import card_of
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace


def document_card(
    document: AuditDocument, decision: AlertDecision = FIRST, place: HistoryPlace = OWN_HISTORY
) -> MessageCard:
    """As `notify` writes it, from the parsed document."""
    return card_of(MessageAudit.parse(document), decision, place)
