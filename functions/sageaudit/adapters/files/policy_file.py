"""Loads the policy from its TOML file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sageaudit.adapters.aws.clients import known_regions
from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.local_files import other_form
from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.discounts import Discounts
from sageaudit.domain.policy.policy import Policy, parse
from sageaudit.domain.policy.table_reader import named
from sageaudit.domain.prices.own_rates import OwnRates
from sageaudit.errors import BadPolicy, BadUsage, KeyPath
from sageaudit.rules.catalogue import threshold_units

_MAKE = "a policy is a TOML file, such as policy.toml of the repository"


def load(path: Path) -> Policy:
    """Reads and validates a policy. Raises BadPolicy: one sentence with file, line and key."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text)
    except OSError as error:
        why = other_form(path, _MAKE) or f"cannot be read ({error.strerror})"
        raise BadPolicy(f"{path}: {why}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        why = other_form(path, _MAKE) or f"is not TOML: {error}"
        raise BadPolicy(f"{path}: {why}") from error
    except (ValueError, RecursionError) as error:
        # numbers of thousands of digits, or too deep nesting
        raise BadPolicy(f"{path}: is too long or too deeply nested to be read") from error
    try:
        policy = parse(table, threshold_units(), _own_rates(table, path))
        _check_names(policy.discounts)
    except BadPolicy as error:
        line = line_of(text, error.key)
        where = path if line is None else f"{path}:{line}"
        raise BadPolicy(f"{where}: {error}", error.key) from error
    return policy


def _own_rates(table: Mapping[str, Any], path: Path) -> OwnRates | None:
    """The file that `discounts.own_rates` names, from the policy's folder. Raises BadPolicy."""
    discounts = table.get("discounts")
    name = discounts.get("own_rates") if isinstance(discounts, dict) else None
    if not isinstance(name, str) or not name:
        return None
    try:
        return policy_file.read(path.parent / name)
    except BadUsage as error:
        key = ("discounts", "own_rates")
        raise BadPolicy(f"{named(key)}: {error}", key) from error


def line_of(text: str, key: KeyPath) -> int | None:
    """The line that sets the last name of `key`; None where that is not one line alone."""
    name = next((re.escape(part) for part in reversed(key) if isinstance(part, str)), None)
    sets = re.compile(rf"""[\s\[]*(?:[\w."'-]+\.)?["']?{name}["']?\s*[.=\]]""")
    found = [number for number, line in enumerate(text.split("\n"), 1) if sets.match(line)]
    return found[0] if name and len(found) == 1 else None


def _check_names(discounts: Discounts) -> None:
    """Raises BadPolicy for an unknown family, region or type, so that no typo goes unnoticed."""
    types = packaged.types()
    known = {row.family for row in types.values()} | {part.value for part in Component}
    if strange := sorted(set(discounts.percent) - known):
        raise _refused("is neither a component nor a family", "percent", strange[0])
    regions = known_regions() if discounts.rates else set()
    for region, rates in discounts.rates.items():
        if region not in regions:
            raise _refused("is no AWS region that is known", "rates", region)
        if strange := sorted(set(rates) - set(types)):
            near = did_you_mean(strange[0], types)
            raise _refused(f"is no type of the catalogue{near}", "rates", region, strange[0])


def _refused(why: str, *parts: str) -> BadPolicy:
    path = ("discounts", *parts)
    return BadPolicy(f"{named(path)} {why}", path)
