"""Exit codes, which scripts rely on."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from sageaudit import errors


class Exit(enum.IntEnum):
    """Each code has one meaning, for every command."""

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
_BY_ERROR: tuple[tuple[type[errors.SageauditError], Exit], ...] = (
    (errors.BadUsage, Exit.USAGE),
    (errors.BadRecording, Exit.USAGE),
    (errors.BadPolicy, Exit.USAGE),
    (errors.AmbiguousName, Exit.USAGE),
    (errors.JobNotFound, Exit.NOT_FOUND),
    (errors.ResourceNotFound, Exit.NOT_FOUND),
    (errors.AccessDenied, Exit.DENIED),
    (errors.NoCredentials, Exit.DENIED),
    (errors.Throttled, Exit.UNAVAILABLE),
    (errors.TableNotFound, Exit.NOT_FOUND),
    (errors.Unavailable, Exit.UNAVAILABLE),
    (errors.BadHistory, Exit.USAGE),
    (errors.NoHistory, Exit.NOT_FOUND),
    (errors.HistoryDenied, Exit.DENIED),
    (errors.HistoryBusy, Exit.UNAVAILABLE),
)


def exit_of(error: errors.SageauditError) -> Exit:
    """The code for one error."""
    return next(
        (code for error_class, code in _BY_ERROR if isinstance(error, error_class)), Exit.FAILURE
    )


def gravest(codes: Iterable[Exit]) -> Exit:
    """The exit code of a batch of jobs: the first in `_ORDER` that occurs; DONE for none."""
    present = set(codes)
    return next((code for code in _ORDER if code in present), Exit.DONE)
