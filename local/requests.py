"""The HTTP requests of the handlers, answered by recordings, by moto or by an interceptor."""

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
"""Called with the operation, such as "sqs.SendMessage", its request, and what sends it."""
_SENT = "before-send."


class RequestRouter:
    """Answers every request of a session without the network.

    An interceptor may answer a request itself, raise what a connection raises, or send it on.
    """

    def __init__(self, session: Any) -> None:
        self.between: Interceptor | None = None
        self._answers: dict[str, Answer] = {}
        session.events.unregister("before-send", botocore_stubber)
        session.events.register("before-send", self._answer)

    def register_answer(self, event: str, answer: Answer) -> None:
        """Registers the answer of one operation by its event: before-send.<service>.<operation>."""
        self._answers[event] = answer

    def _answer(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        answer = self._answers.get(event_name, botocore_stubber)

        def send() -> AWSResponse:
            return answer(event_name=event_name, request=request)

        if self.between is None:
            return send()
        return self.between(event_name.removeprefix(_SENT), request, send)


def http_answer(
    url: str, status: int, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None
) -> AWSResponse:
    """Returns an answer as it comes from the network; a mapping is sent as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return AWSResponse(url, status, dict(headers or {}), MockRawResponse(raw))
