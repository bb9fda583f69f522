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
    MaybeSent,
    RateLimited,
    UnexpectedAnswer,
)
from sageaudit.output.text.envelope import Payload

WAIT_S = 30
"""Seconds to wait when the service does not say how long."""
LONGEST_WAIT_S = 3_600
"""Our choice: a service that asks for more is asked again after this time."""

_SUCCESS = range(200, 300)
_MOVED = range(300, 400)
_TOO_MANY, _SERVER_ERROR = 429, 500
_REVOKED = frozenset({401, 403, 404, 410})
"""What a webhook answers that was deleted or renewed: the secret may already hold the new one."""
_NO_ACCESS = _REVOKED | {407}
_IN_DOUBT = frozenset({408, 425})
"""The server gave up waiting, or asks to send again: it may have read the notice all the same."""
_HEADERS = {"Content-Type": "application/json; charset=utf-8"}
_WORD = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
_SECONDS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer; header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Transport = Callable[[str, bytes, Mapping[str, str]], Response]
"""POSTs a body once and follows nothing. Raises ChannelUnavailable where the request surely did
not leave, and MaybeSent where no whole answer came."""


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

    def prepare(self) -> None:
        """Reads the address, again where the stored one may have been corrected."""
        if self._refusal(self._url(refresh=False)) is not None:
            self._checked(self._url(refresh=True))

    def post(self, payload: Payload) -> None:
        """Posts the payload, once more when the secret was renewed in the meantime."""
        body = json.dumps(payload).encode()
        self.prepare()
        url = self._url(refresh=False)
        answer = self._transport(url, body, _HEADERS)
        if answer.status in _REVOKED:
            renewed = self._url(refresh=True)
            if renewed != url:
                answer = self._transport(self._checked(renewed), body, _HEADERS)
        self._judge(answer)

    def _url(self, *, refresh: bool) -> str:
        try:
            return self._secret.value(refresh=refresh)
        except AccessDenied as error:
            raise ChannelBroken(f"{self._name}: {error}", "secret_denied") from error
        except BadSettings as error:
            raise ChannelBroken(f"{self._name}: {error}", "secret_unusable") from error
        except AwsError as error:
            raise ChannelUnavailable(f"{self._name}: {error}") from error

    def _checked(self, url: str) -> str:
        """The address. Raises ChannelBroken when nothing may be sent there."""
        if reason := self._refusal(url):
            why = f"{self._name}: the stored webhook is refused: {reason}"
            raise ChannelBroken(why, "secret_unusable")
        return url

    def _judge(self, answer: Response) -> None:
        """Raises unless the payload was posted."""
        status, word = answer.status, _word(answer.body)
        answered = f"{self._name}: {status} {word}"
        if self._accepted(status, word):
            return
        if status == _TOO_MANY or word == "rate_limited":
            raise RateLimited(_retry_after_s(answer.headers))
        if status >= _SERVER_ERROR or status in _IN_DOUBT:
            asked = "retry-after" in answer.headers
            raise MaybeSent(answered, _retry_after_s(answer.headers) if asked else 0)
        if status in _MOVED:
            why = f"{self._name}: {status}, a redirect, which is never followed"
            raise ChannelBroken(why, "redirected")
        if status in _NO_ACCESS:
            raise ChannelBroken(f"{answered}: the webhook is revoked or not permitted")
        if status in _SUCCESS or status < _SUCCESS.start:
            raise UnexpectedAnswer(f"{answered}: it is not known whether the notice was posted")
        raise ChannelBroken(f"{answered}: the notice is refused", "refused")


def _word(body: bytes) -> str:
    """A short error word; anything else is not repeated."""
    text = body.decode("ascii", "replace").strip()
    return text if _WORD.fullmatch(text) else "with an unknown text"


def _retry_after_s(headers: Mapping[str, str]) -> int:
    asked = headers.get("retry-after", "").strip()
    seconds = int(asked) if _SECONDS.fullmatch(asked) else WAIT_S
    return min(max(seconds, 1), LONGEST_WAIT_S)
