"""The policy of the users: mode, floor, accounts, owners, thresholds and exemptions.

Unknown keys are refused, so that a typing mistake never switches off a rule unnoticed. Findings
that the policy or a tag accepts stay visible but are not included in any total.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct, field

from sageaudit.domain.bill.counterfactual import SeverityLimits
from sageaudit.domain.bill.finding import Exemption, RuleInfo, Severity
from sageaudit.domain.job.describe import SAGEAUDIT_TAGS, TagNames
from sageaudit.domain.job.parts import Direction
from sageaudit.domain.moments import parse_day
from sageaudit.domain.policy.budgets import Budget, parse_budgets
from sageaudit.domain.policy.discounts import Discounts, parse_discounts
from sageaudit.domain.policy.routes import (
    ChannelConfig,
    JobRouteFacts,
    Routes,
    default_channels,
    parse_channels,
    parse_routes,
)
from sageaudit.domain.policy.rule_choices import (
    Catalogue,
    FamilyExemption,
    JobOverride,
    Requirement,
    RuleSettings,
    parse_exemption,
    parse_requirements,
    parse_section,
    rule_choices,
    tags_may_accept,
)
from sageaudit.domain.policy.scope import (
    DigestSchedule,
    MemberAccounts,
    WatchSettings,
    parse_digest,
    parse_members,
    parse_watch,
    region_names,
)
from sageaudit.domain.policy.table_reader import (
    TableReader,
)
from sageaudit.domain.prices.known_prices import OwnRates
from sageaudit.structs import replace
from sageaudit.token_shapes import is_name

_OWNER_TAGS = ("owner", "Owner", "team", "Team", "sagemaker:user-profile-arn")
_MAX_COST_TAGS = 3
"""The maximum number of cost tags, because each tag makes the row of every audit longer."""
_MESSAGE_KEYS = frozenset(
    {"budget", "channels", "default_to", "digest", "mentions", "route", "watch"}
)
_SLACK_ID = re.compile(r"(?:U|W|S)[A-Z0-9]{6,}\Z")

Mode = Literal["notify", "observe"]
"""`notify` sends messages about audits; `observe` only stores audits."""

IGNORE_TAG = "sageaudit:ignore"
"""A job's tag that accepts findings of rules, such as `gpu-underused spot-not-used
until=2027-01-31`. Spaces separate the rule names, because tag values cannot have commas."""


class Policy(Struct, frozen=True):
    """A validated policy. The defaults are those of a new installation."""

    mode: Mode = "notify"
    floor_usd: Decimal = Decimal(5)
    trial_floor_usd: Decimal = Decimal(20)
    """The minimum USD of a family in 30 days for a message about trials. Our choice."""
    cost_spike_percent: Decimal = Decimal(100)
    """A cost spike is at least this percentage above comparable runs. Our choice."""
    cost_spike_min_usd: Decimal = Decimal(20)
    """A cost spike is at least this many USD above comparable runs. Our choice."""
    digest: DigestSchedule | None = DigestSchedule()
    """When the weekly digest is sent; None if never."""
    watch: WatchSettings | None = WatchSettings()
    """Which running jobs are watched; None if none are."""
    members: MemberAccounts = MemberAccounts()
    owner_tags: tuple[str, ...] = _OWNER_TAGS
    family_tag: str | None = None
    mentions: Mapping[str, str] = field(default_factory=dict)
    """The Slack user or group id to mention, by owner. Other owners are not mentioned."""
    severity: SeverityLimits = SeverityLimits()
    disabled_rules: frozenset[str] = frozenset()
    enabled_rules: frozenset[str] = frozenset()
    """The rules that are off by default and that this policy switches on."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """The severity of a rule's findings, by rule name, whatever their dollars."""
    require: Mapping[str, Requirement] = field(default_factory=dict)
    """What the organisation requires of its jobs, by the path of a setting or tag."""
    objectives: Mapping[str, Direction] = field(default_factory=dict)
    """Whether a higher or lower value of a metric is better, by metric name."""
    commitment_usd_per_hour: Decimal | None = None
    """The hourly commitment of a Savings Plan in USD, for the rule commitment-candidate."""
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    overrides: tuple[JobOverride, ...] = ()
    """Settings for certain jobs, which `for_job` applies."""
    exemptions: tuple[FamilyExemption, ...] = ()
    tags_may_accept: frozenset[str] | None = None
    """The rules whose findings a job's own tag may accept. None: each rule decides
    (`can_tag_accept`)."""
    cost_tag_names: tuple[str, ...] = ()
    """The cost tags (`tags.show`) whose values are columns of the history."""
    discounts: Discounts = Discounts()
    channels: Mapping[str, ChannelConfig] = field(default_factory=default_channels)
    """The channels by name, always including the stack's own topic."""
    routes: Routes = Routes()
    budgets: tuple[Budget, ...] = ()
    version: str = "default"

    @property
    def tag_names(self) -> TagNames:
        """The names of the tags that audits read under this policy. No other tags are stored.

        If a tag is only required to be set, its value is not stored.
        """
        section_tags = (row.tag[0] for row in (*self.overrides, *self.routes.rows) if row.tag)
        family_tags = () if self.family_tag is None else (self.family_tag,)
        value_tags = SAGEAUDIT_TAGS.union(
            self.owner_tags, self.cost_tag_names, section_tags, family_tags
        )
        tables = [self.require, *(section.rules.require for section in self.overrides)]
        requirements = [row for table in tables for row in table.values() if row.tag is not None]
        compared_tags = (row.tag for row in requirements if row.tag and row.needs_value)
        return TagNames(
            value_tags.union(compared_tags), frozenset(row.tag for row in requirements if row.tag)
        )

    @property
    def max_per_hour(self) -> dict[str, int]:
        """The maximum number of messages an hour, by name of the channels that have a limit."""
        return {name: row.max_per_hour for name, row in self.channels.items() if row.max_per_hour}

    @property
    def has_job_lines(self) -> bool:
        """Whether a channel or a route gets a line about each job that ends."""
        has_channel = any(channel.job_lines for channel in self.channels.values())
        return has_channel or any(row.job_lines for row in self.routes.rows)

    def job_line_channels(self, job: JobRouteFacts) -> tuple[str, ...]:
        """Returns the channels that get a line about this job, each once."""
        own = (name for name, channel in self.channels.items() if channel.job_lines)
        routes = (row for row in self.routes.rows if row.job_lines and row.selects_job(job))
        return tuple(dict.fromkeys([*own, *(name for row in routes for name in row.channels)]))

    def cost_tags(self, tags: Mapping[str, str]) -> dict[str, str | None]:
        """Returns the values of the cost tags; None for a tag that the job does not have."""
        return {tag: tags.get(tag) or None for tag in self.cost_tag_names}

    def owner(self, tags: Mapping[str, str]) -> str | None:
        """Returns the value of the job's first owner tag; None without one.

        If the value is an ARN, only its last part is returned.
        """
        for tag in self.owner_tags:
            if (value := tags.get(tag)) and not value.isspace():
                return value.rsplit("/", 1)[-1] if value.startswith("arn:") else value
        return None

    def for_job(self, account: str | None, family: str, tags: Mapping[str, str]) -> Policy:
        """Returns the policy for one job. Later `[[for]]` sections override earlier ones."""
        rules = RuleSettings(
            self.disabled_rules, self.enabled_rules, self.thresholds, self.severities, self.require
        )
        for section in self.overrides:
            if section.matches_job(account, family, tags):
                rules = rules.overridden_by(section.rules)
        return replace(
            self,
            disabled_rules=rules.disabled_rules,
            enabled_rules=rules.enabled_rules,
            thresholds=rules.thresholds,
            severities=rules.severities,
            require=rules.require,
        )


def parse(
    table: Mapping[str, Any], catalogue: Catalogue, own_rates: OwnRates | None = None
) -> Policy:
    """Reads a policy and checks it against the catalogue of rules. Raises BadPolicy with the key.

    `own_rates` are the rates from the file that the key `discounts.own_rates` names.
    """
    reader = TableReader(table)
    mode = reader.read("mode", str, "notify")
    if mode not in {"notify", "observe"}:
        raise reader.error("mode", f'is "notify" or "observe", not {mode!r}')
    rules = rule_choices(reader.subtable("rules"), catalogue)
    tags, channels = reader.subtable("tags"), parse_channels(reader.subtable("channels"))
    cost_tags = _cost_tag_names(tags)
    policy = Policy(
        mode="observe" if mode == "observe" else "notify",
        floor_usd=reader.amount("floor_usd", 5),
        trial_floor_usd=reader.amount("trial_floor_usd", 20),
        cost_spike_percent=reader.amount("cost_spike_percent", 100, ""),
        cost_spike_min_usd=reader.amount("cost_spike_min_usd", 20),
        digest=parse_digest(reader.subtable("digest")),
        watch=parse_watch(reader.subtable("watch")),
        members=parse_members(reader.subtable("accounts"), region_names(reader)),
        owner_tags=tuple(reader.strings("owner_tags", _usual_owner_tags(_OWNER_TAGS, cost_tags))),
        family_tag=reader.read("family_tag", str, None),
        mentions=_mentions(reader.subtable("mentions")),
        severity=_limits(reader.subtable("severity")),
        disabled_rules=rules.disabled_rules,
        enabled_rules=rules.enabled_rules,
        severities=rules.severities,
        require=parse_requirements(reader.subtable("require")),
        thresholds=rules.thresholds,
        overrides=tuple(parse_section(row, catalogue) for row in reader.table_array("for")),
        objectives=_objectives(reader.subtable("objectives")),
        commitment_usd_per_hour=_commitment(reader.subtable("commitment")),
        exemptions=tuple(parse_exemption(row, catalogue) for row in reader.table_array("exempt")),
        tags_may_accept=tags_may_accept(tags, catalogue),
        cost_tag_names=cost_tags,
        discounts=parse_discounts(reader.subtable("discounts"), own_rates),
        channels=channels,
        routes=parse_routes(reader, channels, catalogue),
        budgets=parse_budgets(reader, channels, cost_tags),
    )
    reader.reject_unread_keys()
    return replace(policy, version=_digest(table, own_rates))


def _limits(reader: TableReader) -> SeverityLimits:
    limits = SeverityLimits(reader.amount("high_usd", 100), reader.amount("medium_usd", 10))
    reader.reject_unread_keys()
    if limits.medium_usd > limits.high_usd:
        if "medium_usd" in reader.table:
            raise reader.error("medium_usd", "is above severity.high_usd")
        raise reader.error("high_usd", "is below severity.medium_usd")
    return limits


def _objectives(reader: TableReader) -> dict[str, Direction]:
    directions = {direction.value: direction for direction in Direction}
    for metric in reader.table:
        if reader.read(metric, str, "") not in directions:
            raise reader.error(metric, f"is not one of {', '.join(directions)}")
    return {metric: directions[word] for metric, word in reader.table.items()}


def _commitment(reader: TableReader) -> Decimal | None:
    rate = reader.optional_amount("usd_per_hour")
    reader.reject_unread_keys()
    return rate


def _mentions(reader: TableReader) -> dict[str, str]:
    for owner, slack_id in reader.table.items():
        if not isinstance(slack_id, str) or not _SLACK_ID.match(slack_id):
            raise reader.error(owner, "is not a Slack user or group id")
    return dict(reader.table)


def _cost_tag_names(reader: TableReader) -> tuple[str, ...]:
    """Returns the names of the cost tags. Rejects names that differ only in case."""
    names = tuple(reader.strings("show"))
    if len(names) > _MAX_COST_TAGS:
        raise reader.error("show", f"names {len(names)} tags: {_MAX_COST_TAGS} at most")
    if len({name.lower() for name in names}) < len(names):
        raise reader.error("show", "names a tag twice")
    if unsafe_names := [name for name in names if not is_name(name) or "," in name or "=" in name]:
        raise reader.error("show", f"names {unsafe_names[0]!r}, which no column can be called")
    return names


def _usual_owner_tags(tags: tuple[str, ...], cost_tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(tag for tag in tags if tag.lower() not in {name.lower() for name in cost_tags})


def _digest(table: Mapping[str, Any], own_rates: OwnRates | None) -> str:
    """Returns a digest of the settings that audits depend on.

    Keys about messages are left out.
    """
    audit_settings = {key: value for key, value in table.items() if key not in _MESSAGE_KEYS}
    canonical = json.dumps(audit_settings, sort_keys=True, default=str)
    if own_rates is not None:
        canonical += "".join(str(rate) for rate in own_rates.rows)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def exemptions(
    policy: Policy, family: str, tags: Mapping[str, str], rules: Iterable[RuleInfo], today: date
) -> tuple[dict[str, Exemption], list[str]]:
    """Returns the exemptions in force today, by rule, and warnings about the job's tag.

    The tag is ignored for rules whose findings no tag may accept.
    """
    rule_by_name = {rule.name: rule for rule in rules}
    exemption_by_rule = {
        row.rule: row.exemption
        for row in policy.exemptions
        if row.family in {None, family}
        and (row.exemption.until is None or row.exemption.until >= today)
    }
    if IGNORE_TAG not in tags:
        return exemption_by_rule, []
    tag_words = tags[IGNORE_TAG].split()
    rule_names, until = [word for word in tag_words if "=" not in word], None
    try:
        until = _read_until([word for word in tag_words if "=" in word])
    except ValueError:
        rule_names = []
    if not rule_names or not set(rule_names) <= rule_by_name.keys():
        return exemption_by_rule, [
            f"the tag {IGNORE_TAG} is ignored: it takes rule names, and until=YYYY-MM-DD"
        ]
    if until is not None and until < today:
        return exemption_by_rule, []
    requested_names = [name for name in dict.fromkeys(rule_names) if name not in exemption_by_rule]
    refused_names = [
        name
        for name in requested_names
        if not _can_tag_accept(policy, rule_by_name[name], rule_by_name)
    ]
    exemption = Exemption("tag", until, f"tag {IGNORE_TAG}")
    tag_exemptions = {name: exemption for name in requested_names if name not in refused_names}
    return exemption_by_rule | tag_exemptions, [_refusal(refused_names)] if refused_names else []


def _can_tag_accept(policy: Policy, rule: RuleInfo, rule_by_name: Mapping[str, RuleInfo]) -> bool:
    """Returns whether a job's own tag may accept the rule's findings.

    Without a setting in the policy, the rule and all rules that it subsumes must allow it.
    Otherwise anyone who may tag a job could hide what the job lost.
    """
    if policy.tags_may_accept is not None:
        return rule.name in policy.tags_may_accept
    subsumed_rules = [rule_by_name[name] for name in rule.subsumes if name in rule_by_name]
    return all(part.can_tag_accept for part in (rule, *subsumed_rules))


def _refusal(rule_names: list[str]) -> str:
    return (
        f"the tag {IGNORE_TAG} is ignored for {', '.join(rule_names)}: the policy does not let a"
        " job's own tag accept that (tags.may_accept)"
    )


def _read_until(words: list[str]) -> date | None:
    """Returns the last day of an exemption; None without one.

    Raises ValueError for an invalid date. A typing mistake must not make an exemption endless.
    """
    if not words:
        return None
    [word] = words
    return parse_day(word.removeprefix("until="))
