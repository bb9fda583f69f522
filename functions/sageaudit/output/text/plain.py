"""Makes an SNS message from a card: subject, plain text, and attributes for filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sageaudit.errors import MalformedData
from sageaudit.output.text.card import (
    NO_OWNER_IDS,
    REPEAT_PREFIX,
    MessageCard,
    Payload,
    check_key_types,
)
from sageaudit.output.text.untrusted import ELLIPSIS, cut_middle, for_plain_text

MAX_SUBJECT_LENGTH = 99
"""SNS requires fewer than 100 characters."""
_MAX_LINE_LENGTH = 1000


def make_payload(card: MessageCard, owner_ids: Mapping[str, str] = NO_OWNER_IDS) -> Payload:
    """Returns the arguments of `sns:Publish`. They are far below SNS's limit of 262,144 bytes."""
    del owner_ids  # e-mail mentions nobody
    return {
        "subject": _fit_subject(for_plain_text(subject_line(card), _MAX_LINE_LENGTH)),
        "message": _body(card),
        "attributes": dict(card.attributes),
    }


def check_payload(payload: Payload) -> None:
    """Raises MalformedData if the subject, the message or the attributes have a wrong type."""
    check_key_types(payload, {"subject": str, "message": str, "attributes": dict})
    if not all(_is_attribute(value) for value in payload["attributes"].values()):
        raise MalformedData("payload", "has an attribute that SNS does not accept")


def text_lines(payload: Payload) -> Iterator[str]:
    """Yields the lines of an e-mail, the subject first."""
    yield from (f"Subject: {payload['subject']}", "", *payload["message"].split("\n"))


def mark_as_repeat(payload: Payload) -> Payload:
    """Returns the payload with `REPEAT_PREFIX` before its subject and its text."""
    return {
        **payload,
        "subject": _fit_subject(f"{REPEAT_PREFIX}{payload['subject']}"),
        "message": f"{REPEAT_PREFIX}{payload['message']}",
    }


def _is_attribute(value: object) -> bool:
    texts = (value.get("type"), value.get("value")) if isinstance(value, dict) else (None,)
    return all(isinstance(text, str) for text in texts)


def _fit_subject(text: str) -> str:
    """Returns the text as a subject in ASCII, which every mail reader shows. A long text is cut."""
    return (
        cut_middle(text, MAX_SUBJECT_LENGTH)
        .replace(ELLIPSIS, "~")
        .encode("ascii", "replace")
        .decode("ascii")
    )


def subject_line(card: MessageCard) -> str:
    """Returns the card's title, or only its headline if the title is too long for a subject."""
    return next(
        (text for text in (card.title, card.headline) if len(text) <= MAX_SUBJECT_LENGTH),
        card.headline,
    )


def _body(card: MessageCard) -> str:
    lines = [card.title, *(line.labelled_text for line in card.body)]
    # a mail shows whole URLs, so it has only the job's page, which links to metrics and logs
    urls = [link.url for link in card.links[:1]]
    return "\n".join([*(for_plain_text(line, _MAX_LINE_LENGTH) for line in lines), *urls]) + "\n"
