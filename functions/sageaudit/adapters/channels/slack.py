"""A Slack incoming webhook. Its address is the password: it is in no log and no error.

Made of the standard library rather than slack-sdk, which writes the address into its log at INFO on
a connection retry, follows a redirect and calls the answer a success, and takes plain http; and not
of urllib3, which writes the path at DEBUG. `http.client` does none of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from typing import Any, Protocol
from urllib.parse import urlsplit

from sageaudit.errors import (
    AccessDenied,
    AwsError,
    BadSettings,
    ChannelBroken,
    ChannelUnavailable,
    MaybeSent,
    RateLimited,
)

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 10
WAIT_S = 30
"""When Slack says to wait and not how long."""
LONGEST_WAIT_S = 43_200

_OK, _TOO_MANY, _SERVER_ERROR = 200, 429, 500
_MOVED = range(300, 400)
_REVOKED = frozenset({403, 404, 410})
"""What a webhook answers that was deleted or renewed: the secret may already hold the new one."""
_TIMEOUT = 408
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com|hooks\.slack-gov\.com)(?::443)?/services(?:/[A-Za-z0-9_-]+)+"
)
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SECONDS = re.compile(r"[0-9]{1,9}")
_MOST_BYTES = 1_000


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer; header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Transport = Callable[[str, bytes, Mapping[str, str]], Response]
"""POSTs a body once and follows nothing. Raises ChannelUnavailable, or MaybeSent."""


class Secret(Protocol):
    """Where the webhook's address is kept."""

    def value(self, *, refresh: bool = False) -> str:
        """The address."""


class SlackWebhook:
    """Implements Channel. Whatever the transport, only an address of Slack's reaches it."""

    def __init__(self, secret: Secret, transport: Transport) -> None:
        self._secret = secret
        self._transport = transport

    def post(self, payload: dict[str, Any]) -> None:
        """Posts the webhook's JSON, once more when the secret was renewed in the meantime.

        Raises RateLimited, ChannelBroken, ChannelUnavailable or MaybeSent.
        """
        body = json.dumps(payload).encode()
        url = self._address(refresh=False)
        answer = self._send(url, body)
        if answer is None or answer.status in _REVOKED:
            renewed = self._address(refresh=True)
            if renewed != url:
                answer = self._send(renewed, body)
        if answer is None:
            raise ChannelBroken(f"slack: the stored webhook is refused: {_NO_WEBHOOK}")
        _judge(answer)

    def _address(self, *, refresh: bool) -> str:
        try:
            return self._secret.value(refresh=refresh)
        except (AccessDenied, BadSettings) as error:
            raise ChannelBroken(f"slack: {error}") from error
        except AwsError as error:
            raise ChannelUnavailable(f"slack: {error}") from error

    def _send(self, url: str, body: bytes) -> Response | None:
        """None when nothing may be sent there."""
        if check_webhook(url) is not None:
            return None
        return self._transport(url, body, {"Content-Type": "application/json; charset=utf-8"})


_NO_WEBHOOK = "it is not of the form https://hooks.slack.com/services/T.../B.../..."


def check_webhook(url: str) -> str | None:
    """Why this is no address of a Slack webhook, or None when it is one; says nothing of it.

    One strict form: https, Slack's hosts, no user, no port but 443, no dots, queries or fragments.
    """
    return None if _WEBHOOK.fullmatch(url) else _NO_WEBHOOK


def https_post(url: str, body: bytes, headers: Mapping[str, str]) -> Response:
    """One POST over TLS: no redirect is followed, no proxy taken, nothing logged."""
    parts = urlsplit(url)
    connection = HTTPSConnection(parts.hostname or "", parts.port, timeout=CONNECT_TIMEOUT_S)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise ChannelUnavailable(f"slack: no connection ({type(error).__name__})") from None
        connection.sock.settimeout(READ_TIMEOUT_S)
        try:
            connection.request("POST", parts.path, body, dict(headers))
            answer = connection.getresponse()
            read = answer.read(_MOST_BYTES)
        except (OSError, HTTPException) as error:
            raise MaybeSent(f"slack: no answer came ({type(error).__name__})") from None
        if answer.length and len(read) < _MOST_BYTES:
            raise MaybeSent("slack: half an answer came")
    finally:
        connection.close()
    named = {name.lower(): value for name, value in answer.getheaders()}
    return Response(answer.status, named, read)


def _judge(answer: Response) -> None:
    """Raises unless the notice was posted."""
    status, word = answer.status, _word(answer.body)
    if status == _OK and word == "ok":
        return
    if status == _TOO_MANY or word == "rate_limited":
        raise RateLimited(_retry_after_s(answer.headers))
    if status >= _SERVER_ERROR or status == _TIMEOUT:
        raise ChannelUnavailable(f"slack: {status} {word}")
    if status in _MOVED:
        raise ChannelBroken(f"slack: {status}, a redirect, which is never followed")
    raise ChannelBroken(f"slack: {status} {word}")


def _word(body: bytes) -> str:
    """Slack's short error word; anything else is not repeated."""
    text = body.decode("ascii", "replace").strip()
    return text if _WORD.fullmatch(text) else "with an unknown text"


def _retry_after_s(headers: Mapping[str, str]) -> int:
    said = headers.get("retry-after", "").strip()
    seconds = int(said) if _SECONDS.fullmatch(said) else WAIT_S
    return min(max(seconds, 1), LONGEST_WAIT_S)
