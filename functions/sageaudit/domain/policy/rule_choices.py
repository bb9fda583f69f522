"""A policy's settings of rules: `[rules]`, `[require]`, `[[for]]` and `[[exempt]]`.

`[require]` says what an organisation requires of its jobs' settings and tags. A key is the path of
a setting in a training request, for jobs of any kind, or `Tags.` and the name of a tag. A value is
true or false, a number, a word, "set", "not set", or a comparison such as "<= 86400".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.bill.finding import Exemption, Severity
from sageaudit.domain.job.describe import STATES
from sageaudit.domain.job.fields import StoredAs
from sageaudit.domain.job.settings import PRESENT, SETTINGS, SettingValue
from sageaudit.domain.moments import YEARS_TEXT, has_valid_year
from sageaudit.domain.nearest import did_you_mean, nearest_name
from sageaudit.domain.policy.table_reader import (
    MAX_NUMBER,
    Conditions,
    TableReader,
    conditions,
    full_key,
    is_number,
)
from sageaudit.errors import BadPolicy
from sageaudit.structs import replace
from sageaudit.token_shapes import is_tag

NOT_SET = "not set"
TAG_PREFIX = "Tags."
_LONGEST_TAG = 128
_COMPARISON = re.compile(r"([<>=!]+)\s*(.*)\Z", re.DOTALL)
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBER_OPERATORS = frozenset({"<", "<=", ">", ">="})
_MET_WHEN_UNSET = frozenset({"!=", "<", "<="})
"""A setting without a value meets these operators, because it is neither equal nor too high."""
Catalogue = Mapping[str, Mapping[str, str]]
"""The units of each rule's thresholds: by rule name, then by threshold name."""
_PERCENT_PREFIX = "percent of "
_WHOLE_PERCENT = 100
_ID = re.compile(r"SA\d{3}\Z", re.IGNORECASE)


class RuleSettings(Struct, frozen=True):
    """`[rules]` and `[require]` of a policy, or of one of its `[[for]]` sections.

    `disabled_rules` and `enabled_rules`: the names of the rules. `thresholds` are by rule, then by
    name. `severities` are by rule. `require` is by the path of a setting or tag.
    """

    disabled_rules: frozenset[str] = frozenset()
    enabled_rules: frozenset[str] = frozenset()
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    severities: Mapping[str, Severity] = field(default_factory=dict)
    require: Mapping[str, Requirement] = field(default_factory=dict)

    def overridden_by(self, later_settings: RuleSettings) -> RuleSettings:
        """Returns these settings, overridden by those of a later section.

        A rule that the later section enables is no longer disabled.
        """
        rules = self.thresholds.keys() | later_settings.thresholds.keys()
        return RuleSettings(
            disabled_rules=(self.disabled_rules | later_settings.disabled_rules)
            - later_settings.enabled_rules,
            enabled_rules=self.enabled_rules | later_settings.enabled_rules,
            thresholds={
                rule: {**self.thresholds.get(rule, {}), **later_settings.thresholds.get(rule, {})}
                for rule in rules
            },
            severities={**self.severities, **later_settings.severities},
            require={**self.require, **later_settings.require},
        )


class JobOverride(Conditions, frozen=True):
    """A `[[for]]` section: settings for the jobs that meet all of its conditions."""

    rules: RuleSettings = RuleSettings()


class FamilyExemption(Struct, frozen=True):
    """Accepts the findings of a rule in a family. None for `family` means all families."""

    rule: str
    family: str | None
    exemption: Exemption


def rule_choices(reader: TableReader, catalogue: Catalogue) -> RuleSettings:
    """Reads a table of rules. Raises BadPolicy for a rule or key that is not in the catalogue."""
    off, on = reader.strings("off"), reader.strings("on")
    for key, names in (("off", off), ("on", on)):
        for name in names:
            if name not in catalogue:
                raise reader.error(key, f"names {name!r}: {unknown_rule_message(name, catalogue)}")
    if in_both := sorted(set(off) & set(on)):
        raise reader.error("on", f"names {in_both[0]!r}, and so does off")
    thresholds: dict[str, dict[str, float]] = {}
    severities: dict[str, Severity] = {}
    for name in reader.unread_keys():
        if name not in catalogue:
            raise reader.error(name, f"cannot be set: {unknown_rule_message(name, catalogue)}")
        table = reader.subtable(name)
        if "severity" in table.table:
            severities[name] = _severity(table)
        thresholds[name] = {
            key: _threshold(table, key, catalogue[name]) for key in table.unread_keys()
        }
    return RuleSettings(
        disabled_rules=frozenset(off),
        enabled_rules=frozenset(on),
        thresholds={name: values for name, values in thresholds.items() if values},
        severities=severities,
    )


def unknown_rule_message(name: str, catalogue: Catalogue) -> str:
    """Returns the message that no rule has this name, perhaps with a similar name."""
    if _ID.match(name):
        return "a policy names a rule by its name, such as spot-not-used, not by its id"
    return f"there is no such rule{did_you_mean(name, sorted(catalogue))}"


def _severity(table: TableReader) -> Severity:
    try:
        return Severity(table.read("severity", str, ""))
    except ValueError as error:
        raise table.error("severity", f"is not one of {', '.join(Severity)}") from error


def _threshold(table: TableReader, key: str, units: Mapping[str, str]) -> float:
    value = table.table[key]
    if key not in units:
        keys = ", ".join(sorted({*units, "severity"}))
        raise table.error(key, f"is not a threshold of this rule; it has {keys}")
    if not is_number(value):
        raise table.error(key, f"is not a number from 0 to {MAX_NUMBER:,}")
    if units[key].startswith(_PERCENT_PREFIX) and value > _WHOLE_PERCENT:
        raise table.error(key, f"is above 100: it is in {units[key]}")
    return float(value)


def parse_section(reader: TableReader, catalogue: Catalogue) -> JobOverride:
    """Reads one `[[for]]` section. Raises BadPolicy."""
    jobs, rules = conditions(reader), rule_choices(reader.subtable("rules"), catalogue)
    rules = replace(rules, require=parse_requirements(reader.subtable("require")))
    reader.reject_unread_keys()
    if jobs == Conditions():
        raise BadPolicy(f"{full_key(reader.path)} needs family, tag or account", reader.path)
    if rules == RuleSettings():
        raise BadPolicy(f"{full_key(reader.path)} has no rules, and requires nothing", reader.path)
    return JobOverride(jobs.family, jobs.tag, jobs.account, rules)


def tags_may_accept(reader: TableReader, catalogue: Catalogue) -> frozenset[str] | None:
    """Reads the rules of `tags.may_accept`; None if the key is absent. Raises BadPolicy."""
    names = reader.strings("may_accept")
    reader.reject_unread_keys()
    for name in names:
        if name not in catalogue:
            raise reader.error(
                "may_accept", f"names {name!r}: {unknown_rule_message(name, catalogue)}"
            )
    return frozenset(names) if "may_accept" in reader.table else None


def parse_exemption(reader: TableReader, catalogue: Catalogue) -> FamilyExemption:
    """Reads one `[[exempt]]` section. Raises BadPolicy."""
    rule, family = reader.read("rule", str, None), reader.read("family", str, None)
    by, reason = reader.read("by", str, None), reader.read("reason", str, None)
    until = reader.table.get("until")
    reader.read_keys.add("until")
    reader.reject_unread_keys()
    if not rule or not by or not reason:
        raise BadPolicy(f"{full_key(reader.path)} needs rule, by and reason", reader.path)
    if rule not in catalogue:
        raise reader.error("rule", f"names {rule!r}: {unknown_rule_message(rule, catalogue)}")
    if until is not None and type(until) is not date:
        raise reader.error("until", "is not a date such as 2027-01-31")
    if until is not None and not has_valid_year(until):
        raise reader.error("until", f"is not in the years {YEARS_TEXT}")
    return FamilyExemption(rule, family, Exemption(by, until, reason))


class Requirement(Struct, frozen=True):
    """A requirement on one setting or tag: set, not set, or a comparison with a value.

    At most one of `flag_value`, `number_value` and `word` is set. Each has one type, so that a
    stored policy can be read back.
    """

    path: str
    operator: str
    flag_value: bool | None = None
    number_value: Decimal | None = None
    word: str | None = None

    @property
    def value(self) -> bool | Decimal | str | None:
        """The value to compare with; None if the setting or tag must only be set or not set."""
        values = (self.flag_value, self.number_value, self.word)
        return next((value for value in values if value is not None), None)

    @property
    def tag(self) -> str | None:
        """The name of the required tag; None for a setting."""
        return self.path.removeprefix(TAG_PREFIX) if self.path.startswith(TAG_PREFIX) else None

    @property
    def needs_value(self) -> bool:
        """Whether values are compared. If not, the setting or tag must only be set or not set."""
        return self.operator in _OPERATORS

    def is_met(self, value: SettingValue) -> bool:
        """Returns whether a value meets the requirement.

        `value` is None if the setting is not set and AWS has no default for it.
        """
        if not self.needs_value:
            return (value is not None) == (self.operator == PRESENT)
        if value is None:
            return self.operator in _MET_WHEN_UNSET
        comparable = value if isinstance(value, bool | str) else Decimal(value)
        return _OPERATORS[self.operator](comparable, self.value)

    @property
    def words(self) -> str:
        """The requirement for a sentence: `set`, `true`, `at most 86400`."""
        value = str(self.value).lower() if isinstance(self.value, bool) else str(self.value)
        signs = {"==": "", "!=": "other than ", "<=": "at most ", ">=": "at least ", "<": "under ",
                 ">": "over "}  # fmt: skip
        return f"{signs[self.operator]}{value}" if self.needs_value else self.operator


def parse_requirements(reader: TableReader) -> dict[str, Requirement]:
    """Reads the requirements of a table, by path. Raises BadPolicy with the key."""
    requirements: dict[str, Requirement] = {}
    for key in reader.unread_keys():
        if isinstance(reader.table[key], dict):  # TOML makes tables of an unquoted path
            subtable = reader.subtable(key)
            nested = {f"{key}.{name}": value for name, value in subtable.table.items()}
            requirements |= parse_requirements(TableReader(nested, reader.path))
        else:
            requirements[key] = _requirement(reader, key)
    return requirements


def _requirement(reader: TableReader, path: str) -> Requirement:
    required_value = reader.read(path, object, None)
    tag = path.removeprefix(TAG_PREFIX) if path.startswith(TAG_PREFIX) else None
    if tag is None and path not in SETTINGS:
        raise reader.error(path, f"is not a setting that can be required{_path_suggestion(path)}")
    if tag is not None and not (is_tag(tag) and len(tag) <= _LONGEST_TAG):
        raise reader.error(path, "does not name a tag")
    stored_as = StoredAs.STATE if tag is not None else SETTINGS[path].stored_as
    if stored_as is StoredAs.FLAG:
        if isinstance(required_value, bool):
            return Requirement(path, "==", flag_value=required_value)
        raise reader.error(path, "is not true or false, without quotes")
    if isinstance(required_value, str) and required_value in {PRESENT, NOT_SET}:
        return Requirement(path, required_value)
    if stored_as in {StoredAs.PRESENCE, StoredAs.ADDRESS}:
        raise reader.error(path, f'is not "{PRESENT}" or "{NOT_SET}": its value is not stored')
    sign, value = _split_operator(reader, path, required_value)
    if stored_as is StoredAs.COUNT:
        return Requirement(path, sign, number_value=_number(reader, path, value))
    word = _word(reader, path, sign, value, is_tag_value=tag is not None)
    return Requirement(path, sign, word=word)


def _path_suggestion(path: str) -> str:
    known = sorted(SETTINGS)
    path_by_last_key = {name.rpartition(".")[2]: name for name in known}
    suggestion = nearest_name(path, known) or path_by_last_key.get(
        nearest_name(path.rpartition(".")[2], path_by_last_key) or ""
    )
    if path.lower().startswith("tag"):
        suggestion = f"{TAG_PREFIX}NAME"
    return (
        f": did you mean {suggestion}?"
        if suggestion
        else f"; known: {', '.join(known)}, {TAG_PREFIX}NAME"
    )


def _split_operator(reader: TableReader, path: str, value: object) -> tuple[str, object]:
    """Returns `==` for a value without an operator."""
    match = _COMPARISON.match(value) if isinstance(value, str) else None
    if match is None:
        return "==", value
    if match[1] not in _OPERATORS:
        near = next((sign for sign in _OPERATORS if sorted(sign) == sorted(match[1])), None)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(_OPERATORS)}"
        raise reader.error(path, f"has the operator {match[1]!r}: {hint}")
    return match[1], match[2]


def _number(reader: TableReader, path: str, value: object) -> Decimal:
    try:
        number = Decimal("nan" if isinstance(value, bool) else str(value))
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or not is_number(float(number)):
        text = f'is not a number, a comparison such as "<= 86400", "{PRESENT}" or "{NOT_SET}"'
        raise reader.error(path, text)
    return number


def _word(reader: TableReader, path: str, sign: str, value: object, *, is_tag_value: bool) -> str:
    if not isinstance(value, str) or not value:
        raise reader.error(path, f'is not a text, "{PRESENT}" or "{NOT_SET}"')
    if sign in _NUMBER_OPERATORS:
        raise reader.error(path, f"compares a text with {sign}: only == and != do")
    if is_tag_value and not is_tag(value):
        raise reader.error(path, "names a value that no tag has, or that is not stored")
    if not is_tag_value and value not in STATES:
        raise reader.error(path, f"is not a value of AWS's{did_you_mean(value, sorted(STATES))}")
    return value
