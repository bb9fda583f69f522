"""The policy from its TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path

from sageaudit.domain.policy import Policy, parse
from sageaudit.errors import BadPolicy
from sageaudit.rules.catalogue import threshold_keys


def load(path: Path) -> Policy:
    """Reads and validates a policy. Raises BadPolicy with one sentence naming file and key."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadPolicy(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadPolicy(f"{path}: is not TOML: {error}") from error
    try:
        return parse(table, threshold_keys())
    except BadPolicy as error:
        raise BadPolicy(f"{path}: {error}") from error
