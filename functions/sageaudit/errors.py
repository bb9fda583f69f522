"""Everything this project raises on purpose.

SageauditError
├── RejectedEvent          a record that is malformed, forged or for nobody here
├── Malformed              an AWS answer whose key holds what AWS does not document
├── BadUsage               a command's words are off
├── BadRecording           a file that is no recording
├── BadPolicy              a policy with an unknown key or an impossible value
├── BadSettings            an entry point's environment is incomplete
├── AwsError
│   ├── JobNotFound        no such job (any more)
│   ├── AccessDenied       which action, on what
│   ├── NoCredentials
│   ├── Throttled          after the SDK's own retries
│   └── Unavailable        connection, 5xx, or an answer that cannot be read
│       └── TableNotFound  there is no such history table
├── AmbiguousName          one name under two kinds of job
└── ChannelError
    ├── RateLimited        come back after `retry_after_s`
    ├── ChannelBroken      permanent: webhook revoked, channel archived, payload refused
    └── ChannelUnavailable transient: nothing was posted
        └── MaybeSent      it left and no answer came
"""

from __future__ import annotations


class SageauditError(Exception):
    """The root of the family; its text is one sentence for a person."""


class RejectedEvent(SageauditError):
    """A record that no second try helps: malformed, forged or for nobody; `code` is stable."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class BadUsage(SageauditError):
    """A command's words are off; says what it takes."""


class BadRecording(SageauditError):
    """A file that is no recording; names the file and the key."""


KeyPath = tuple[str | int, ...]
"""A key in a policy, part by part; a number is a place in an array of tables."""


class BadPolicy(SageauditError):
    """A policy with an unknown key or an impossible value; names the key, and `key` is its path."""

    def __init__(self, reason: str, key: KeyPath = ()) -> None:
        super().__init__(reason)
        self.key = key


class BadSettings(SageauditError):
    """An entry point's environment is incomplete; names the variable."""


class AwsError(SageauditError):
    """AWS refused or did not answer."""


class JobNotFound(AwsError):
    """There is no such job (any more)."""


class AccessDenied(AwsError):
    """A permission is missing; names the action."""

    def __init__(self, action: str, reason: str) -> None:
        super().__init__(reason)
        self.action = action


class NoCredentials(AwsError):
    """No usable AWS credentials."""


class Throttled(AwsError):
    """Still throttled after the SDK's own retries."""


class Unavailable(AwsError):
    """Connection failure, server error or an unreadable answer."""


class TableNotFound(Unavailable):
    """There is no such table: a name or region is off, or it is not made yet."""


class AmbiguousName(SageauditError):
    """One name is used by jobs of two kinds; names both."""


class ChannelError(SageauditError):
    """A notice was not posted. Never carries the channel's address."""


class RateLimited(ChannelError):
    """Come back after `retry_after_s` seconds."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"rate limited, retry after {retry_after_s} s")
        self.retry_after_s = retry_after_s


class ChannelBroken(ChannelError):
    """Permanent: webhook revoked, channel archived, payload refused."""


class ChannelUnavailable(ChannelError):
    """Transient: nothing was posted."""


class Malformed(SageauditError):
    """An answer or document whose `key` does not hold what AWS documents there."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key} {reason}")
        self.key = key
        self.reason = reason


class MaybeSent(ChannelUnavailable):
    """The notice left and no answer came: it may have been posted.

    Whoever holds its lease keeps it, so that the next try is known to be a repeat.
    """
