"""The policy of the users: mode, floor, accounts, owners, thresholds and exemptions.

Unknown keys are refused, so that a typing mistake never switches a rule off unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct, field

from sageaudit.domain.bill.counterfactual import SeverityLimits
from sageaudit.domain.bill.finding import Exemption, Severity
from sageaudit.domain.job.describe import TAGS, TagNames
from sageaudit.domain.job.parts import Direction
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy import discounts, rule_choices, scope
from sageaudit.domain.policy.discounts import Discounts
from sageaudit.domain.policy.routes import (
    ChannelChoice,
    JobRouteFacts,
    Routes,
    own_topic,
    parse_channels,
    parse_routes,
)
from sageaudit.domain.policy.rule_choices import Requirement
from sageaudit.domain.policy.scope import DigestTimes, Members, Watching
from sageaudit.domain.policy.table_reader import (
    HIGHEST,
    Conditions,
    TableReader,
    conditions,
    is_number,
    named,
)
from sageaudit.domain.prices.known_prices import OwnRates
from sageaudit.domain.token_shapes import is_name
from sageaudit.errors import BadPolicy
from sageaudit.structs import replace

_OWNER_TAGS = ("owner", "Owner", "team", "Team", "sagemaker:user-profile-arn")
_MOST_SHOWN = 3
"""Cost tags that are stored with each audit: each one makes its row longer."""
_OF_MESSAGES = frozenset({"channels", "default_to", "digest", "mentions", "route", "watch"})
_SLACK_ID = re.compile(r"(?:U|W|S)[A-Z0-9]{6,}\Z")

Mode = Literal["tell", "observe"]
"""Whether audits are notified, or only stored."""
Catalogue = Mapping[str, Mapping[str, str]]
"""Each rule's name with its thresholds' keys and their units."""
_SHARE, _WHOLE_PERCENT = "percent of ", 100
_ID = re.compile(r"SA\d{3}\Z", re.IGNORECASE)


class RuleChoices(Struct, frozen=True):
    """`[rules]` and `[require]` of a policy, or of one of its sections."""

    off: frozenset[str] = frozenset()
    on: frozenset[str] = frozenset()
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    severities: Mapping[str, Severity] = field(default_factory=dict)
    require: Mapping[str, Requirement] = field(default_factory=dict)

    def then(self, later: RuleChoices) -> RuleChoices:
        """These choices overridden by a later section's; its `on` cancels an earlier `off`."""
        rules = self.thresholds.keys() | later.thresholds.keys()
        return RuleChoices(
            off=(self.off | later.off) - later.on,
            on=self.on | later.on,
            thresholds={
                rule: {**self.thresholds.get(rule, {}), **later.thresholds.get(rule, {})}
                for rule in rules
            },
            severities={**self.severities, **later.severities},
            require={**self.require, **later.require},
        )


class Section(Conditions, frozen=True):
    """A `[[for]]` of a policy: choices for the jobs that match all of its conditions."""

    rules: RuleChoices = RuleChoices()


class FamilyExemption(Struct, frozen=True):
    """Accepts the findings of `rule` in `family` (None: in all families)."""

    rule: str
    family: str | None
    exemption: Exemption


class Policy(Struct, frozen=True):
    """A validated policy; the defaults are those of a fresh install."""

    mode: Mode = "tell"
    floor_usd: Decimal = Decimal(5)
    trial_floor_usd: Decimal = Decimal(20)
    """What is worth a trial is notified from so many USD of a family's 30 days on. Our choice."""
    dearer_percent: Decimal = Decimal(100)
    dearer_floor_usd: Decimal = Decimal(20)
    """A run that cost so much more than its like is notified. Our choice."""
    digest: DigestTimes | None = DigestTimes()
    """When the weekly digest is sent; None: never."""
    watch: Watching | None = Watching()
    """Which running jobs are watched; None: none."""
    members: Members = Members()
    owner_tags: tuple[str, ...] = _OWNER_TAGS
    family_tag: str | None = None
    mentions: Mapping[str, str] = field(default_factory=dict)
    """By owner tag: the Slack user or group id to mention; other owners are not mentioned."""
    severity: SeverityLimits = SeverityLimits()
    rules_off: frozenset[str] = frozenset()
    rules_on: frozenset[str] = frozenset()
    """Rules that are off unless they are listed here."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """By rule name: replaces the severity by dollars."""
    require: Mapping[str, Requirement] = field(default_factory=dict)
    """By path: what an organisation demands of its jobs."""
    objectives: Mapping[str, Direction] = field(default_factory=dict)
    """By metric name: whether more or less is better."""
    commitment_usd_per_hour: Decimal | None = None
    """Hourly commitment of a Savings Plan in USD, for the rule commitment-candidate."""
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    """Choices for some jobs only, which `for_job` applies."""
    exemptions: tuple[FamilyExemption, ...] = ()
    tags_may_accept: frozenset[str] | None = None
    """Rules whose findings a job's own tag may accept; None: those that hide no lost dollars."""
    tags_shown: tuple[str, ...] = ()
    """The cost tags whose values are columns of the history, `tags.show`."""
    discounts: Discounts = Discounts()
    channels: Mapping[str, ChannelChoice] = field(default_factory=own_topic)
    """By name; the stack's own topic is always one of them."""
    routes: Routes = Routes()
    version: str = "default"

    @property
    def tags_read(self) -> TagNames:
        """The names of the tags that audits read under this policy; no other is kept.

        Of a tag that is only required to be set, the value is not kept.
        """
        sections = (one.tag[0] for one in (*self.sections, *self.routes.rows) if one.tag)
        family = () if self.family_tag is None else (self.family_tag,)
        values = TAGS.union(self.owner_tags, self.tags_shown, sections, family)
        tables = [self.require, *(section.rules.require for section in self.sections)]
        required = [one for table in tables for one in table.values() if one.tag is not None]
        compared = (one.tag for one in required if one.tag and one.reads_value)
        return TagNames(values.union(compared), frozenset(one.tag for one in required if one.tag))

    @property
    def max_per_hour(self) -> dict[str, int]:
        """By name, of the channels that hold messages: how many are sent in an hour."""
        return {n: one.max_per_hour for n, one in self.channels.items() if one.max_per_hour}

    @property
    def has_job_lines(self) -> bool:
        """Whether a channel or a route asks for a line about each job that ends."""
        of_channels = any(channel.every_job for channel in self.channels.values())
        return of_channels or any(row.every_job for row in self.routes.rows)

    def job_line_channels(self, job: JobRouteFacts) -> tuple[str, ...]:
        """The channels that get a line about this job, each once."""
        own = (name for name, channel in self.channels.items() if channel.every_job)
        routes = (row for row in self.routes.rows if row.every_job and row.selects(job))
        return tuple(dict.fromkeys([*own, *(name for row in routes for name in row.to)]))

    def shown(self, tags: Mapping[str, str]) -> dict[str, str | None]:
        """The values of the cost tags, None for one that the job does not have."""
        return {tag: tags.get(tag) or None for tag in self.tags_shown}

    def owner(self, tags: Mapping[str, str]) -> str | None:
        """The value of the job's first owner tag; of an ARN, only the last part."""
        for tag in self.owner_tags:
            if (value := tags.get(tag)) and not value.isspace():
                return value.rsplit("/", 1)[-1] if value.startswith("arn:") else value
        return None

    def for_job(self, account: str | None, family: str, tags: Mapping[str, str]) -> Policy:
        """The policy for one job; later sections override earlier ones."""
        rules = RuleChoices(
            self.rules_off, self.rules_on, self.thresholds, self.severities, self.require
        )
        for section in self.sections:
            if section.matches_job(account, family, tags):
                rules = rules.then(section.rules)
        return replace(
            self,
            rules_off=rules.off,
            rules_on=rules.on,
            thresholds=rules.thresholds,
            severities=rules.severities,
            require=rules.require,
        )


def parse(table: Mapping[str, Any], known: Catalogue, learnt: OwnRates | None = None) -> Policy:
    """Validates a policy's table against the catalogue of rules. Raises BadPolicy with the key.

    `learnt`: the rates of the file that `discounts.own_rates` names.
    """
    reader = TableReader(table)
    mode = reader.take("mode", str, "tell")
    if mode not in {"tell", "observe"}:
        raise reader.refusal("mode", f'is "tell" or "observe", not {mode!r}')
    rules = _rule_choices(reader.within("rules"), known)
    of_tags, channels = reader.within("tags"), parse_channels(reader.within("channels"))
    shown = _shown(of_tags)
    policy = Policy(
        mode="observe" if mode == "observe" else "tell",
        floor_usd=reader.amount("floor_usd", 5),
        trial_floor_usd=reader.amount("trial_floor_usd", 20),
        dearer_percent=reader.amount("dearer_percent", 100, ""),
        dearer_floor_usd=reader.amount("dearer_floor_usd", 20),
        digest=scope.parse(reader.within("digest")),
        watch=scope.parse(reader.within("watch")),
        members=scope.parse(reader.within("accounts"), scope.region_names(reader)),
        owner_tags=tuple(reader.strings("owner_tags", _without(_OWNER_TAGS, shown))),
        family_tag=reader.take("family_tag", str, None),
        mentions=_mentions(reader.within("mentions")),
        severity=_limits(reader.within("severity")),
        rules_off=rules.off,
        rules_on=rules.on,
        severities=rules.severities,
        require=rule_choices.parse(reader.within("require")),
        thresholds=rules.thresholds,
        sections=tuple(_section(row, known) for row in reader.tables("for")),
        objectives=_objectives(reader.within("objectives")),
        commitment_usd_per_hour=_commitment(reader.within("commitment")),
        exemptions=tuple(_exemption(row, known) for row in reader.tables("exempt")),
        tags_may_accept=_may_accept(of_tags, known),
        tags_shown=shown,
        discounts=discounts.parse(reader.within("discounts"), learnt),
        channels=channels,
        routes=parse_routes(reader, channels, known),
    )
    reader.done()
    return replace(policy, version=_digest(table, learnt))


def _rule_choices(reader: TableReader, known: Catalogue) -> RuleChoices:
    """Reads a table of rules. Raises BadPolicy naming a key that the catalogue does not have."""
    off, on = reader.strings("off"), reader.strings("on")
    for key, names in (("off", off), ("on", on)):
        for name in names:
            if name not in known:
                raise reader.refusal(key, f"names {name!r}: {no_rule(name, known)}")
    if both := sorted(set(off) & set(on)):
        raise reader.refusal("on", f"names {both[0]!r}, and so does off")
    thresholds: dict[str, dict[str, float]] = {}
    severities: dict[str, Severity] = {}
    for name in reader.rest():
        if name not in known:
            raise reader.refusal(name, f"cannot be set: {no_rule(name, known)}")
        table = reader.within(name)
        if "severity" in table.table:
            severities[name] = _severity(table)
        thresholds[name] = {key: _threshold(table, key, known[name]) for key in table.rest()}
    return RuleChoices(
        off=frozenset(off),
        on=frozenset(on),
        thresholds={name: values for name, values in thresholds.items() if values},
        severities=severities,
    )


def no_rule(name: str, known: Catalogue) -> str:
    """A sentence saying that no rule has this name, with a suggestion if one is close."""
    if _ID.match(name):
        return "a policy names a rule by its name, such as spot-not-used, not by its id"
    return f"there is no such rule{did_you_mean(name, sorted(known))}"


def _severity(table: TableReader) -> Severity:
    try:
        return Severity(table.take("severity", str, ""))
    except ValueError as error:
        raise table.refusal("severity", f"is not one of {', '.join(Severity)}") from error


def _threshold(table: TableReader, key: str, units: Mapping[str, str]) -> float:
    value = table.table[key]
    if key not in units:
        has = ", ".join(sorted({*units, "severity"}))
        raise table.refusal(key, f"is no threshold of this rule; it has {has}")
    if not is_number(value):
        raise table.refusal(key, f"is not a number from 0 to {HIGHEST:,}")
    if units[key].startswith(_SHARE) and value > _WHOLE_PERCENT:
        raise table.refusal(key, f"is above 100: it is in {units[key]}")
    return float(value)


def _limits(reader: TableReader) -> SeverityLimits:
    limits = SeverityLimits(reader.amount("high_usd", 100), reader.amount("medium_usd", 10))
    reader.done()
    if limits.medium_usd > limits.high_usd:
        if "medium_usd" in reader.table:
            raise reader.refusal("medium_usd", "is above severity.high_usd")
        raise reader.refusal("high_usd", "is below severity.medium_usd")
    return limits


def _section(reader: TableReader, known: Catalogue) -> Section:
    """One `[[for]]`."""
    of_jobs, rules = conditions(reader), _rule_choices(reader.within("rules"), known)
    rules = replace(rules, require=rule_choices.parse(reader.within("require")))
    reader.done()
    if of_jobs == Conditions():
        raise BadPolicy(f"{named(reader.at)} needs family, tag or account", reader.at)
    if rules == RuleChoices():
        raise BadPolicy(f"{named(reader.at)} has no rules, and requires nothing", reader.at)
    return Section(of_jobs.family, of_jobs.tag, of_jobs.account, rules)


def _objectives(reader: TableReader) -> dict[str, Direction]:
    """By metric: whether more or less is better."""
    ways = {way.value: way for way in Direction}
    for metric in reader.table:
        if reader.take(metric, str, "") not in ways:
            raise reader.refusal(metric, f"is not one of {', '.join(ways)}")
    return {metric: ways[way] for metric, way in reader.table.items()}


def _commitment(reader: TableReader) -> Decimal | None:
    rate = reader.amount_if_any("usd_per_hour")
    reader.done()
    return rate


def _mentions(reader: TableReader) -> dict[str, str]:
    for owner, slack_id in reader.table.items():
        if not isinstance(slack_id, str) or not _SLACK_ID.match(slack_id):
            raise reader.refusal(owner, "is not a Slack user or group id")
    return dict(reader.table)


def _shown(reader: TableReader) -> tuple[str, ...]:
    """`tags.show`: names that pass the check of shown names, each once in any case."""
    names = tuple(reader.strings("show"))
    if len(names) > _MOST_SHOWN:
        raise reader.refusal("show", f"names {len(names)} tags: {_MOST_SHOWN} at most")
    if len({name.lower() for name in names}) < len(names):
        raise reader.refusal("show", "names a tag twice")
    if withheld := [name for name in names if not is_name(name) or "," in name or "=" in name]:
        raise reader.refusal("show", f"names {withheld[0]!r}, which no column can be called")
    return names


def _without(tags: tuple[str, ...], shown: tuple[str, ...]) -> tuple[str, ...]:
    """The usual owner tags: one with a column of its own names no owner, unless it is told to."""
    return tuple(tag for tag in tags if tag.lower() not in {name.lower() for name in shown})


def _may_accept(reader: TableReader, known: Catalogue) -> frozenset[str] | None:
    """The rules of `tags.may_accept`; None where it is not set."""
    names = reader.strings("may_accept")
    reader.done()
    for name in names:
        if name not in known:
            raise reader.refusal("may_accept", f"names {name!r}: {no_rule(name, known)}")
    return frozenset(names) if "may_accept" in reader.table else None


def _exemption(reader: TableReader, known: Catalogue) -> FamilyExemption:
    rule, family = reader.take("rule", str, None), reader.take("family", str, None)
    by, reason = reader.take("by", str, None), reader.take("reason", str, None)
    until = reader.table.get("until")
    reader.used.add("until")
    reader.done()
    if not rule or not by or not reason:
        raise BadPolicy(f"{named(reader.at)} needs rule, by and reason", reader.at)
    if rule not in known:
        raise reader.refusal("rule", f"names {rule!r}: {no_rule(rule, known)}")
    if until is not None and type(until) is not date:
        raise reader.refusal("until", "is not a date such as 2027-01-31")
    return FamilyExemption(rule, family, Exemption(by, until, reason))


def _digest(table: Mapping[str, Any], learnt: OwnRates | None) -> str:
    """Names what audits are judged by: where messages go and when changes none."""
    judged_by = {key: value for key, value in table.items() if key not in _OF_MESSAGES}
    canonical = json.dumps(judged_by, sort_keys=True, default=str)
    if learnt is not None:
        canonical += "".join(str(rate) for rate in learnt.rows)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
