"""The exit codes of all commands. Scripts rely on them."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from sageaudit import errors


class Exit(enum.IntEnum):
    """The exit codes. Each code has one meaning, for every command."""

    DONE = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    UNAVAILABLE = 5
    FINDINGS = 10
    NOT_JUDGED = 11
    INTERRUPTED = 130


_ORDER = (
    Exit.INTERRUPTED,
    Exit.USAGE,
    Exit.DENIED,
    Exit.UNAVAILABLE,
    Exit.NOT_FOUND,
    Exit.FAILURE,
    Exit.FINDINGS,
    Exit.NOT_JUDGED,
    Exit.DONE,
)
"""If several jobs have different codes, the command exits with the first of them in this order."""
_ERRORS_BY_EXIT = {
    Exit.NOT_FOUND: (
        *(errors.JobNotFound, errors.ResourceNotFound, errors.TableNotFound, errors.NoHistory),
    ),
    Exit.USAGE: (
        *(errors.BadUsage, errors.BadRecording, errors.BadPolicy, errors.BadHistory),
        errors.AmbiguousName,
    ),
    Exit.DENIED: (errors.AccessDenied, errors.NoCredentials, errors.HistoryDenied),
    Exit.UNAVAILABLE: (errors.Throttled, errors.Unavailable, errors.HistoryBusy),
}
"""The classes of errors by exit code. TableNotFound comes before Unavailable, its base class."""


def exit_for(error: errors.SageauditError) -> Exit:
    """Returns the exit code for one error."""
    return next(
        (code for code, classes in _ERRORS_BY_EXIT.items() if isinstance(error, classes)),
        Exit.FAILURE,
    )


def worst_exit(codes: Iterable[Exit]) -> Exit:
    """Returns the first of these codes in `_ORDER`; DONE if there are none."""
    present = set(codes)
    return next((code for code in _ORDER if code in present), Exit.DONE)
