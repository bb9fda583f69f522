"""Message cards, which fit a phone's screen, and notices, which carry payloads from `notify` to
`deliver`.

A card has at most `MAX_ROWS` rows of `ROW_WIDTH` characters. Its texts are not escaped: each
channel must pass them through a function of `untrusted`.

A notice is one JSON object, the body of an SQS message.
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
LINK_SEPARATOR = "  "
MAX_FAMILY_LENGTH = 30
MAX_CODE_LENGTH = 120
"""The maximum length of a line to paste."""
MAX_COMMAND_LENGTH = 400
"""The maximum length of a command. The longest job and table names fit."""
SCHEMA = 1
"""The schema version of a notice's body."""
REPEAT_PREFIX = "(possible repeat) "
"""The prefix of a payload that may have been posted before."""
_MAX_TEXT_LENGTH = 1000
_MIN_CLEAR_LENGTH = 8
"""A shorter name, such as `S3Uri`, is not clear without its path."""
_NUMBER_LIMIT = Decimal(10**9)
_NUMBER_PLACES = Decimal("0.00001")
_MAX_ATTRIBUTE_LENGTH = 256
_MAX_ID_LENGTH = 2_000
_HOUR = "%Y-%m-%dT%H"


class Attribute(TypedDict):
    """An SNS message attribute. `type` is String, Number or String.Array."""

    type: str
    value: str


_HELD_ATTRIBUTES: Mapping[str, Attribute] = {"message_kind": {"type": "String", "value": "held"}}


class CardLine(NamedTuple):
    """A line of a card. `is_code` marks a text to copy.

    If a card is too long, the line with the highest `drop_priority` is dropped first. A line with 0
    is never dropped.
    """

    text: str
    label: str = ""
    is_code: bool = False
    drop_priority: int = 0

    @property
    def labelled_text(self) -> str:
        """The text, after its label if there is one."""
        return f"{self.label}: {self.text}".strip() if self.label else self.text


class MessageCard(Struct, frozen=True):
    """The content of a message, with its fields in the order in which they are shown.

    `headline` and `next_step` are the first line. `scope` and `place_or_period` share a line, and
    so do `links` and `rule`.

    `scope`: the owner of the job, or which jobs the message is about; None for a job without owner.
    `place_or_period`: the account and region of a run, or the period of many; "" leaves their line
    out. SNS subscriptions can filter by `attributes`.
    """

    headline: str
    next_step: str = ""
    lines: tuple[CardLine, ...] = ()
    scope: str | None = None
    place_or_period: str = ""
    links: tuple[Link, ...] = ()
    rule: str = ""
    commands: tuple[CardLine, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def short_scope(self) -> str:
        """The scope, cut if its line would be too long."""
        room = max(ROW_WIDTH - len(self.place_or_period) - len(", "), len(NO_OWNER_LABEL))
        return cut_middle(for_terminal(self.scope or NO_OWNER_LABEL), room)

    @property
    def scope_line(self) -> str:
        """The scope with its place or period, or "" without these."""
        return f"{self.short_scope}, {self.place_or_period}" if self.place_or_period else ""

    @property
    def title(self) -> str:
        """The first line of the message."""
        return f"{self.headline}: {self.next_step}" if self.next_step else self.headline

    @property
    def body(self) -> tuple[CardLine, ...]:
        """All lines below the title, for channels that show lines separately."""
        scope = [CardLine(self.scope_line)] if self.scope_line else []
        rule = [CardLine(f"sageaudit rules {self.rule}", "Rule", is_code=True)] if self.rule else []
        return (*self.lines, *scope, *rule, *self.commands)


def row_count(text: str) -> int:
    """Returns how many rows of a phone a text takes."""
    return len(textwrap.wrap(for_plain_text(text, _MAX_TEXT_LENGTH), ROW_WIDTH)) or 1


def fit_card(card: MessageCard, max_rows: int) -> MessageCard:
    """Returns the card, shortened to `max_rows` rows.

    Lines are dropped by their `drop_priority`, then the longest texts are cut. Commands are never
    cut, so the card may stay longer.
    """
    lines = [*card.lines, *card.commands]
    link_line = LINK_SEPARATOR.join([*(link.label for link in card.links), f"Rule: {card.rule}"])
    fixed_texts = (card.title, card.scope_line, link_line)
    available_rows = max_rows - sum(row_count(text) for text in fixed_texts if text)
    while (
        lines
        and (excess_rows := sum(row_count(line.labelled_text) for line in lines) - available_rows)
        > 0
    ):
        droppable = max(lines, key=lambda line: line.drop_priority)
        if not droppable.drop_priority:
            break
        lines.remove(droppable)
    for line in sorted(lines, key=lambda line: -row_count(line.labelled_text)):
        if excess_rows > 0 and line.text and not line.is_code:
            old_rows = row_count(line.labelled_text)
            new_rows = max(old_rows - excess_rows, 1)
            lines[lines.index(line)] = line._replace(text=_cut_to_rows(line, new_rows))
            excess_rows -= old_rows - new_rows
    first_command = len(lines) - sum(line in card.commands for line in lines)
    return replace(card, lines=tuple(lines[:first_command]), commands=tuple(lines[first_command:]))


def _cut_to_rows(line: CardLine, max_rows: int) -> str:
    text = for_plain_text(line.labelled_text, _MAX_TEXT_LENGTH)
    rows = textwrap.wrap(text, ROW_WIDTH, max_lines=max_rows, placeholder=f" {ELLIPSIS}")
    return " ".join(rows).removeprefix(f"{line.label}: ")


def held_messages_card(
    hour: ChannelHour, history: HistoryLocation = DEFAULT_HISTORY
) -> MessageCard:
    """Returns the card about an hour's held messages.

    `history`: the history that the card's commands read.
    """
    other_count, since_text = hour.held - len(hour.largest_messages), f"{hour.began_at:%Y-%m-%d}"
    return MessageCard(
        headline=f"And {count_text(hour.held, 'more message')} since {hour.began_at:%H:%M} UTC",
        lines=(
            *(CardLine(headline) for headline, _ in hour.largest_messages),
            *([CardLine(f"and {count_text(other_count, 'other')}")] if other_count else []),
        ),
        attributes=_HELD_ATTRIBUTES,
        commands=(
            CardLine(history.command("advice"), "All open recommendations", is_code=True),
            CardLine(history.command("history", "--since", since_text), "All jobs", is_code=True),
        ),
    )


def short_name(family: str, *, with_group: bool = True) -> str:
    """Returns the last part of a family's name.

    For a pipeline step it begins with the pipeline's name, unless `with_group` is False.
    """
    parents = (alert_subject(family) if with_group else family).rpartition("/")[0]
    return cut_middle(for_terminal(family.removeprefix(f"{parents}/")), MAX_FAMILY_LENGTH)


def subject_name(family: str) -> str:
    """Returns the family's short name. For a pipeline step it is the pipeline's short name."""
    return short_name(alert_subject(family))


def line_to_paste(parameter: str, value: str) -> str:
    """Returns `parameter = value`. A long line loses the parameter's path or is cut."""
    line = f"{short_path(parameter, len(f'{parameter} = {value}'))} = {value}"
    return cut_middle(without_paths(line), MAX_CODE_LENGTH)


def short_path(parameter: str, line_length: int) -> str:
    """Returns `parameter`, without its path if the line is too long and the name is clear."""
    return parameter if line_length <= ROW_WIDTH else clear_name(parameter)


def clear_name(parameter: str) -> str:
    """Returns `InstanceType` for `ResourceConfig.InstanceType`; a path if the name needs it."""
    path, _, name = parameter.rpartition(".")
    return parameter if "[" in path or len(name) < _MIN_CLEAR_LENGTH else name


def message_attributes(
    audit: MessageAudit, alert_decision: AlertDecision = FIRST_ALERT
) -> dict[str, Attribute]:
    """Returns attributes by which SNS subscriptions filter. An unknown value has no attribute."""
    document, job = audit.document, audit.job
    texts = {
        "month_severity": alert_decision.month_severity,
        "job_type": job["kind"],
        "owner": job["owner"],
        "account": job["account"],
        "region": job["region"],
        "judged": document["judged"],
        "message_kind": alert_decision.kind,
    }
    max_lost_usd = document["lost_up_to_usd"]
    numbers = {
        "avoidable_usd": document["avoidable_usd"],
        "lost_usd": document["lost_usd"],
        "lost_up_to_usd": max_lost_usd if max_lost_usd != document["lost_usd"] else None,
    }
    rule_ids = json.dumps(
        [for_plain_text(finding["id"], _MAX_ATTRIBUTE_LENGTH) for finding in audit.counted_findings]
    )
    attributes: dict[str, Attribute] = {"rule_ids": {"type": "String.Array", "value": rule_ids}}
    attributes |= text_attributes(texts)
    for name, amount in numbers.items():
        if amount is not None:
            attributes[name] = {"type": "Number", "value": _number(amount)}
    return attributes


def text_attributes(texts: Mapping[str, str | None]) -> dict[str, Attribute]:
    """Returns a String attribute for each text that is neither None nor empty."""
    values = {name: for_log(text or "", _MAX_ATTRIBUTE_LENGTH) for name, text in texts.items()}
    return {name: {"type": "String", "value": value} for name, value in values.items() if value}


def _number(amount: Decimal) -> str:
    """Returns a number that SNS can filter: within ±1,000,000,000, with at most five decimals."""
    bounded = max(min(amount, _NUMBER_LIMIT), -_NUMBER_LIMIT)
    return f"{bounded.quantize(_NUMBER_PLACES, ROUND_HALF_UP).normalize():f}"


Payload = dict[str, Any]
NO_OWNER_IDS: Mapping[str, str] = {}
Writer = Callable[[MessageCard, Mapping[str, str]], Payload]
"""Makes a channel's payload from a card and owner ids, within the channel's size limits."""
Check = Callable[[Payload], None]
"""Raises MalformedData for a payload that its channel cannot post."""
NO_CHECKS: Mapping[str, Check] = {}


class Notice(Struct, frozen=True):
    """A payload for one channel.

    `held_hour`: the start of an hour, if the notice replaces the messages that were held back in
    that hour. The payload of such a notice is made once the hour is over.
    """

    notice_id: str
    channel: str
    payload: Payload
    held_hour: datetime | None = None


def to_json(notice: Notice) -> str:
    """Returns the notice as JSON in ASCII, because SQS refuses some Unicode characters."""
    held_hour = {} if notice.held_hour is None else {"held_hour": f"{notice.held_hour:{_HOUR}}"}
    return json.dumps(
        {
            "schema": SCHEMA,
            "notice_id": notice.notice_id,
            "channel": notice.channel,
            "payload": notice.payload,
            **held_hour,
        }
    )


def parse_notice(body: str, checks: Mapping[str, Check] = NO_CHECKS) -> Notice:
    """Parses the body of an SQS message. Raises MalformedData.

    `checks`: payload checks by channel name. A payload without a check is accepted.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedData("body", "is not JSON") from error
    _require(isinstance(message, dict), "body", "is not an object")
    _require(message.get("schema") == SCHEMA, "schema", f"is not {SCHEMA}")
    channel, payload = message.get("channel"), message.get("payload")
    _require(isinstance(channel, str), "channel", "is not a string")
    notice_id = message.get("notice_id")
    _require(
        isinstance(notice_id, str)
        and len(notice_id) <= _MAX_ID_LENGTH
        and notice_id.endswith(f"|{channel}"),
        "notice_id",
        "is not an audit's version followed by the channel",
    )
    _require(isinstance(payload, dict), "payload", "is not an object")
    held_hour = _hour(message["held_hour"]) if "held_hour" in message else None
    if held_hour is None and channel in checks:
        checks[channel](payload)
    return Notice(notice_id, channel, payload, held_hour)


def check_key_types(payload: Payload, types: Mapping[str, type]) -> None:
    """Raises MalformedData for the first key that is missing or has a value of the wrong type."""
    for key, kind in types.items():
        _require(isinstance(payload.get(key), kind), f"payload.{key}", f"is not a {kind.__name__}")


def _require(condition: bool, key: str, reason: str) -> None:
    if not condition:
        raise MalformedData(key, reason)


def _hour(text: object) -> datetime:
    try:
        return datetime.strptime(str(text), _HOUR).replace(tzinfo=UTC)
    except ValueError as error:
        raise MalformedData("held_hour", "is not an hour") from error
