"""Every rule of the folders beside this file, in the order of their ids."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib import resources

from sageaudit import rules
from sageaudit.rules.card import Rule, Ruleset
from sageaudit.rules.version import read_version


@cache
def load() -> tuple[Rule, ...]:
    """Imports each rule's module once and reads the card on its `check`."""
    walked = pkgutil.walk_packages(rules.__path__, f"{rules.__name__}.")
    names = sorted(module.name for module in walked if not module.ispkg)
    checks = (getattr(importlib.import_module(name), "check", None) for name in names)
    found = [check for check in checks if isinstance(check, Rule)]
    return tuple(sorted(found, key=lambda item: item.info.id))


@cache
def version() -> str:
    """Names the ruleset: the package's version and a digest of the code that decides."""
    return read_version(resources.files("sageaudit"))


def ruleset() -> Ruleset:
    """All rules under their version."""
    return Ruleset(load(), version())


def threshold_units() -> dict[str, dict[str, str]]:
    """Each rule's name with its thresholds' keys, as the policy may set them, and their units."""
    return {r.info.name: {t.key: t.unit for t in r.thresholds} for r in load()}


def resolve_rule_name(text: str) -> str:
    """The name of a rule by its name or id; a name that no rule has is taken as it is."""
    asked = text.lower().replace("_", "-")
    names = {rule.info.id.lower(): rule.info.name for rule in load()}
    return names.get(asked, asked)
