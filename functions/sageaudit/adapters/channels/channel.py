"""The interface of a channel. It hides how Slack, Teams and SNS differ.

notify uses `write`. deliver uses `check`, `prepare`, `mark_as_repeat` and `post`. The stack uses
`permissions`, and `make deploy` uses `secret_format`. The policy lists the channels.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol, Self

from msgspec import Struct, field

from sageaudit.adapters.aws.clients import QUICK_CONFIG, client
from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.domain.policy.routes import Service
from sageaudit.errors import (
    AccessDenied,
    AwsError,
    BadSettings,
    ChannelBroken,
    ChannelUnavailable,
    PossiblySent,
    RateLimited,
    UnexpectedResponse,
)
from sageaudit.output.text.card import NO_OWNER_IDS, MessageCard, Payload

DEFAULT_WAIT_S = 30
"""Seconds to wait if the service does not say how long."""
MAX_WAIT_S = 3_600
"""The longest wait in seconds, even if the service asks for more (our choice)."""

_SUCCESS = range(200, 300)
_REDIRECT_STATUSES = range(300, 400)
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_REVOKED_STATUSES = frozenset({401, 403, 404, 410})
"""HTTP statuses of a deleted or renewed webhook. The secret may already have the new address."""
_NO_ACCESS_STATUSES = _REVOKED_STATUSES | {407}
_AMBIGUOUS_STATUSES = frozenset({408, 425})
"""HTTP statuses after which it is unknown whether the server has read the notice."""
_HEADERS = {"Content-Type": "application/json; charset=utf-8"}
_ERROR_WORD = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
_SECONDS = re.compile(r"[0-9]{1,9}")


class Response(Struct, frozen=True):
    """An HTTP answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Transport = Callable[[str, bytes, Mapping[str, str]], Response]
"""POSTs a body once and follows no redirect.

Raises ChannelUnavailable if the request was certainly not sent. Raises PossiblySent if the answer
is missing or incomplete.
"""


class Secret(Protocol):
    """A secret that contains a webhook's address."""

    def value(self, *, refresh: bool = False) -> str:
        """Returns the address. `refresh` reads it again."""


class SecretFormat(Struct, frozen=True):
    """The format of a channel's secret.

    `kind` is its description for people: "Slack incoming webhook URL". `example` is a valid text,
    but not a real address. `invalid_reason` returns why a text is invalid, or None. It never quotes
    the text.
    """

    kind: str
    example: str
    invalid_reason: Callable[[str], str | None]


class ChannelConnections(Struct, frozen=True):
    """What a channel needs to connect: the boto3 session, and how to post to a webhook."""

    session: Any
    transport: Transport

    def secret(self, secret_id: str) -> SecretReader:
        """Returns a reader of one secret."""
        store = client(self.session, "secretsmanager", config=QUICK_CONFIG)
        return SecretReader(store, secret_id, time.monotonic)


class NoticeChannel(ABC):
    """A channel for notices. Each instance posts to one address."""

    service: ClassVar[Service]
    secret_format: ClassVar[SecretFormat | None] = None
    """The format of the channel's secret. None if its address is a topic's ARN."""
    permissions: ClassVar[tuple[str, ...]]
    """The permissions that `post` needs on the topic or the secret."""

    @staticmethod
    @abstractmethod
    def write(card: MessageCard, owner_ids: Mapping[str, str] = NO_OWNER_IDS) -> Payload:
        """Returns the payload for a card, within the service's size limits.

        `owner_ids` has the id to mention, by owner. Only Slack uses it.
        """

    @staticmethod
    @abstractmethod
    def check(payload: Payload) -> None:
        """Raises MalformedData if a payload cannot be posted or marked as a repeat."""

    @staticmethod
    @abstractmethod
    def mark_as_repeat(payload: Payload) -> Payload:
        """Returns the payload with a mark of repetition at its beginning, within the size limits.

        It works for every payload that `check` accepts.
        """

    @staticmethod
    @abstractmethod
    def text_lines(payload: Payload) -> Iterable[str]:
        """Returns a payload's lines as people read them, for `sageaudit notify`."""

    @classmethod
    @abstractmethod
    def connect(cls, name: str, address: str, connections: ChannelConnections) -> Self:
        """Returns the channel `name`. `address` is a topic's ARN or the name of a secret."""

    @abstractmethod
    def prepare(self) -> None:
        """Reads the address for `post`, before deliver claims a notice.

        Raises ChannelBroken or ChannelUnavailable.
        """

    @abstractmethod
    def post(self, payload: Payload) -> None:
        """Posts once. Raises a ChannelError.

        RateLimited, ChannelUnavailable and ChannelBroken (permanent) mean that nothing was posted.
        PossiblySent and UnexpectedResponse mean that the payload may have been posted.
        """


class WebhookChannel(NoticeChannel):
    """A channel that posts JSON to a webhook. Its secret is the webhook's address.

    The address never appears in a log or an error. Payloads are posted only to addresses of the
    service.
    """

    secret_format: ClassVar[SecretFormat]

    def __init__(self, name: str, address: Secret, transport: Transport) -> None:
        self._name = name
        self._address = address
        self._transport = transport

    @staticmethod
    @abstractmethod
    def is_accepted(status: int, word: str) -> bool:
        """Returns True if this answer means that the service posted the payload."""

    @classmethod
    def connect(cls, name: str, address: str, connections: ChannelConnections) -> Self:
        """Connects the channel. `address` is the name of the secret with the webhook's URL."""
        return cls(name, connections.secret(address), connections.transport)

    def prepare(self) -> None:
        """Reads the webhook's address, and reads it again if the cached address is invalid.

        Raises ChannelBroken or ChannelUnavailable.
        """
        if self.secret_format.invalid_reason(self._url(refresh=False)) is not None:
            self._checked_url(self._url(refresh=True))

    def post(self, payload: Payload) -> None:
        """Posts the payload. If the webhook was revoked and the secret renewed, posts to the new
        address.

        Raises a ChannelError.
        """
        body = json.dumps(payload).encode()
        self.prepare()
        url = self._url(refresh=False)
        answer = self._transport(url, body, _HEADERS)
        if answer.status in _REVOKED_STATUSES:
            new_url = self._url(refresh=True)
            if new_url != url:
                answer = self._transport(self._checked_url(new_url), body, _HEADERS)
        self._judge(answer)

    def _url(self, *, refresh: bool) -> str:
        try:
            return self._address.value(refresh=refresh)
        except AccessDenied as error:
            raise ChannelBroken(f"{self._name}: {error}", "secret_denied") from error
        except BadSettings as error:
            raise ChannelBroken(f"{self._name}: {error}", "secret_unusable") from error
        except AwsError as error:
            raise ChannelUnavailable(f"{self._name}: {error}") from error

    def _checked_url(self, url: str) -> str:
        """Returns `url`. Raises ChannelBroken if it is not a webhook of this service."""
        if reason := self.secret_format.invalid_reason(url):
            message = f"{self._name}: the stored webhook is not valid: {reason}"
            raise ChannelBroken(message, "secret_unusable")
        return url

    def _judge(self, answer: Response) -> None:
        """Raises a ChannelError unless the service posted the payload."""
        status, word = answer.status, _error_word(answer.body)
        answer_text = f"{self._name}: {status} {word}"
        if self.is_accepted(status, word):
            return
        if status == _TOO_MANY_REQUESTS or word == "rate_limited":
            raise RateLimited(_retry_after_s(answer.headers))
        if status >= _SERVER_ERROR or status in _AMBIGUOUS_STATUSES:
            has_retry_after = "retry-after" in answer.headers
            raise PossiblySent(
                answer_text, _retry_after_s(answer.headers) if has_retry_after else 0
            )
        if status in _REDIRECT_STATUSES:
            message = f"{self._name}: {status}, a redirect, which is never followed"
            raise ChannelBroken(message, "redirected")
        if status in _NO_ACCESS_STATUSES:
            raise ChannelBroken(f"{answer_text}: the webhook is revoked or not permitted")
        if status in _SUCCESS or status < _SUCCESS.start:
            raise UnexpectedResponse(
                f"{answer_text}: it is not known whether the notice was posted"
            )
        raise ChannelBroken(f"{answer_text}: the notice is refused", "refused")


def _error_word(body: bytes) -> str:
    """Returns the answer's error word. For any other text, returns words that do not quote it."""
    text = body.decode("ascii", "replace").strip()
    return text if _ERROR_WORD.fullmatch(text) else "with an unknown text"


def _retry_after_s(headers: Mapping[str, str]) -> int:
    header = headers.get("retry-after", "").strip()
    seconds = int(header) if _SECONDS.fullmatch(header) else DEFAULT_WAIT_S
    return min(max(seconds, 1), MAX_WAIT_S)
