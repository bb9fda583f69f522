"""The channels that messages go to, and the routes by which they do: `[channels]`, `[[route]]`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from msgspec import Struct

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.table_reader import Conditions, TableReader, conditions, named
from sageaudit.errors import BadPolicy

Service = Literal["slack", "teams", "sns"]
OWN_TOPIC = "sns"
"""The channel that is always there: the topic that the stack makes."""
CHANNEL_SECRETS = "sageaudit/channel/"
"""A secret without a name of its own is called so, and then like its channel."""
MOST_CHANNELS = 16
MOST_NAMED = 90
"""Channels of all routes and the default: one transaction of DynamoDB has the digests for each."""
_MAX_PER_HOUR = 20
"""Of Slack and Teams, our choice: whoever gets more in an hour reads none of them. On a topic, a
subscription with a filter may get few of them, and not the one that stands for the rest."""
CHANNEL_NAME = "[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*"
"""The pattern of one."""
_NAME = re.compile(rf"{CHANNEL_NAME}\Z")
_LONGEST_NAME = 20
"""Of a channel: the environment of a function has 4 KB for the URLs of all their queues."""
_CONDITIONS = ("account", "tag", "owner", "family", "kind", "rule", "min_month_severity",
               "min_usd_per_month")  # fmt: skip
_OF_ADVICE = _CONDITIONS[_CONDITIONS.index("rule") :]
"""The conditions about what a message says, which a line about a job does not have."""
_SECRET = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}\Z")
_TOPIC_ARN = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}\Z")
_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+\Z")


class ChannelChoice(Struct, frozen=True):
    """One channel. `secret`: the name of the secret with its webhook's address.

    `topic_arn` is None for the topic that the stack makes; `key_arn`: an own KMS key of the topic.
    `max_per_hour`: the messages above it are held; None holds none. `every_job`: it gets a line
    about each job that ends.
    """

    service: Service
    secret: str | None = None
    topic_arn: str | None = None
    key_arn: str | None = None
    max_per_hour: int | None = None
    every_job: bool = False


class JobRouteFacts(Struct, frozen=True):
    """What the routes ask of the job that a message is about."""

    account: str | None
    family: str
    tags: Mapping[str, str]
    owner: str | None
    kind: str


class RouteFacts(JobRouteFacts, frozen=True):
    """What the routes ask of a message. `usd` is a month's, None where it is not known."""

    rule: str
    severity: Severity
    usd: Decimal | None


class Route(Conditions, frozen=True):
    """A `[[route]]`: a message that matches all of its conditions goes to these channels.

    With `every_job`, they also get a line about each job that matches.
    """

    owner: str | None = None
    kind: str | None = None
    rule: str | None = None
    min_month_severity: Severity | None = None
    min_usd_per_month: Decimal | None = None
    to: tuple[str, ...] = ()
    every_job: bool = False

    @property
    def of_jobs(self) -> bool:
        """Whether it selects jobs; else it selects messages about any."""
        return any((self.family, self.tag, self.account, self.owner, self.kind))

    def matches(self, facts: RouteFacts) -> bool:
        """Whether the message matches. Dollars that are not known reach no amount."""
        return self.selects(facts) and self.matches_advice(facts.rule, facts.severity, facts.usd)

    def selects(self, job: JobRouteFacts) -> bool:
        """Whether the job matches the conditions about jobs."""
        return (
            self.matches_job(job.account, job.family, job.tags)
            and self.owner in {None, job.owner}
            and self.kind in {None, job.kind}
        )

    def matches_advice(self, rule: str, severity: Severity, usd: Decimal | None) -> bool:
        """Whether an advice, and what it comes to in a month, match what is said of these."""
        return (
            self.rule in {None, rule}
            and (self.min_month_severity is None or severity.rank >= self.min_month_severity.rank)
            and (
                self.min_usd_per_month is None
                or (usd is not None and usd >= self.min_usd_per_month)
            )
        )

    def __str__(self) -> str:
        """Its conditions: `tag team=vision, min_month_severity medium`."""
        named = {key: getattr(self, key) for key in _CONDITIONS} | {
            "tag": self.tag and "=".join(self.tag)
        }
        return ", ".join(f"{key} {value}" for key, value in named.items() if value is not None)


class Destination(Struct, frozen=True):
    """Where one message goes: each channel once. `routes` are those that match, numbered from 1.

    Without any, `channels` are the default.
    """

    channels: tuple[str, ...]
    routes: tuple[int, ...] = ()


class Routes(Struct, frozen=True):
    """All routes. `default`: where a message goes that no route matches."""

    default: tuple[str, ...] = (OWN_TOPIC,)
    rows: tuple[Route, ...] = ()

    @property
    def ask_tags(self) -> bool:
        """Whether a route asks for a tag, which alone needs the job's own tags."""
        return any(row.tag for row in self.rows)

    def of(self, facts: RouteFacts) -> Destination:
        """Where a message goes."""
        matching = {number: row for number, row in enumerate(self.rows, 1) if row.matches(facts)}
        if not matching:
            return Destination(self.default)
        names = dict.fromkeys(name for row in matching.values() for name in row.to)
        return Destination(tuple(names), tuple(matching))


def own_topic() -> dict[str, ChannelChoice]:
    """The channels of a policy that names none."""
    return {OWN_TOPIC: ChannelChoice("sns")}


def parse_channels(reader: TableReader) -> dict[str, ChannelChoice]:
    """`[channels]`, and the stack's own topic. Raises BadPolicy."""
    channels = own_topic()
    for name in reader.table:
        if not _NAME.match(name) or len(name) > _LONGEST_NAME:
            why = f"is no name of a channel: small letters, digits and -, {_LONGEST_NAME} at most"
            raise reader.refusal(name, why)
        one = _channel(reader.within(name), name)
        same = [of for of, other in channels.items() if one.secret and other.secret == one.secret]
        if same:
            raise reader.within(name).refusal("secret", f"is that of channels.{same[0]} too")
        channels[name] = one
    if len(channels) > MOST_CHANNELS:
        raise BadPolicy(f"channels has {len(channels)} with {OWN_TOPIC}: {MOST_CHANNELS} at most")
    return channels


def _channel(reader: TableReader, name: str) -> ChannelChoice:
    services: tuple[Service, ...] = get_args(Service)
    word = reader.take("service", str, None)
    service = next((one for one in services if one == word), None)
    if service is None:
        near = did_you_mean(word or "", services)
        raise reader.refusal("service", f"is not one of {', '.join(services)}{near}")
    if name == OWN_TOPIC and service != "sns":
        raise reader.refusal("service", f"is not sns, as {OWN_TOPIC} is the stack's own topic")
    most = reader.take("max_per_hour", int, None if service == "sns" else _MAX_PER_HOUR)
    if most is not None and (isinstance(most, bool) or most < 1):
        raise reader.refusal("max_per_hour", "is not a number from 1 on")
    own = {"max_per_hour": most, "every_job": reader.take("every_job", bool, default=False)}
    if service == "sns":
        choice = _topic(reader, name, own)
    else:
        secret = reader.take("secret", str, f"{CHANNEL_SECRETS}{name}")
        if not _SECRET.match(secret):
            raise reader.refusal("secret", "is not the name of a secret, which is no address")
        choice = ChannelChoice(service, secret, **own)
    reader.done()
    return choice


def _topic(reader: TableReader, name: str, own: Mapping[str, Any]) -> ChannelChoice:
    arn = None
    if name != OWN_TOPIC:
        arn = reader.take("topic_arn", str, None)
        if arn is None or not _TOPIC_ARN.match(arn):
            raise reader.refusal("topic_arn", "is not the ARN of a standard SNS topic")
    key = reader.take("key_arn", str, None)
    if key is not None and not _KEY_ARN.match(key):
        why = "is not the ARN of a KMS key, on which alone a permission can be granted"
        raise reader.refusal("key_arn", why)
    return ChannelChoice("sns", None, arn, key, **own)


def parse_routes(
    reader: TableReader, channels: Mapping[str, ChannelChoice], rules: Collection[str]
) -> Routes:
    """`[[route]]` and `default_to`. Raises BadPolicy.

    Without `default_to`: the channels that no route names, or else the stack's own topic.
    """
    rows = tuple(_route(row, channels, rules) for row in reader.tables("route"))
    routed = {name for row in rows for name in row.to}
    default = _names(reader, "default_to", channels)
    if not default:
        default = tuple(name for name in channels if name not in routed) or (OWN_TOPIC,)
    if (named_so := len(default) + sum(len(row.to) for row in rows)) > MOST_NAMED:
        raise BadPolicy(f"the routes name channels {named_so} times: {MOST_NAMED} at most")
    return Routes(default, rows)


def _names(reader: TableReader, key: str, channels: Mapping[str, object]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(reader.strings(key)))
    for name in names:
        if name not in channels:
            near = did_you_mean(name, sorted(channels))
            raise reader.refusal(key, f"names {name!r}: there is no such channel{near}")
    if key in reader.table and not names:
        raise reader.refusal(key, "names no channel")
    return names


def _route(
    reader: TableReader, channels: Mapping[str, ChannelChoice], rules: Collection[str]
) -> Route:
    of_jobs, to = conditions(reader), _names(reader, "to", channels)
    route = Route(
        family=of_jobs.family,
        tag=of_jobs.tag,
        account=of_jobs.account,
        owner=reader.take("owner", str, None),
        kind=_one_of(reader, "kind", [kind.value for kind in JobKind]),
        rule=_one_of(reader, "rule", sorted(rules)),
        min_month_severity=_severity(reader),
        min_usd_per_month=reader.amount_if_any("min_usd_per_month"),
        to=to,
        every_job=reader.take("every_job", bool, default=False),
    )
    reader.done()
    if not to:
        raise BadPolicy(f"{named(reader.at)} needs to, a list of channels", reader.at)
    if route == Route(to=to, every_job=route.every_job):
        known = ", ".join(sorted(reader.used - {"to", "every_job"}))
        raise BadPolicy(f"{named(reader.at)} needs a condition: {known}", reader.at)
    if route.every_job and (other := [key for key in _OF_ADVICE if key in reader.table]):
        why = f"is about jobs, and {other[0]} is not: give the lines a route of their own"
        raise reader.refusal("every_job", why)
    return route


def _severity(reader: TableReader) -> Severity | None:
    word = _one_of(reader, "min_month_severity", [*Severity])
    return None if word is None else Severity(word)


def _one_of(reader: TableReader, key: str, known: Sequence[str]) -> str | None:
    """A word out of few, or None."""
    word: str | None = reader.take(key, str, None)
    if word is not None and word not in known:
        few = f"is not one of {', '.join(known)}"
        why = few if key != "rule" else f"names {word!r}: there is no such rule"
        raise reader.refusal(key, f"{why}{did_you_mean(word, known)}")
    return word
