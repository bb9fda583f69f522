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

from sageaudit.domain.alert.alert import FIRST_ALERT, AlertDecision, ChannelHour, alert_subject
from sageaudit.domain.alert.audit_figures import MessageAudit
from sageaudit.errors import MalformedData
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation, Link
from sageaudit.output.text.untrusted import (
    ELLIPSIS,
    cut_middle,
    for_log,
    for_plain_text,
    for_terminal,
    without_paths,
)
from sageaudit.output.text.words import NO_OWNER_LABEL, count_text
from sageaudit.structs import replace

ROW_WIDTH = 40
MAX_ROWS = 18
SEPARATOR = "  "
"""Between the links."""
MAX_FAMILY_LENGTH = 30
MAX_CODE_LENGTH = 120
"""Characters of a family's name and of a line to paste."""
MAX_COMMAND_LENGTH = 400
"""Characters of a command to copy: the longest names of a job and a table are not cut."""
SCHEMA = 1
"""Of a notice's body."""
REPEAT_PREFIX = "(possible repeat) "
"""The prefix of a payload that may have been posted before."""
_TEXT = 1000
_CLEAR = 8
"""Letters from which a parameter's name alone is clear; S3Uri is not."""
_NUMBER_LIMIT = Decimal(10**9)
_NUMBER_PLACES = Decimal("0.00001")
_VALUE = 256
"""Characters of an attribute."""
_MAX_ID_LENGTH = 2_000
_HOUR = "%Y-%m-%dT%H"


class Attribute(TypedDict):
    """A message attribute; `type` is String, Number or String.Array."""

    type: str
    value: str


_HELD_ATTRIBUTES: Mapping[str, Attribute] = {"message_kind": {"type": "String", "value": "held"}}


class CardLine(NamedTuple):
    """A text after a `label`; `code` is to copy. Where there is no room, the highest `spare` is
    left out first; 0 stays.
    """

    text: str
    label: str = ""
    is_code: bool = False
    drop_priority: int = 0

    @property
    def labelled_text(self) -> str:
        """The text after its label."""
        return f"{self.label}: {self.text}".strip() if self.label else self.text


class MessageCard(Struct, frozen=True):
    """A card's parts in their order. Its first line is `headline` and, after a colon, `step`, which
    may be empty. `owner` and `place` share a line, and the links one with the rule's name; a card
    that is about no single run has no `place`. Subscriptions can filter by `attributes`.
    """

    headline: str
    next_step: str = ""
    lines: tuple[CardLine, ...] = ()
    owner: str | None = None
    account_region: str = ""
    links: tuple[Link, ...] = ()
    rule: str = ""
    commands: tuple[CardLine, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def short_owner(self) -> str:
        """The owner's name, cut so that one row has it and the place, if that leaves enough."""
        room = max(ROW_WIDTH - len(self.account_region) - len(", "), len(NO_OWNER_LABEL))
        return cut_middle(for_terminal(self.owner or NO_OWNER_LABEL), room)

    @property
    def owner_and_place(self) -> str:
        """The owner and the place; empty where the card has no place."""
        return f"{self.short_owner}, {self.account_region}" if self.account_region else ""

    @property
    def title(self) -> str:
        """The first line."""
        return f"{self.headline}: {self.next_step}" if self.next_step else self.headline

    @property
    def body(self) -> tuple[CardLine, ...]:
        """All lines below the title, for channels that show a line for each."""
        whose = [CardLine(self.owner_and_place)] if self.owner_and_place else []
        rule = [CardLine(f"sageaudit rules {self.rule}", "Rule", is_code=True)] if self.rule else []
        return (*self.lines, *whose, *rule, *self.commands)


def row_count(text: str) -> int:
    """How many rows of a phone a text takes."""
    return len(textwrap.wrap(for_plain_text(text, _TEXT), ROW_WIDTH)) or 1


def fit_card(card: MessageCard, max_rows: int) -> MessageCard:
    """The card in so many rows: what can be spared goes first, then the longest texts are cut."""
    lines = [*card.lines, *card.commands]
    foot = SEPARATOR.join([*(one.label for one in card.links), card.rule])
    room = max_rows - sum(
        row_count(text) for text in (card.title, card.owner_and_place, foot) if text
    )
    while lines and (over := sum(row_count(one.labelled_text) for one in lines) - room) > 0:
        least = max(lines, key=lambda one: one.drop_priority)
        if not least.drop_priority:
            break
        lines.remove(least)
    for line in sorted(lines, key=lambda one: -row_count(one.labelled_text)):
        if over > 0 and line.text and not line.is_code:
            taken = row_count(line.labelled_text)
            keep = max(taken - over, 1)
            lines[lines.index(line)] = line._replace(text=_cut_to_rows(line, keep))
            over -= taken - keep
    last = sum(one in card.commands for one in lines)
    at = len(lines) - last
    return replace(card, lines=tuple(lines[:at]), commands=tuple(lines[at:]))


def _cut_to_rows(line: CardLine, row_limit: int) -> str:
    """The text in so many rows, as an e-mail shows it."""
    shown = for_plain_text(line.labelled_text, _TEXT)
    wrapped = textwrap.wrap(shown, ROW_WIDTH, max_lines=row_limit, placeholder=f" {ELLIPSIS}")
    return " ".join(wrapped).removeprefix(f"{line.label}: ")


def held_messages_card(hour: ChannelHour, place: HistoryLocation = DEFAULT_HISTORY) -> MessageCard:
    """How many were held, and the dearest of them; `place`: the history that has them all."""
    others, since = hour.held - len(hour.largest_messages), f"{hour.began_at:%Y-%m-%d}"
    return MessageCard(
        headline=f"And {count_text(hour.held, 'more message')} since {hour.began_at:%H:%M} UTC",
        lines=(
            *(CardLine(headline) for headline, _ in hour.largest_messages),
            *([CardLine(f"and {count_text(others, 'other')}")] if others else []),
        ),
        attributes=_HELD_ATTRIBUTES,
        commands=(
            CardLine(place.command("advice"), "All open recommendations", is_code=True),
            CardLine(place.command("history", "--since", since), "All jobs", is_code=True),
        ),
    )


def short_name(family: str, *, with_group: bool = True) -> str:
    """The last part of a family's name; of a step, with its pipeline's."""
    parents = (alert_subject(family) if with_group else family).rpartition("/")[0]
    return cut_middle(for_terminal(family.removeprefix(f"{parents}/")), MAX_FAMILY_LENGTH)


def subject_name(family: str) -> str:
    """The name of what a family's messages are about: of a step, that of its pipeline."""
    return short_name(alert_subject(family))


def line_to_paste(parameter: str, value: str) -> str:
    """The same of an advice, whose value is text."""
    line = f"{short_path(parameter, len(f'{parameter} = {value}'))} = {value}"
    return cut_middle(without_paths(line), MAX_CODE_LENGTH)


def short_path(parameter: str, length: int) -> str:
    """The parameter's name alone where the line would be too long, and the name says enough."""
    path, _, name = parameter.rpartition(".")
    return parameter if length <= ROW_WIDTH or "[" in path or len(name) < _CLEAR else name


def message_attributes(
    audit: MessageAudit, decision: AlertDecision = FIRST_ALERT
) -> dict[str, Attribute]:
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
    ids = json.dumps([for_plain_text(finding["id"], _VALUE) for finding in audit.counted_findings])
    result: dict[str, Attribute] = {"rule_ids": {"type": "String.Array", "value": ids}}
    result |= text_attributes(texts)
    for name, amount in numbers.items():
        if amount is not None:
            result[name] = {"type": "Number", "value": _number(amount)}
    return result


def text_attributes(texts: Mapping[str, str | None]) -> dict[str, Attribute]:
    """Those of texts; an unknown or empty one has none."""
    values = {name: for_log(text or "", _VALUE) for name, text in texts.items()}
    return {name: {"type": "String", "value": value} for name, value in values.items() if value}


def _number(amount: Decimal) -> str:
    """A number as SNS can filter it: within ±1,000,000,000, with at most five decimals."""
    bounded = max(min(amount, _NUMBER_LIMIT), -_NUMBER_LIMIT)
    return f"{bounded.quantize(_NUMBER_PLACES, ROUND_HALF_UP).normalize():f}"


Payload = dict[str, Any]
NO_OWNER_IDS: Mapping[str, str] = {}
Writer = Callable[[MessageCard, Mapping[str, str]], Payload]
"""What one channel posts for a card, with the ids of owners to mention, within its size limits."""
Check = Callable[[Payload], None]
"""Raises MalformedData, naming the key, for a payload that its channel cannot post."""
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


def to_json(notice: Notice) -> str:
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


def parse_notice(body: str, checks: Mapping[str, Check] = NO_CHECKS) -> Notice:
    """Parses a message body. Raises MalformedData.

    `checks`: by channel name, its payload check; of another channel any payload is taken.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedData("body", "is not JSON") from error
    _need(isinstance(message, dict), "body", "is not an object")
    _need(message.get("schema") == SCHEMA, "schema", f"is not {SCHEMA}")
    channel, payload = message.get("channel"), message.get("payload")
    _need(isinstance(channel, str), "channel", "is not a string")
    notice_id = message.get("notice_id")
    _need(
        isinstance(notice_id, str)
        and len(notice_id) <= _MAX_ID_LENGTH
        and notice_id.endswith(f"|{channel}"),
        "notice_id",
        "is not an audit's version followed by the channel",
    )
    _need(isinstance(payload, dict), "payload", "is not an object")
    held_hour = _hour(message["held_hour"]) if "held_hour" in message else None
    if held_hour is None and channel in checks:
        checks[channel](payload)
    return Notice(notice_id, channel, payload, held_hour)


def check_key_types(payload: Payload, types: Mapping[str, type]) -> None:
    """Raises MalformedData for the first key that is absent or has another type."""
    for key, kind in types.items():
        _need(isinstance(payload.get(key), kind), f"payload.{key}", f"is not a {kind.__name__}")


def _need(holds: bool, key: str, reason: str) -> None:
    if not holds:
        raise MalformedData(key, reason)


def _hour(text: object) -> datetime:
    try:
        return datetime.strptime(str(text), _HOUR).replace(tzinfo=UTC)
    except ValueError as error:
        raise MalformedData("held_hour", "is not an hour") from error
