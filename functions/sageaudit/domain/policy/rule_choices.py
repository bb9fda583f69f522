"""A policy's choices for rules: off, on, thresholds and severities."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.table_reader import HIGHEST, TableReader, is_number

Catalogue = Mapping[str, Mapping[str, str]]
"""Each rule's name with its thresholds' keys and their units."""
_SHARE, _WHOLE_PERCENT = "percent of ", 100
_ID = re.compile(r"SA\d{3}\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RuleChoices:
    """`[rules]` of a policy, or of one of its sections."""

    off: frozenset[str] = frozenset()
    on: frozenset[str] = frozenset()
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    severities: Mapping[str, Severity] = field(default_factory=dict)

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
        )


@dataclass(frozen=True, slots=True)
class Section:
    """A `[[for]]` of a policy: choices for the jobs that match all of its conditions."""

    family: str | None
    tag: tuple[str, str] | None
    account: str | None
    rules: RuleChoices

    def holds(self, account: str | None, family: str, tags: Mapping[str, str]) -> bool:
        """Whether the section applies to this job."""
        return (
            self.family in {None, family}
            and self.account in {None, account}
            and (self.tag is None or tags.get(self.tag[0]) == self.tag[1])
        )


def read(reader: TableReader, known: Catalogue) -> RuleChoices:
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
    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"there is no such rule; did you mean {close[0]}?" if close else "there is no such rule"


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
