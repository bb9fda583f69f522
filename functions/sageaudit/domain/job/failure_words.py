"""What a failure message says of its reason, read before the message is redacted.

AWS documents neither the words of a failure message nor their order, so this is only a hint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sageaudit.domain.job import fields

KEY = "FailureClass"
"""The key under which a sanitized answer stores it, where its redacted text says less."""
MAX_RUNTIME, MAX_WAIT = "MaxRuntimeInSeconds", "MaxWaitTimeInSeconds"
AWS_ERROR = "AWS error"
_ALL = (
    ((r"maxruntime(?:inseconds)?\W*exceeded|exceeded \W*maxruntime",), MAX_RUNTIME),
    ((r"maxwaittime(?:inseconds)?\W*exceeded|exceeded \W*maxwaittime",), MAX_WAIT),
    ((r"out ?of ?memory", r"\boom\b", r"exit code:? 137\b", r"more memory"), "memory error"),
    ((r"no space left", r"disk is full", r"disk quota"), "disk error"),
    ((r"capacityerror", r"insufficient capacity"), "capacity error"),
    (
        (r"data download failed", r"matched no files", r"nosuchkey", r"no such file"),
        "data error",
    ),
    ((r"access ?denied", r"not authorized", r"forbidden"), "permission error"),
    ((r"internal ?server ?error",), AWS_ERROR),
    (
        (r"algorithmerror", r"executeuserscripterror", r"traceback", r"exit code"),
        "code error",
    ),
    ((r"clienterror", r"validationexception"), "request error"),
)
"""Regular expressions and what they stand for. First match wins."""
_CLASSES = frozenset(word for _, word in _ALL)
_COMMAND = re.compile(r'\bCommand "[^"]*"')
"""The toolkit's copy of the command line: its options are no reasons."""


def of_text(text: str) -> str | None:
    """The limit's parameter or the class that a message names, or None."""
    lower = _COMMAND.sub(" ", text).lower()
    return next(
        (word for marks, word in _ALL for mark in marks if re.search(mark, lower)),
        None,
    )


def of_answer(answer: Mapping[str, Any]) -> str | None:
    """What the answer's message says, or what a sanitized answer stores of it.

    Raises Malformed when a field is no text.
    """
    stored = fields.text(answer, KEY)
    if stored in _CLASSES:
        return stored
    return of_text(fields.text(answer, "FailureReason") or fields.text(answer, "ExitMessage") or "")
