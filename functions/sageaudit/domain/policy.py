"""What its users tune: mode, floor, accounts, owners, thresholds, exemptions. Validated whole.

A key that does not exist is refused, so that a typing mistake never switches a rule off unseen.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from sageaudit.domain import discounts
from sageaudit.domain.counterfactual import SeverityLimits
from sageaudit.domain.discounts import Discounts
from sageaudit.domain.finding import Exemption, Severity
from sageaudit.domain.job import Direction
from sageaudit.domain.table_reader import TableReader, is_number
from sageaudit.errors import BadPolicy

_OWNER_TAGS = ("owner", "Owner", "team", "Team", "sagemaker:user-profile-arn")
_ACCOUNT = re.compile(r"\d{12}\Z")
_ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+\Z")
_SHARE, _WHOLE_PERCENT = "percent of ", 100
_SLACK_ID = re.compile(r"(?:U|W|S)[A-Z0-9]{6,}\Z")


@dataclass(frozen=True, slots=True)
class FamilyExemption:
    """An accepted finding: `rule` in `family` (None: in all)."""

    rule: str
    family: str | None
    exemption: Exemption


@dataclass(frozen=True, slots=True)
class Policy:
    """The defaults are those of a fresh install."""

    mode: Literal["tell", "observe"] = "tell"
    floor_usd: Decimal = Decimal(5)
    accounts: Mapping[str, str | None] = field(default_factory=dict)
    """Other accounts to audit, each with the role to assume there (None: the own role)."""
    owner_tags: tuple[str, ...] = _OWNER_TAGS
    family_tag: str | None = None
    mentions: Mapping[str, str] = field(default_factory=dict)
    """Owner, as its tag says, to Slack user or group id: nobody else is mentioned."""
    severity: SeverityLimits = SeverityLimits()
    rules_off: frozenset[str] = frozenset()
    rules_on: frozenset[str] = frozenset()
    """Rules that are off unless they are listed here."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """By rule name: stands in place of the severity by dollars."""
    objectives: Mapping[str, Direction] = field(default_factory=dict)
    """By metric name: which way it is better."""
    commitment_usd_per_hour: Decimal | None = None
    """What a Savings Plan would have the account spend each hour, for commitment-candidate."""
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    exemptions: tuple[FamilyExemption, ...] = ()
    discounts: Discounts = Discounts()
    version: str = "default"

    def owner(self, tags: Mapping[str, str]) -> str | None:
        """The first tag of the list that the job carries; an ARN's last part."""
        for tag in self.owner_tags:
            if value := tags.get(tag):
                return value.rsplit("/", 1)[-1] if value.startswith("arn:") else value
        return None


def parse(
    table: Mapping[str, Any], known_rules: Mapping[str, Mapping[str, str]] | None = None
) -> Policy:
    """Validates a policy's table. `known_rules` maps each rule to its thresholds' keys and units.

    Raises BadPolicy naming the key.
    """
    reader = TableReader(table, "")
    mode = reader.take("mode", str, "tell")
    if mode not in {"tell", "observe"}:
        raise BadPolicy(f'mode is "tell" or "observe", not {mode!r}')
    severity = TableReader(reader.take("severity", dict, {}), "severity.")
    limits = SeverityLimits(severity.usd("high_usd", 100), severity.usd("medium_usd", 10))
    severity.done()
    if limits.medium_usd > limits.high_usd:
        raise BadPolicy("severity.medium_usd is above severity.high_usd")
    rules = TableReader(reader.take("rules", dict, {}), "rules.")
    off = frozenset(rules.strings("off", ()))
    policy = Policy(
        mode="observe" if mode == "observe" else "tell",
        floor_usd=reader.usd("floor_usd", 5),
        accounts=_accounts(reader.take("accounts", dict, {})),
        owner_tags=tuple(reader.strings("owner_tags", _OWNER_TAGS)),
        family_tag=reader.take("family_tag", str, None),
        mentions=_mentions(reader.take("mentions", dict, {})),
        severity=limits,
        rules_off=off,
        thresholds={name: _thresholds(name, rules.take(name, dict, {})) for name in rules.rest()},
        exemptions=tuple(_exemption(row, n) for n, row in enumerate(reader.tables("exempt"))),
        discounts=discounts.parse(TableReader(reader.take("discounts", dict, {}), "discounts.")),
    )
    reader.done()
    if known_rules is not None:
        _check_rules(policy, known_rules)
    return replace(policy, version=_digest(table))


def _check_rules(policy: Policy, known: Mapping[str, Mapping[str, str]]) -> None:
    named = policy.rules_off | set(policy.thresholds) | {e.rule for e in policy.exemptions}
    if strange := sorted(named - set(known)):
        raise BadPolicy(
            f"there is no rule {strange[0]!r}; the rules are {', '.join(sorted(known))}"
        )
    for name, values in policy.thresholds.items():
        units = known[name]
        if odd := sorted(set(values) - set(units)):
            has = ", ".join(sorted(units)) or "none"
            raise BadPolicy(f"rules.{name} has no threshold {odd[0]!r}; it has {has}")
        for key, value in values.items():
            if units[key].startswith(_SHARE) and value > _WHOLE_PERCENT:
                raise BadPolicy(f"rules.{name}.{key} is above 100: it is in {units[key]}")


def _accounts(table: Mapping[str, Any]) -> dict[str, str | None]:
    accounts: dict[str, str | None] = {}
    for account, role in table.items():
        if not _ACCOUNT.match(account):
            raise BadPolicy(f"accounts.{account} is not an account id of 12 digits")
        if not isinstance(role, str) or not _ROLE_ARN.match(role):
            raise BadPolicy(f"accounts.{account} is not the ARN of a role to assume")
        accounts[account] = role
    return accounts


def _mentions(table: Mapping[str, Any]) -> dict[str, str]:
    for owner, slack_id in table.items():
        if not isinstance(slack_id, str) or not _SLACK_ID.match(slack_id):
            raise BadPolicy(f"mentions.{owner} is not a Slack user or group id")
    return dict(table)


def _thresholds(name: str, table: Mapping[str, Any]) -> dict[str, float]:
    for key, value in table.items():
        if not is_number(value):
            raise BadPolicy(f"rules.{name}.{key} is not a number of 0 or more")
    return {key: float(value) for key, value in table.items()}


def _exemption(row: Mapping[str, Any], position: int) -> FamilyExemption:
    reader = TableReader(row, f"exempt[{position}].")
    rule, family = reader.take("rule", str, None), reader.take("family", str, None)
    by, until, reason = reader.take("by", str, None), row.get("until"), row.get("reason")
    for key in ("until", "reason"):
        reader.used.add(key)
    reader.done()
    if not rule or not by or not isinstance(reason, str) or not reason:
        raise BadPolicy(f"exempt[{position}] needs rule, by and reason")
    if until is not None and type(until) is not date:
        raise BadPolicy(f"exempt[{position}].until is not a date such as 2027-01-31")
    return FamilyExemption(rule, family, Exemption(by, until, reason))


def _digest(table: Mapping[str, Any]) -> str:
    canonical = json.dumps(table, sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
