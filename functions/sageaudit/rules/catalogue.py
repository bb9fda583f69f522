"""Every rule in this folder, in the order of their ids."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
from functools import cache
from typing import Any

from sageaudit import __version__, rules
from sageaudit.rules.card import Rule, Ruleset

_NOT_RULES = frozenset({"card", "catalogue", "judge", "page"})


@cache
def load() -> tuple[Rule, ...]:
    """Imports each rule's module once and reads the card on its `check`."""
    found = [_module(name).check for name in _names() if name not in _NOT_RULES]
    return tuple(sorted(found, key=lambda item: item.name.id))


@cache
def version() -> str:
    """Names the ruleset: the package's version and a digest of everything in this folder."""
    digest = hashlib.sha256()
    for name in _names():
        digest.update(inspect.getsource(_module(name)).encode())
    return f"{__version__}+{digest.hexdigest()[:8]}"


def ruleset() -> Ruleset:
    """All rules under their version."""
    return Ruleset(load(), version())


def _names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(rules.__path__))


def _module(name: str) -> Any:
    return importlib.import_module(f"{rules.__name__}.{name}")


def threshold_units() -> dict[str, dict[str, str]]:
    """Each rule's name with its thresholds' keys, as the policy may set them, and their units."""
    return {r.name.name: {t.key: t.unit for t in r.thresholds} for r in load()}
