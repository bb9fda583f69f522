"""The script that a job runs, by its file name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sageaudit.domain.job import fields

ENTRY_POINT = "EntryPoint"
"""The key under which a sanitized answer stores the script's name."""
_SCRIPT = re.compile(r"[\w./][\w./+-]*\Z")


def entry_point(answer: Mapping[str, Any]) -> str | None:
    """The script's file name, or None.

    It comes from the SDK's hyperparameter `sagemaker_program` (a JSON string), from the end of a
    processing command, or from the key of a sanitized answer, which has neither.
    """
    program = fields.section(answer, "HyperParameters").get("sagemaker_program")
    if isinstance(program, str):
        return script(program.strip('"'))
    command = fields.section(answer, "AppSpecification").get("ContainerEntrypoint")
    if isinstance(command, list) and command:
        return script(str(command[-1]))
    kept = fields.text(answer, ENTRY_POINT)
    return script(kept) if kept else None


def script(word: str) -> str | None:
    """A script's file name; None for other words, such as an inline command with secrets."""
    return word.rpartition("/")[2] or None if _SCRIPT.match(word) else None
