"""The channels of messages, and the routes that select them: `[channels]` and `[[route]]`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from msgspec import Struct

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.table_reader import Conditions, TableReader, conditions, full_key
from sageaudit.errors import BadPolicy

Service = Literal["slack", "teams", "sns"]
OWN_TOPIC = "sns"
"""The channel that always exists: the SNS topic of the stack."""
CHANNEL_SECRETS = "sageaudit/channel/"
"""The prefix of a channel's default secret name. The channel's name follows."""
MAX_CHANNELS = 16
"""The maximum number of channels, including the stack's own topic. The URLs of their queues, about
200 characters each, must fit into a function's environment of 4 KB."""
MAX_ROUTED_CHANNELS = 90
"""The maximum number of channels in all routes and the default together. One DynamoDB transaction
writes the digests of all these channels."""
_DEFAULT_MAX_PER_HOUR = 20
"""The default limit for Slack and Teams. Our choice: nobody reads more in an hour. A topic has no
limit by default, because a filtered subscription may not get the message that lists the held
messages."""
CHANNEL_NAME = "[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*"
"""The pattern of a channel's name."""
_NAME = re.compile(rf"{CHANNEL_NAME}\Z")
_MAX_NAME_LENGTH = 20
"""The maximum number of characters in a channel's name, which is in its queue's URL."""
_CONDITIONS = ("account", "tag", "owner", "family", "kind", "rule", "min_month_severity",
               "min_usd_per_month")  # fmt: skip
_MESSAGE_CONDITIONS = _CONDITIONS[_CONDITIONS.index("rule") :]
"""The conditions on messages. A line about a job cannot meet them."""
_SECRET = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}\Z")
_TOPIC_ARN = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}\Z")
_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+\Z")


class ChannelConfig(Struct, frozen=True):
    """One channel of messages.

    `secret` is the name of the secret with the webhook's URL; None for SNS. `topic_arn` is None for
    the stack's own topic. `key_arn` is the topic's KMS key, if any. Messages above `max_per_hour`
    are held; None means no limit. `job_lines` means that the channel gets a line about each job
    that ends.
    """

    service: Service
    secret: str | None = None
    topic_arn: str | None = None
    key_arn: str | None = None
    max_per_hour: int | None = None
    job_lines: bool = False


class JobRouteFacts(Struct, frozen=True):
    """The facts about a job that routes compare."""

    account: str | None
    family: str
    tags: Mapping[str, str]
    owner: str | None
    kind: str


class RouteFacts(JobRouteFacts, frozen=True):
    """The facts about a message that routes compare.

    `usd` is the amount of a month; None if unknown.
    """

    rule: str
    severity: Severity
    usd: Decimal | None


class Route(Conditions, frozen=True):
    """A `[[route]]` of the policy, which sends matching messages to `channels`.

    A message must meet all conditions that are not None. `job_lines` means that the channels also
    get a line about each job that matches.
    """

    owner: str | None = None
    kind: str | None = None
    rule: str | None = None
    min_month_severity: Severity | None = None
    min_usd_per_month: Decimal | None = None
    channels: tuple[str, ...] = ()
    job_lines: bool = False

    @property
    def has_job_conditions(self) -> bool:
        """Whether the route has a condition on jobs."""
        return any((self.family, self.tag, self.account, self.owner, self.kind))

    def matches(self, facts: RouteFacts) -> bool:
        """Returns whether the message meets all conditions. Unknown dollars meet no minimum."""
        return self.selects_job(facts) and self.matches_recommendation(
            facts.rule, facts.severity, facts.usd
        )

    def selects_job(self, job: JobRouteFacts) -> bool:
        """Returns whether the job meets the conditions on jobs."""
        return (
            self.matches_job(job.account, job.family, job.tags)
            and self.owner in {None, job.owner}
            and self.kind in {None, job.kind}
        )

    def matches_recommendation(self, rule: str, severity: Severity, usd: Decimal | None) -> bool:
        """Returns whether rule, severity and monthly amount (USD) meet the route's conditions."""
        return (
            self.rule in {None, rule}
            and (self.min_month_severity is None or severity.rank >= self.min_month_severity.rank)
            and (
                self.min_usd_per_month is None
                or (usd is not None and usd >= self.min_usd_per_month)
            )
        )

    def __str__(self) -> str:
        """Returns the conditions as text, such as `tag team=vision, min_month_severity medium`."""
        values = {key: getattr(self, key) for key in _CONDITIONS} | {
            "tag": self.tag and "=".join(self.tag)
        }
        return ", ".join(f"{key} {value}" for key, value in values.items() if value is not None)


class Destination(Struct, frozen=True):
    """The channels of one message, each once.

    `route_numbers` are the matching routes, numbered from 1. If there are none, `channels` are the
    default channels.
    """

    channels: tuple[str, ...]
    route_numbers: tuple[int, ...] = ()


class Routes(Struct, frozen=True):
    """All routes of a policy. Messages that no route matches go to the channels in `default`."""

    default: tuple[str, ...] = (OWN_TOPIC,)
    rows: tuple[Route, ...] = ()

    @property
    def needs_job_tags(self) -> bool:
        """Whether a route compares a tag. If none does, routes need no tags of jobs."""
        return any(row.tag for row in self.rows)

    def destination_for(self, facts: RouteFacts) -> Destination:
        """Returns the channels of a message."""
        matching = {number: row for number, row in enumerate(self.rows, 1) if row.matches(facts)}
        if not matching:
            return Destination(self.default)
        names = dict.fromkeys(name for row in matching.values() for name in row.channels)
        return Destination(tuple(names), tuple(matching))


def is_channel_name(text: str) -> bool:
    """Returns whether a channel can have this name."""
    return _NAME.match(text) is not None and len(text) <= _MAX_NAME_LENGTH


def default_channels() -> dict[str, ChannelConfig]:
    """Returns the channels of a policy without `[channels]`: the stack's own topic."""
    return {OWN_TOPIC: ChannelConfig("sns")}


def parse_channels(reader: TableReader) -> dict[str, ChannelConfig]:
    """Reads `[channels]`, and adds the stack's own topic. Raises BadPolicy."""
    channels = default_channels()
    for name in reader.table:
        if not is_channel_name(name):
            why = (
                "is not a channel name: lower-case letters, digits and -,"
                f" {_MAX_NAME_LENGTH} at most"
            )
            raise reader.error(name, why)
        new = _channel(reader.subtable(name), name)
        channels_with_secret = [
            key for key, row in channels.items() if new.secret and row.secret == new.secret
        ]
        if channels_with_secret:
            raise reader.subtable(name).error(
                "secret", f"is that of channels.{channels_with_secret[0]} too"
            )
        channels[name] = new
    if len(channels) > MAX_CHANNELS:
        raise BadPolicy(
            f"channels has {len(channels)} with {OWN_TOPIC}: {MAX_CHANNELS} at most, because the"
            " environment of a Lambda function names each channel's queue and has only 4 KB. An SNS"
            " channel can have many subscribers, each with a filter of its own"
        )
    return channels


def _channel(reader: TableReader, name: str) -> ChannelConfig:
    services: tuple[Service, ...] = get_args(Service)
    word = reader.read("service", str, None)
    service = next((name for name in services if name == word), None)
    if service is None:
        near = did_you_mean(word or "", services)
        raise reader.error("service", f"is not one of {', '.join(services)}{near}")
    if name == OWN_TOPIC and service != "sns":
        raise reader.error("service", f"is not sns, as {OWN_TOPIC} is the stack's own topic")
    limit = reader.read("max_per_hour", int, None if service == "sns" else _DEFAULT_MAX_PER_HOUR)
    if limit is not None and (isinstance(limit, bool) or limit < 1):
        raise reader.error("max_per_hour", "is not a number from 1 on")
    common = {"max_per_hour": limit, "job_lines": reader.read("every_job", bool, default=False)}
    if service == "sns":
        channel = _topic(reader, name, common)
    else:
        secret = reader.read("secret", str, f"{CHANNEL_SECRETS}{name}")
        if not _SECRET.match(secret):
            raise reader.error("secret", "is not the name of a secret, which is no address")
        channel = ChannelConfig(service, secret, **common)
    reader.reject_unread_keys()
    return channel


def _topic(reader: TableReader, name: str, common: Mapping[str, Any]) -> ChannelConfig:
    arn = None
    if name != OWN_TOPIC:
        arn = reader.read("topic_arn", str, None)
        if arn is None or not _TOPIC_ARN.match(arn):
            raise reader.error("topic_arn", "is not the ARN of a standard SNS topic")
    key = reader.read("key_arn", str, None)
    if key is not None and not _KEY_ARN.match(key):
        why = "is not the ARN of a KMS key, on which alone a permission can be granted"
        raise reader.error("key_arn", why)
    return ChannelConfig("sns", None, arn, key, **common)


def parse_routes(
    reader: TableReader, channels: Mapping[str, ChannelConfig], rules: Collection[str]
) -> Routes:
    """Reads `[[route]]` and `default_to`. Raises BadPolicy.

    `default_to` defaults to the channels that no route names. If there are none, it is the stack's
    own topic.
    """
    rows = tuple(_route(row, channels, rules) for row in reader.table_array("route"))
    routed = {name for row in rows for name in row.channels}
    default = channel_names(reader, "default_to", channels)
    if not default:
        default = tuple(name for name in channels if name not in routed) or (OWN_TOPIC,)
    if (count := len(default) + sum(len(row.channels) for row in rows)) > MAX_ROUTED_CHANNELS:
        raise BadPolicy(f"the routes name channels {count} times: {MAX_ROUTED_CHANNELS} at most")
    return Routes(default, rows)


def channel_names(reader: TableReader, key: str, channels: Mapping[str, object]) -> tuple[str, ...]:
    """Reads a list of channels, each once; an absent key has none. Raises BadPolicy."""
    names = tuple(dict.fromkeys(reader.strings(key)))
    for name in names:
        if not is_channel_name(name):  # not repeated, since it may be an address
            raise reader.error(key, "has a text that is no channel's name")
        if name not in channels:
            near = did_you_mean(name, sorted(channels))
            raise reader.error(key, f"names {name!r}: there is no such channel{near}")
    if key in reader.table and not names:
        raise reader.error(key, "names no channel")
    return names


def _route(
    reader: TableReader, channels: Mapping[str, ChannelConfig], rules: Collection[str]
) -> Route:
    job_conditions, names = conditions(reader), channel_names(reader, "to", channels)
    route = Route(
        family=job_conditions.family,
        tag=job_conditions.tag,
        account=job_conditions.account,
        owner=reader.read("owner", str, None),
        kind=_choice(reader, "kind", [kind.value for kind in JobKind]),
        rule=_choice(reader, "rule", sorted(rules)),
        min_month_severity=_severity(reader),
        min_usd_per_month=reader.optional_amount("min_usd_per_month"),
        channels=names,
        job_lines=reader.read("every_job", bool, default=False),
    )
    reader.reject_unread_keys()
    if not names:
        raise BadPolicy(f"{full_key(reader.path)} needs to, a list of channels", reader.path)
    if route == Route(channels=names, job_lines=route.job_lines):
        known_conditions = ", ".join(sorted(reader.read_keys - {"to", "every_job"}))
        raise BadPolicy(
            f"{full_key(reader.path)} needs a condition: {known_conditions}", reader.path
        )
    if route.job_lines and (keys := [key for key in _MESSAGE_CONDITIONS if key in reader.table]):
        text = f"is about jobs, and {keys[0]} is not: give the lines a route of their own"
        raise reader.error("every_job", text)
    return route


def _severity(reader: TableReader) -> Severity | None:
    word = _choice(reader, "min_month_severity", [*Severity])
    return None if word is None else Severity(word)


def _choice(reader: TableReader, key: str, choices: Sequence[str]) -> str | None:
    """Returns None if the key is absent."""
    word: str | None = reader.read(key, str, None)
    if word is not None and word not in choices:
        error_text = f"is not one of {', '.join(choices)}"
        text = error_text if key != "rule" else f"names {word!r}: there is no such rule"
        raise reader.error(key, f"{text}{did_you_mean(word, choices)}")
    return word
