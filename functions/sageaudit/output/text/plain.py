"""A card as SNS sends it: subject, plain text, and attributes that subscriptions can filter by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sageaudit.errors import Malformed
from sageaudit.output.text.card import NOBODY, REPEAT, MessageCard, Payload, check_types
from sageaudit.output.text.untrusted import DOTS, middle, plain

SUBJECT = 99
"""SNS takes less than 100 characters, without line breaks; ASCII is safe with every mail reader."""
_LINE = 1000


def message(card: MessageCard, owner_ids: Mapping[str, str] = NOBODY) -> Payload:
    """The arguments of `sns:Publish` for a card, far below its limit of 262,144 bytes."""
    del owner_ids  # e-mail mentions nobody
    return {
        "subject": _within_subject(plain(subject(card), _LINE)),
        "message": _body(card),
        "attributes": dict(card.attributes),
    }


def check(payload: Payload) -> None:
    """Raises Malformed when subject, message or attributes differ from what `message` writes."""
    check_types(payload, {"subject": str, "message": str, "attributes": dict})
    if not all(_is_attribute(value) for value in payload["attributes"].values()):
        raise Malformed("payload", "has an attribute that SNS does not accept")


def shown(payload: Payload) -> Iterator[str]:
    """The lines of an e-mail, after its subject."""
    yield from (f"Subject: {payload['subject']}", "", *payload["message"].split("\n"))


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
    return next(
        (line for line in (card.title, card.headline) if len(line) <= SUBJECT), card.headline
    )


def _body(card: MessageCard) -> str:
    lines = [card.title, *(line.shown for line in card.body)]
    # a mail shows whole URLs: the job's own page leads to its metrics and logs
    urls = [link.url for link in card.links[:1]]
    return "\n".join([*(plain(line, _LINE) for line in lines), *urls]) + "\n"
