"""What a message is: a card that fits a phone, and the notice that carries it to `deliver`.

Beside them: the card of what was held in an hour, and the attributes by which subscriptions to a
topic filter messages. A card has at most `ROWS` rows of `WIDTH` characters, as on a phone. Its
texts contain names and reasons as they came: each channel must pass them through a function of
`untrusted` before it shows them. A notice is one JSON object with one channel's payload, the SQS
message from `notify` to `deliver`.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple, TypedDict

from msgspec import Struct, field

from sageaudit.domain.alert.alert import FIRST, AlertDecision, ChannelHour, group_of
from sageaudit.domain.alert.audit_figures import MessageAudit
from sageaudit.errors import Malformed
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace, Link
from sageaudit.output.text.untrusted import DOTS, log, middle, plain, private, terminal
from sageaudit.output.text.words import NO_OWNER, counted
from sageaudit.structs import replace

WIDTH = 40
ROWS = 18
BETWEEN = "  "
"""Between the links."""
FAMILY = 30
CODE = 120
"""Characters of a family's name and of a line to paste."""
COMMAND = 400
"""Characters of a command to copy: the longest names of a job and a table are not cut."""
SCHEMA = 1
"""Of a notice's body."""
REPEAT = "(possible repeat) "
"""The prefix of a payload that may have been posted before."""
_TEXT = 1000
_CLEAR = 8
"""Letters from which a parameter's name alone is clear; S3Uri is not."""
_NUMBER_LIMIT = Decimal(10**9)
_NUMBER_PLACES = Decimal("0.00001")
_VALUE = 256
"""Characters of an attribute."""
_LONGEST_ID = 2_000
_HOUR = "%Y-%m-%dT%H"


class Attribute(TypedDict):
    """A message attribute; `type` is String, Number or String.Array."""

    type: str
    value: str


_HELD: Mapping[str, Attribute] = {"message_kind": {"type": "String", "value": "held"}}


class CardLine(NamedTuple):
    """A text after a `label`; `code` is to copy. Where there is no room, the highest `spare` is
    left out first; 0 stays.
    """

    text: str
    label: str = ""
    code: bool = False
    spare: int = 0

    @property
    def shown(self) -> str:
        """The text after its label."""
        return f"{self.label}: {self.text}".strip() if self.label else self.text


class MessageCard(Struct, frozen=True):
    """A card's parts in their order. Its first line is `headline` and, after a colon, `step`, which
    may be empty. `owner` and `place` share a line, and the links one with the rule's name; a card
    that is about no single run has no `place`. Subscriptions can filter by `attributes`.
    """

    headline: str
    step: str = ""
    lines: tuple[CardLine, ...] = ()
    owner: str | None = None
    place: str = ""
    links: tuple[Link, ...] = ()
    rule: str = ""
    more: tuple[CardLine, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def owner_shown(self) -> str:
        """The owner's name, cut so that one row has it and the place, if that leaves enough."""
        room = max(WIDTH - len(self.place) - len(", "), len(NO_OWNER))
        return middle(terminal(self.owner or NO_OWNER), room)

    @property
    def whose(self) -> str:
        """The owner and the place; empty where the card has no place."""
        return f"{self.owner_shown}, {self.place}" if self.place else ""

    @property
    def title(self) -> str:
        """The first line."""
        return f"{self.headline}: {self.step}" if self.step else self.headline

    @property
    def body(self) -> tuple[CardLine, ...]:
        """All lines below the title, for channels that show a line for each."""
        whose = [CardLine(self.whose)] if self.whose else []
        rule = [CardLine(f"sageaudit rules {self.rule}", "Rule", code=True)] if self.rule else []
        return (*self.lines, *whose, *rule, *self.more)


def rows(text: str) -> int:
    """How many rows of a phone a text takes."""
    return len(textwrap.wrap(plain(text, _TEXT), WIDTH)) or 1


def fitted(card: MessageCard, most: int) -> MessageCard:
    """The card in so many rows: what can be spared goes first, then the longest texts are cut."""
    lines = [*card.lines, *card.more]
    foot = BETWEEN.join([*(one.word for one in card.links), card.rule])
    room = most - sum(rows(text) for text in (card.title, card.whose, foot) if text)
    while lines and (over := sum(rows(one.shown) for one in lines) - room) > 0:
        least = max(lines, key=lambda one: one.spare)
        if not least.spare:
            break
        lines.remove(least)
    for line in sorted(lines, key=lambda one: -rows(one.shown)):
        if over > 0 and line.text and not line.code:
            taken = rows(line.shown)
            keep = max(taken - over, 1)
            lines[lines.index(line)] = line._replace(text=_cut(line, keep))
            over -= taken - keep
    last = sum(one in card.more for one in lines)
    at = len(lines) - last
    return replace(card, lines=tuple(lines[:at]), more=tuple(lines[at:]))


def _cut(line: CardLine, keep: int) -> str:
    """The text in so many rows, as an e-mail shows it."""
    shown = plain(line.shown, _TEXT)
    wrapped = textwrap.wrap(shown, WIDTH, max_lines=keep, placeholder=f" {DOTS}")
    return " ".join(wrapped).removeprefix(f"{line.label}: ")


def held_card(hour: ChannelHour, place: HistoryPlace = OWN_HISTORY) -> MessageCard:
    """How many were held, and the dearest of them; `place`: the history that has them all."""
    others, since = hour.held - len(hour.dearest), f"{hour.began_at:%Y-%m-%d}"
    return MessageCard(
        headline=f"And {counted(hour.held, 'more message')} since {hour.began_at:%H:%M} UTC",
        lines=(
            *(CardLine(headline) for headline, _ in hour.dearest),
            *([CardLine(f"and {counted(others, 'other')}")] if others else []),
        ),
        attributes=_HELD,
        more=(
            CardLine(place.command("advice"), "All open advices", code=True),
            CardLine(place.command("history", "--since", since), "All jobs", code=True),
        ),
    )


def short_name(family: str, *, with_group: bool = True) -> str:
    """The last part of a family's name; of a step, with its pipeline's."""
    parents = (group_of(family) if with_group else family).rpartition("/")[0]
    return middle(terminal(family.removeprefix(f"{parents}/")), FAMILY)


def subject_name(family: str) -> str:
    """The name of what a family's messages are about: of a step, that of its pipeline."""
    return short_name(group_of(family))


def line_to_paste(parameter: str, value: str) -> str:
    """The same of an advice, whose value is text."""
    line = f"{short_path(parameter, len(f'{parameter} = {value}'))} = {value}"
    return middle(private(line), CODE)


def short_path(parameter: str, length: int) -> str:
    """The parameter's name alone where the line would be too long, and the name says enough."""
    path, _, name = parameter.rpartition(".")
    return parameter if length <= WIDTH or "[" in path or len(name) < _CLEAR else name


def attributes_of(audit: MessageAudit, decision: AlertDecision = FIRST) -> dict[str, Attribute]:
    """Message attributes for subscription filters; an unknown value has no attribute."""
    document, job = audit.document, audit.job
    texts = {
        "month_severity": decision.month_severity,
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
    ids = json.dumps([plain(finding["id"], _VALUE) for finding in audit.counted])
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


Payload = dict[str, Any]
NOBODY: Mapping[str, str] = {}
Writer = Callable[[MessageCard, Mapping[str, str]], Payload]
"""What one channel posts for a card, with the ids of owners to mention, within its size limits."""
Check = Callable[[Payload], None]
"""Raises Malformed, naming the key, for a payload that its channel cannot post."""
NO_CHECKS: Mapping[str, Check] = {}


class Notice(Struct, frozen=True):
    """A payload that one channel must post.

    With `held_hour`, it stands for the messages held in the hour that began then: its payload is
    written after that hour.
    """

    notice_id: str
    channel: str
    payload: Payload
    held_hour: datetime | None = None


def to_body(notice: Notice) -> str:
    """The message body: JSON in ASCII, because SQS refuses some Unicode characters."""
    held = {} if notice.held_hour is None else {"held_hour": f"{notice.held_hour:{_HOUR}}"}
    return json.dumps(
        {
            "schema": SCHEMA,
            "notice_id": notice.notice_id,
            "channel": notice.channel,
            "payload": notice.payload,
            **held,
        }
    )


def read_body(body: str, checks: Mapping[str, Check] = NO_CHECKS) -> Notice:
    """Parses a message body. Raises Malformed.

    `checks`: by channel name, its payload check; of another channel any payload is taken.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("body", "is not JSON") from error
    _need(isinstance(message, dict), "body", "is not an object")
    _need(message.get("schema") == SCHEMA, "schema", f"is not {SCHEMA}")
    channel, payload = message.get("channel"), message.get("payload")
    _need(isinstance(channel, str), "channel", "is not a string")
    notice_id = message.get("notice_id")
    _need(
        isinstance(notice_id, str)
        and len(notice_id) <= _LONGEST_ID
        and notice_id.endswith(f"|{channel}"),
        "notice_id",
        "is not an audit's version followed by the channel",
    )
    _need(isinstance(payload, dict), "payload", "is not an object")
    held_hour = _hour(message["held_hour"]) if "held_hour" in message else None
    if held_hour is None and channel in checks:
        checks[channel](payload)
    return Notice(notice_id, channel, payload, held_hour)


def check_types(payload: Payload, types: Mapping[str, type]) -> None:
    """Raises Malformed for the first key that is absent or has another type."""
    for key, kind in types.items():
        _need(isinstance(payload.get(key), kind), f"payload.{key}", f"is not a {kind.__name__}")


def _need(holds: bool, key: str, reason: str) -> None:
    if not holds:
        raise Malformed(key, reason)


def _hour(text: object) -> datetime:
    try:
        return datetime.strptime(str(text), _HOUR).replace(tzinfo=UTC)
    except ValueError as error:
        raise Malformed("held_hour", "is not an hour") from error
