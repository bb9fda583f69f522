"""Answers the HTTP requests of the handlers with recordings, with moto or with an interceptor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto.core.botocore_stubber import MockRawResponse
from moto.core.models import botocore_stubber

Answer = Callable[..., AWSResponse]
Send = Callable[[], AWSResponse]
Interceptor = Callable[[str, AWSPreparedRequest, Send], AWSResponse]
"""Called with the operation, such as "sqs.SendMessage", the request, and a function that sends it.
"""
_EVENT_PREFIX = "before-send."


class RequestRouter:
    """Answers every request of a session without the network.

    An interceptor may answer a request itself, raise a connection error, or send the request.
    """

    def __init__(self, session: Any) -> None:
        self.interceptor: Interceptor | None = None
        self._answers: dict[str, Answer] = {}
        session.events.unregister("before-send", botocore_stubber)
        session.events.register("before-send", self._answer)

    def register_answer(self, event: str, answer: Answer) -> None:
        """Registers the answer to an operation, by its event: before-send.<service>.<operation>."""
        self._answers[event] = answer

    def _answer(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        answer = self._answers.get(event_name, botocore_stubber)

        def send() -> AWSResponse:
            return answer(event_name=event_name, request=request)

        if self.interceptor is None:
            return send()
        return self.interceptor(event_name.removeprefix(_EVENT_PREFIX), request, send)


def http_answer(
    url: str, status: int, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None
) -> AWSResponse:
    """Returns an answer as from the network; a mapping becomes JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return AWSResponse(url, status, dict(headers or {}), MockRawResponse(raw))
