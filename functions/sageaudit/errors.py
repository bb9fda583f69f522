"""The exceptions that this project raises on purpose.

SageauditError
├── RejectedEvent          an event or message that is malformed, forged or not for this stack
├── MalformedData          an AWS response or document with an impossible value under a key
│   └── UnreadableItem     a stored item, by its key; lists and sums go on without it
├── BadUsage               a command has wrong arguments
├── BadRecording           a file that is not a recording
├── BadPolicy              a policy with an unknown key or an impossible value
├── JobRefused             a guard refused a call before it was sent
├── BadSettings            an environment variable or secret is missing or wrong
├── AwsError
│   ├── JobNotFound        the job does not exist, or was deleted
│   ├── ResourceNotFound   a stack or a queue does not exist
│   ├── AccessDenied       a permission is missing; names the action
│   ├── NoCredentials      no usable AWS credentials
│   ├── Throttled          after the SDK's own retries
│   └── Unavailable        connection failure, server error or unreadable response
│       └── TableNotFound  the history table does not exist
├── HistoryFileError       the file of a history cannot be used, such as on a full disk
│   ├── BadHistory         not a history: of another tool, of a newer version, or damaged
│   ├── NoHistory          the file does not exist
│   ├── HistoryDenied      no permission to read or write it
│   └── HistoryBusy        another process writes it
├── AmbiguousName          jobs of two kinds have this name
└── ChannelError
    ├── RateLimited        try again after `retry_after_s` seconds: nothing was posted
    ├── ChannelUnavailable transient: nothing was posted
    ├── ChannelBroken      permanent, nothing was posted: webhook revoked, payload refused
    ├── PossiblySent       the notice was sent, but it is not known whether it was posted
    └── UnexpectedResponse the same, and a retry would get the same response
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from traceback import extract_tb
from typing import Any

from sageaudit.token_shapes import redact

PARSE_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The exceptions that code raises if stored data has an unexpected form."""


class SageauditError(Exception):
    """Base class of sageaudit's errors. `str(error)` is one sentence for the user."""

    def __str__(self) -> str:
        # Each error leaves through its text, and may repeat what a person or AWS wrote.
        return redact(super().__str__())


class RejectedEvent(SageauditError):
    """An event or message was rejected and would fail again. `code` is a stable word for alarms."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class BadUsage(SageauditError):
    """A command has wrong arguments. The text says what is allowed."""


class BadRecording(SageauditError):
    """A file is not a recording. The text names the file and the key."""


KeyPath = tuple[str | int, ...]
"""The path of a key in a policy. A number is an index into an array of tables."""


class BadPolicy(SageauditError):
    """A policy has an unknown key or an impossible value. `key` is its path."""

    def __init__(self, reason: str, key: KeyPath = ()) -> None:
        super().__init__(reason)
        self.key = key


class JobRefused(SageauditError):
    """A guard refused a call, and nothing was sent. The text says why and what to change.

    `checked` is the check's document (CheckedFile); None if the request could not be checked.
    """

    def __init__(self, reason: str, checked: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.checked = checked


class BadSettings(SageauditError):
    """An environment variable or a secret is missing or wrong. The text names it."""


class AwsError(SageauditError):
    """AWS refused a request or did not answer."""


class JobNotFound(AwsError):
    """The job does not exist, or was deleted."""


class ResourceNotFound(AwsError):
    """A stack or a queue does not exist. Its name, account or region may be wrong."""


class AccessDenied(AwsError):
    """A permission is missing. `action` is the IAM action."""

    def __init__(self, action: str, reason: str) -> None:
        super().__init__(reason)
        self.action = action


class NoCredentials(AwsError):
    """There are no usable AWS credentials."""


class Throttled(AwsError):
    """AWS still throttled a request after the SDK's own retries."""


class Unavailable(AwsError):
    """A connection failed, or the response is a server error or unreadable."""


class NoEndpoint(Unavailable):
    """The region's partition has no endpoint of a service."""


class TableNotFound(Unavailable):
    """The table does not exist. Its name or region may be wrong, or the stack is not
    deployed yet.
    """


class HistoryFileError(SageauditError):
    """A history's file cannot be used now. Its audits are kept."""


class BadHistory(HistoryFileError):
    """A file is not a history: it is another tool's, a newer sageaudit's, or damaged."""


class NoHistory(HistoryFileError):
    """The history's file does not exist."""


class HistoryDenied(HistoryFileError):
    """A permission to read or write the file or its folder is missing."""


class HistoryBusy(HistoryFileError):
    """Another process is writing the file and did not finish in time."""


class AmbiguousName(SageauditError):
    """Jobs of two kinds have this name. The text names both kinds."""


class ChannelError(SageauditError):
    """A notice was not posted. The text never contains the channel's address."""


class RateLimited(ChannelError):
    """The channel asks to wait `retry_after_s` seconds before the next post."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"rate limited, retry after {retry_after_s} s")
        self.retry_after_s = retry_after_s


class ChannelBroken(ChannelError):
    """A permanent failure. Nothing was posted. `code` is a stable word, the text a sentence.

    For example, a webhook was revoked, a key is disabled, or the service refuses the payload.
    """

    def __init__(self, reason: str, code: str = "channel_broken") -> None:
        super().__init__(reason)
        self.code = code


class ChannelUnavailable(ChannelError):
    """A transient failure. Nothing was posted, so a retry is safe."""


class PossiblySent(ChannelError):
    """The notice was sent, but it is not known whether it was posted.

    A second attempt must be marked as a possible repeat. `retry_after_s`: how long the service
    asked to wait; 0 if it did not ask.
    """

    def __init__(self, reason: str, retry_after_s: int = 0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class UnexpectedResponse(ChannelError):
    """A response that the channel's service does not send, such as a proxy's page.

    It is not known whether the notice was posted. A retry would get the same response.
    """


class MalformedData(SageauditError):
    """An AWS response, message or document has an impossible value under `key`."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key} {reason}")
        self.key = key
        self.reason = reason


class UnreadableItem(MalformedData):
    """A stored item cannot be read. `key`: the item's key, as text."""


@contextmanager
def malformed_errors(description: str) -> Iterator[None]:
    """Turns errors in reading stored data into MalformedData. A retry would fail the same way.

    `description` says what was read. The error names the line that failed, since the code may have
    a defect.
    """
    try:
        yield
    except PARSE_ERRORS as error:
        frame = extract_tb(error.__traceback__)[-1]
        location = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        reason = f"cannot be read: {type(error).__name__} {error} ({location})"
        raise MalformedData(description, reason) from error
