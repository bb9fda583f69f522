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
GPU_MEMORY, HOST_MEMORY = "GPU out of memory", "host out of memory"
MEMORY = "memory error"
"""Out of memory, without a word on whose."""
_ALL = (
    ((r"maxruntime(?:inseconds)?\W*exceeded|exceeded \W*maxruntime",), MAX_RUNTIME),
    ((r"maxwaittime(?:inseconds)?\W*exceeded|exceeded \W*maxwaittime",), MAX_WAIT),
    (
        (
            r"\b(?:cuda|hip)\b[^.]{0,40}out ?of ?memory",
            r"cuda_error_out_of_memory",
            r"torch\.(?:cuda\.)?outofmemoryerror",
            r"cu\w+_status_alloc_failed",
            r"(?:resource_?exhausted|oom when allocating)[^\n]{0,400}\bgpu\b",
            r"\bgpu\b[^.]{0,40}(?:out of memory|ran out of memory)",
            r"out of memory[^.]{0,40}\bgpu\b",
        ),
        GPU_MEMORY,
    ),
    (
        (
            r"exit ?code\s*:? ?(?:137|-9)\b",
            r"\bsigkill\b",
            r"\boom[ -]?kill",
            r"\bmemoryerror\b",
            r"cannot allocate memory",
            r"\bbad_alloc\b",
            r"unable to allocate [^\n]{1,40} for an array",
            r"defaultcpuallocator",
            r"java heap space|java\.lang\.outofmemoryerror",
            r"out of shared memory|insufficient shared memory",
            r"more memory",
        ),
        HOST_MEMORY,
    ),
    ((r"out ?of ?memory", r"\boom\b"), MEMORY),
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
"""Regular expressions and what they stand for. First match wins.

Exit code 137 is 128 + SIGKILL: the kernel ends a process that way when a host has no memory left.
"""
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
