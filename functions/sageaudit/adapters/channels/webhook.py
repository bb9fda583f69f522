"""A webhook. Its URL is a secret, so it never appears in a log or an error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sageaudit.errors import (
    AccessDenied,
    AwsError,
    BadSettings,
    ChannelBroken,
    ChannelUnavailable,
    RateLimited,
)
from sageaudit.text.envelope import Payload

WAIT_S = 30
"""Seconds to wait when the service does not say how long."""
LONGEST_WAIT_S = 43_200

_TOO_MANY, _SERVER_ERROR = 429, 500
_MOVED = range(300, 400)
_REVOKED = frozenset({403, 404, 410})
"""What a webhook answers that was deleted or renewed: the secret may already hold the new one."""
_TIMEOUT = 408
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SECONDS = re.compile(r"[0-9]{1,9}")


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


class Webhook:
    """Posts JSON to one service. Whatever the transport, only an address of the service reaches it.

    `refusal` says why a text is no address of the service; `accepted` which answers mean that the
    payload was posted, by status and error word.
    """

    def __init__(
        self,
        name: str,
        secret: Secret,
        transport: Transport,
        *,
        refusal: Callable[[str], str | None],
        accepted: Callable[[int, str], bool],
    ) -> None:
        self._name = name
        self._secret = secret
        self._transport = transport
        self._refusal = refusal
        self._accepted = accepted

    def post(self, payload: Payload) -> None:
        """Posts the payload, once more when the secret was renewed in the meantime.

        Raises RateLimited, ChannelBroken, ChannelUnavailable or MaybeSent.
        """
        body = json.dumps(payload).encode()
        url = self._url(refresh=False)
        answer = self._send(url, body)
        if answer is None or answer.status in _REVOKED:
            renewed = self._url(refresh=True)
            if renewed != url:
                url, answer = renewed, self._send(renewed, body)
        if answer is None:
            raise ChannelBroken(
                f"{self._name}: the stored webhook is refused: {self._refusal(url)}"
            )
        self._judge(answer)

    def _url(self, *, refresh: bool) -> str:
        try:
            return self._secret.value(refresh=refresh)
        except (AccessDenied, BadSettings) as error:
            raise ChannelBroken(f"{self._name}: {error}") from error
        except AwsError as error:
            raise ChannelUnavailable(f"{self._name}: {error}") from error

    def _send(self, url: str, body: bytes) -> Response | None:
        """None when nothing may be sent there."""
        if self._refusal(url) is not None:
            return None
        return self._transport(url, body, {"Content-Type": "application/json; charset=utf-8"})

    def _judge(self, answer: Response) -> None:
        """Raises unless the payload was posted."""
        status, word = answer.status, _word(answer.body)
        if self._accepted(status, word):
            return
        if status == _TOO_MANY or word == "rate_limited":
            raise RateLimited(_retry_after_s(answer.headers))
        if status >= _SERVER_ERROR or status == _TIMEOUT:
            raise ChannelUnavailable(f"{self._name}: {status} {word}")
        if status in _MOVED:
            raise ChannelBroken(f"{self._name}: {status}, a redirect, which is never followed")
        raise ChannelBroken(f"{self._name}: {status} {word}")


def _word(body: bytes) -> str:
    """A short error word; anything else is not repeated."""
    text = body.decode("ascii", "replace").strip()
    return text if _WORD.fullmatch(text) else "with an unknown text"


def _retry_after_s(headers: Mapping[str, str]) -> int:
    said = headers.get("retry-after", "").strip()
    seconds = int(said) if _SECONDS.fullmatch(said) else WAIT_S
    return min(max(seconds, 1), LONGEST_WAIT_S)
