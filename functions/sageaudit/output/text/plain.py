"""A card as SNS sends it: subject, plain text, and attributes that subscriptions can filter by."""

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
"""SNS takes less than 100 characters, without line breaks; ASCII is safe with every mail reader."""
_LINE = 1000


def make_payload(card: MessageCard, owner_ids: Mapping[str, str] = NO_OWNER_IDS) -> Payload:
    """The arguments of `sns:Publish` for a card, far below its limit of 262,144 bytes."""
    del owner_ids  # e-mail mentions nobody
    return {
        "subject": _within_subject(for_plain_text(subject_line(card), _LINE)),
        "message": _body(card),
        "attributes": dict(card.attributes),
    }


def check_payload(payload: Payload) -> None:
    """Raises MalformedData if subject, message or attributes differ from what `message` writes."""
    check_key_types(payload, {"subject": str, "message": str, "attributes": dict})
    if not all(_is_attribute(value) for value in payload["attributes"].values()):
        raise MalformedData("payload", "has an attribute that SNS does not accept")


def text_lines(payload: Payload) -> Iterator[str]:
    """The lines of an e-mail, after its subject."""
    yield from (f"Subject: {payload['subject']}", "", *payload["message"].split("\n"))


def mark_as_repeat(payload: Payload) -> Payload:
    """The payload, marked as a possible repeat in the subject and in the first line."""
    return {
        **payload,
        "subject": _within_subject(f"{REPEAT_PREFIX}{payload['subject']}"),
        "message": f"{REPEAT_PREFIX}{payload['message']}",
    }


def _is_attribute(part: object) -> bool:
    texts = (part.get("type"), part.get("value")) if isinstance(part, dict) else (None,)
    return all(isinstance(text, str) for text in texts)


def _within_subject(text: str) -> str:
    """The text in ASCII, cut in the middle."""
    return (
        cut_middle(text, MAX_SUBJECT_LENGTH)
        .replace(ELLIPSIS, "~")
        .encode("ascii", "replace")
        .decode("ascii")
    )


def subject_line(card: MessageCard) -> str:
    """The first line; without what to do, where it is too long, and cut in the middle at last."""
    return next(
        (line for line in (card.title, card.headline) if len(line) <= MAX_SUBJECT_LENGTH),
        card.headline,
    )


def _body(card: MessageCard) -> str:
    lines = [card.title, *(line.labelled_text for line in card.body)]
    # a mail shows whole URLs: the job's own page leads to its metrics and logs
    urls = [link.url for link in card.links[:1]]
    return "\n".join([*(for_plain_text(line, _LINE) for line in lines), *urls]) + "\n"
