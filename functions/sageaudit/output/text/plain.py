"""The message for SNS: subject, plain text, and attributes that subscriptions can filter by."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from typing import TypedDict

from sageaudit.domain.alert.rule import FIRST, Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.errors import Malformed
from sageaudit.output.text.envelope import REPEAT, Payload, check_types
from sageaudit.output.text.idle_capacity import IDLE_LABEL
from sageaudit.output.text.message import Message, message_of
from sageaudit.output.text.notice import counted_findings, worst
from sageaudit.output.text.untrusted import log, middle, plain
from sageaudit.output.text.words import NO_OWNER

SUBJECT = 99
"""SNS takes less than 100 characters, without line breaks; ASCII is safe with every mail reader."""
_NUMBER_LIMIT = Decimal(10**9)
_NUMBER_PLACES = Decimal("0.00001")
_VALUE = 256
_LINE, _FACT = 2000, 300
_FIXES = 8


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
    parts = message_of(document, notify)
    return {
        "subject": subject(parts),
        "message": _body(parts),
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
        "subject": _within_subject(f"{REPEAT}{payload['subject']}", SUBJECT),
        "message": f"{REPEAT}{payload['message']}",
    }


def _is_attribute(part: object) -> bool:
    texts = (part.get("type"), part.get("value")) if isinstance(part, dict) else (None,)
    return all(isinstance(text, str) for text in texts)


def _within_subject(text: str, limit: int) -> str:
    """The text in ASCII, cut in the middle to `limit` characters."""
    return middle(text, limit).replace("…", "~")


def subject(parts: Message) -> str:
    """`HIGH $0.51 of $0.66 (77%) was avoidable - name`; a long name is cut in the middle."""
    news = f"{parts.lead} {parts.headline} - "
    tail = f" {parts.short_tail}" if parts.short_tail else ""
    safe = plain(parts.name, _LINE).encode("ascii", "replace").decode("ascii")
    name = _within_subject(safe, max(SUBJECT - len(news) - len(tail), 0))
    return f"{news}{name}{tail}"[:SUBJECT].rstrip()


def attributes(document: AuditDocument, notify: Notify = FIRST) -> dict[str, Attribute]:
    """Message attributes for subscription filters; an unknown value has no attribute."""
    findings = counted_findings(document)
    job = document["job"]
    texts = {
        "severity": worst(findings),
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


def _body(parts: Message) -> str:
    tail = f" {_line(parts.tail)}" if parts.tail else ""
    lines = [
        f"{parts.lead}{parts.gap}{parts.headline} - {_line(parts.name)}{tail}",
        "",
        *_paragraph(*parts.before or ("", "")),
        *_paragraph("Why", parts.why or ""),
        *_fix(parts),
        *_paragraph(IDLE_LABEL, parts.idle_capacity or ""),
        *(f"{_line(label)}: {plain(value, _FACT)}" for label, value in parts.facts),
        *([""] if parts.facts else []),
        f"Owner: {_line(parts.owner) if parts.owner else NO_OWNER}",
        *(f"{link.word}: {link.url}" for link in parts.links),
        *([f"Full audit: {_line(parts.again)}"] if parts.again else []),
        "",
        *(_line(note) for note in parts.context),
    ]
    return "\n".join(lines) + "\n"


def _paragraph(label: str, text: str) -> list[str]:
    return [f"{label}: {_line(text)}", ""] if text else []


def _fix(parts: Message) -> list[str]:
    if parts.saving is None:
        return []
    lines = [f"Fix: {parts.saving}"]
    for line, old in parts.fix[:_FIXES]:
        lines += [f"  {_line(line)}", f"    {_line(old)}"]
    if len(parts.fix) > _FIXES:
        lines.append(f"  +{len(parts.fix) - _FIXES} more")
    if parts.caveat:
        lines.append(f"Caveat: {_line(parts.caveat)}")
    return [*lines, ""]


def _line(text: str) -> str:
    return plain(text, _LINE)


def _number(amount: Decimal) -> str:
    """A number as SNS can filter it: within ±1,000,000,000, with at most five decimals."""
    bounded = max(min(amount, _NUMBER_LIMIT), -_NUMBER_LIMIT)
    return f"{bounded.quantize(_NUMBER_PLACES, ROUND_HALF_UP).normalize():f}"
