"""What subscriptions to a topic can filter messages by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import TypedDict

from sageaudit.domain.alert.audit_figures import counted_findings, message_severity
from sageaudit.domain.alert.rule import FIRST, AlertDecision
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.text.untrusted import log, plain

_NUMBER_LIMIT = Decimal(10**9)
_NUMBER_PLACES = Decimal("0.00001")
_VALUE = 256


class Attribute(TypedDict):
    """A message attribute; `type` is String, Number or String.Array."""

    type: str
    value: str


def attributes_of(document: AuditDocument, decision: AlertDecision = FIRST) -> dict[str, Attribute]:
    """Message attributes for subscription filters; an unknown value has no attribute."""
    findings = counted_findings(document)
    job = document["job"]
    texts = {
        "severity": message_severity(document, decision),
        "job_type": job["kind"],
        "owner": job["owner"],
        "account": job["account"],
        "region": job["region"],
        "judged": document["judged"],
        "message_kind": decision.kind,
    }
    most = document["lost_up_to_usd"]
    numbers = {
        "avoidable_usd": document["avoidable_usd"],
        "lost_usd": document["lost_usd"],
        "lost_up_to_usd": most if most != document["lost_usd"] else None,
    }
    ids = json.dumps([plain(finding["id"], _VALUE) for finding in findings])
    result: dict[str, Attribute] = {"rule_ids": {"type": "String.Array", "value": ids}}
    result |= text_attributes(texts)
    for name, amount in numbers.items():
        if amount is not None:
            result[name] = {"type": "Number", "value": _number(amount)}
    return result


def text_attributes(texts: Mapping[str, str | None]) -> dict[str, Attribute]:
    """Those of texts; an unknown or empty one has none."""
    values = {name: log(text or "", _VALUE) for name, text in texts.items()}
    return {name: {"type": "String", "value": value} for name, value in values.items() if value}


def _number(amount: Decimal) -> str:
    """A number as SNS can filter it: within ±1,000,000,000, with at most five decimals."""
    bounded = max(min(amount, _NUMBER_LIMIT), -_NUMBER_LIMIT)
    return f"{bounded.quantize(_NUMBER_PLACES, ROUND_HALF_UP).normalize():f}"
