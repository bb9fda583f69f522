"""The policy from its TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path

from sageaudit.adapters import packaged
from sageaudit.adapters.aws import known_regions
from sageaudit.domain.discounts import Discounts
from sageaudit.domain.market import Component
from sageaudit.domain.policy import Policy, parse
from sageaudit.errors import BadPolicy
from sageaudit.rules.catalogue import threshold_units


def load(path: Path) -> Policy:
    """Reads and validates a policy. Raises BadPolicy with one sentence naming file and key."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadPolicy(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadPolicy(f"{path}: is not TOML: {error}") from error
    except (ValueError, RecursionError) as error:
        # what Python refuses to read: numbers of thousands of digits, endless nesting
        raise BadPolicy(f"{path}: is too long or too deep in one place to be read") from error
    try:
        policy = parse(table, threshold_units())
        _check_names(policy.discounts)
    except BadPolicy as error:
        raise BadPolicy(f"{path}: {error}") from error
    return policy


def _check_names(discounts: Discounts) -> None:
    """Families and types of the catalogue: a typing mistake never changes a price unseen."""
    types = packaged.types()
    known = {kind.family for kind in types.values()} | {part.value for part in Component}
    if strange := sorted(set(discounts.percent) - known):
        raise BadPolicy(f"discounts.percent.{strange[0]} is neither a component nor a family")
    regions = known_regions() if discounts.rates else set()
    for region, rates in discounts.rates.items():
        if region not in regions:
            raise BadPolicy(f"discounts.rates.{region} is no AWS region that is known")
        if strange := sorted(set(rates) - set(types)):
            raise BadPolicy(f"discounts.rates.{region}.{strange[0]} is no type of the catalogue")
