"""The message for SNS: subject, plain text, and attributes that subscriptions can filter by."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from typing import TypedDict

from sageaudit.domain.alert.audit_figures import counted_findings, message_severity
from sageaudit.domain.alert.rule import FIRST, Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.errors import Malformed
from sageaudit.output.text.card import MessageCard, card_of
from sageaudit.output.text.envelope import REPEAT, Payload, check_types
from sageaudit.output.text.untrusted import DOTS, log, middle, plain

SUBJECT = 99
"""SNS takes less than 100 characters, without line breaks; ASCII is safe with every mail reader."""
_NUMBER_LIMIT = Decimal(10**9)
_NUMBER_PLACES = Decimal("0.00001")
_VALUE = 256
_LINE = 1000


class Attribute(TypedDict):
    """A message attribute; `type` is String, Number or String.Array."""

    type: str
    value: str


class PlainMessage(TypedDict):
    """The arguments of `sns:Publish`."""

    subject: str
    message: str
    attributes: dict[str, Attribute]


def message(document: AuditDocument, *, notify: Notify = FIRST) -> PlainMessage:
    """The message of an audit for SNS; far below its limit of 262,144 bytes."""
    card = card_of(document, notify)
    return {
        "subject": _within_subject(plain(subject(card), _LINE)),
        "message": _body(card),
        "attributes": attributes(document, notify),
    }


def check(payload: Payload) -> None:
    """Raises Malformed when subject, message or attributes differ from what `message` writes."""
    check_types(payload, {"subject": str, "message": str, "attributes": dict})
    if not all(_is_attribute(value) for value in payload["attributes"].values()):
        raise Malformed("payload", "has an attribute that SNS does not accept")


def as_repeat(payload: Payload) -> Payload:
    """The payload, marked as a possible repeat in the subject and in the first line."""
    return {
        **payload,
        "subject": _within_subject(f"{REPEAT}{payload['subject']}"),
        "message": f"{REPEAT}{payload['message']}",
    }


def _is_attribute(part: object) -> bool:
    texts = (part.get("type"), part.get("value")) if isinstance(part, dict) else (None,)
    return all(isinstance(text, str) for text in texts)


def _within_subject(text: str) -> str:
    """The text in ASCII, cut in the middle."""
    return middle(text, SUBJECT).replace(DOTS, "~").encode("ascii", "replace").decode("ascii")


def subject(card: MessageCard) -> str:
    """The first line; without what to do, where it is too long, and cut in the middle at last."""
    return next((line for line in (card.title, card.news) if len(line) <= SUBJECT), card.news)


def attributes(document: AuditDocument, notify: Notify = FIRST) -> dict[str, Attribute]:
    """Message attributes for subscription filters; an unknown value has no attribute."""
    findings = counted_findings(document)
    job = document["job"]
    texts = {
        "severity": message_severity(document, notify),
        "job_type": job["kind"],
        "owner": job["owner"],
        "account": job["account"],
        "region": job["region"],
        "judged": document["judged"],
        "message_kind": notify.kind,
    }
    most = document["lost_up_to_usd"]
    numbers = {
        "avoidable_usd": document["avoidable_usd"],
        "lost_usd": document["lost_usd"],
        "lost_up_to_usd": most if most != document["lost_usd"] else None,
    }
    ids = json.dumps([plain(finding["id"], _VALUE) for finding in findings])
    result: dict[str, Attribute] = {"rule_ids": {"type": "String.Array", "value": ids}}
    for name, text in texts.items():
        value = log(text or "", _VALUE)
        if value:
            result[name] = {"type": "String", "value": value}
    for name, amount in numbers.items():
        if amount is not None:
            result[name] = {"type": "Number", "value": _number(amount)}
    return result


def _body(card: MessageCard) -> str:
    lines = [
        card.title,
        *(line.shown for line in card.lines),
        f"{card.owner_shown}, {card.place}",
        *([f"Rule: sageaudit rules {card.rule}"] if card.rule else []),
        *(line.shown for line in card.more),
    ]
    # a mail shows whole URLs: the job's own page leads to its metrics and logs
    urls = [link.url for link in card.links[:1]]
    return "\n".join([*(plain(line, _LINE) for line in lines), *urls]) + "\n"


def _number(amount: Decimal) -> str:
    """A number as SNS can filter it: within ±1,000,000,000, with at most five decimals."""
    bounded = max(min(amount, _NUMBER_LIMIT), -_NUMBER_LIMIT)
    return f"{bounded.quantize(_NUMBER_PLACES, ROUND_HALF_UP).normalize():f}"
