"""The script that a job runs, by its file name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sageaudit.domain.job import fields

_SCRIPT = re.compile(
    r"(?:[\w./:-]*/)?([\w.+-]+\.(?:py|pyc|pyz|ipynb|sh|bash|zsh|R|r|Rmd|jl|pl|rb|js|mjs|ts|lua|m|sql"
    r"|scala|jar|php|go|exe|bat|ps1))\Z",
    re.ASCII,
)
"""A file of a language that jobs are written in. Any other word may be a secret."""
_LONGEST = 255
"""A file name is not longer."""


def entry_point(answer: Mapping[str, Any]) -> str | None:
    """The script's file name, or None.

    It comes from the SDK's hyperparameter `sagemaker_program` (a JSON string), or from the first
    script of a processing command.
    """
    program = fields.section(answer, "HyperParameters").get("sagemaker_program")
    if isinstance(program, str):
        return script(program.strip('"'))
    command = fields.section(answer, "AppSpecification").get("ContainerEntrypoint")
    words = command if isinstance(command, list) else ()
    return next((name for word in words if (name := script(str(word)))), None)


def script(word: str) -> str | None:
    """A script's file name; None for a word without a script's suffix."""
    found = _SCRIPT.match(word)
    return found[1] if found and len(found[1]) <= _LONGEST else None
