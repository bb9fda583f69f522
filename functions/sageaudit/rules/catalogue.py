"""Every rule in this folder, in the order of their ids."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from functools import cache

from sageaudit import __version__, rules
from sageaudit.rules.card import Rule

_NOT_RULES = frozenset({"card", "catalogue", "judge"})


@cache
def load() -> tuple[Rule, ...]:
    """Imports each rule's module once and reads the card on its `check`."""
    names = [m.name for m in pkgutil.iter_modules(rules.__path__) if m.name not in _NOT_RULES]
    found = [importlib.import_module(f"{rules.__name__}.{name}").check for name in names]
    return tuple(sorted(found, key=lambda item: item.name.id))


@cache
def version() -> str:
    """Names the ruleset: the package's version and a digest of every rule's page and card."""
    canonical = repr([(r.name, r.page, r.thresholds, r.needs, r.min_coverage) for r in load()])
    return f"{__version__}+{hashlib.sha256(canonical.encode()).hexdigest()[:8]}"


def threshold_keys() -> dict[str, frozenset[str]]:
    """Each rule's name with the keys of its thresholds, as the policy may set them."""
    return {r.name.name: frozenset(t.key for t in r.thresholds) for r in load()}
