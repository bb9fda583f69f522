"""Finds all rules in the folders of this package."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from importlib import resources

from msgspec import Struct

from sageaudit import rules
from sageaudit.rules.card import Rule, Ruleset
from sageaudit.rules.version import read_version

_OUTLINE = re.compile(
    r'"""(?P<title>[^\n]*)\n.*^@api\.rule\(\s*id="(?P<id>\w+)"', re.DOTALL | re.MULTILINE
)


@cache
def load() -> tuple[Rule, ...]:
    """Imports each rule's module once. Returns the rules in the order of their ids."""
    modules = pkgutil.walk_packages(rules.__path__, f"{rules.__name__}.")
    names = sorted(module.name for module in modules if not module.ispkg)
    checks = (getattr(importlib.import_module(name), "check", None) for name in names)
    rules_found = [check for check in checks if isinstance(check, Rule)]
    return tuple(sorted(rules_found, key=lambda rule: rule.info.id))


class RuleOutline(Struct, frozen=True):
    """A rule's name, id and title."""

    name: str
    id: str
    title: str


def outlines() -> list[RuleOutline]:
    """Returns the outlines of all rules by id, read from their source without importing them.

    An import of all rules takes too long for a shell's completion.
    """
    rule_outlines = []
    for folder in resources.files(rules).iterdir():
        for module in folder.iterdir() if folder.is_dir() else ():
            source = module.read_text("utf-8") if module.name.endswith(".py") else ""
            if match := _OUTLINE.match(source):
                name = module.name.removesuffix(".py").replace("_", "-")
                rule_outlines.append(RuleOutline(name, match["id"], match["title"]))
    return sorted(rule_outlines, key=lambda outline: outline.id)


@cache
def version() -> str:
    """Returns the package's version and a digest of the code that decides."""
    return read_version(resources.files("sageaudit"))


def ruleset() -> Ruleset:
    """Returns all rules with their version."""
    return Ruleset(load(), version())


def threshold_units() -> dict[str, dict[str, str]]:
    """Returns the units of the thresholds that the policy can set, by rule and key."""
    return {
        rule.info.name: {threshold.key: threshold.unit for threshold in rule.thresholds}
        for rule in load()
    }


def resolve_rule_name(text: str) -> str:
    """Returns the name of the rule with this name or id. Any other text is returned in lower case,
    with hyphens.
    """
    normalised = text.lower().replace("_", "-")
    name_by_id = {rule.info.id.lower(): rule.info.name for rule in load()}
    return name_by_id.get(normalised, normalised)
