"""Fakes of Slack, SNS and Secrets Manager with chosen behaviours."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.channels.channel import Response
from sageaudit.errors import PossiblySent
from tests.fakes.calls import Clock

WEBHOOK = "https://hooks.slack.com/services/T0001/B0001/s3cr3ts3cr3t"
HANGS_S = 10
OK = Response(200, {}, b"ok")

Behaviour = Callable[["Service", str], Any]
"""How a service reacts to a text: returns its answer, or raises.

It calls `shows` if people see the text, and `reached` if the request arrived.
"""


@dataclass
class Service:
    """A service. `shown`: messages that people may see; `posts`: requests that arrived."""

    clock: Clock
    behaviour: Behaviour
    shown: list[str] = field(default_factory=list)
    posts: int = 0

    def reached(self) -> None:
        """Counts a request that arrived."""
        self.posts += 1

    def shows(self, text: str) -> None:
        """Records that people see the text."""
        self.shown.append(text)

    def transport(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Replaces https_post."""
        del url, headers
        answer: Response = self.behaviour(self, str(json.loads(body)["text"]))
        return answer

    def publish(self, **request: Any) -> dict[str, str]:
        """Replaces `publish` of boto3's SNS client."""
        answer = self.behaviour(self, str(request["Message"]))
        if isinstance(answer, Response):
            return {"MessageId": "1"}
        raise answer


def works(service: Service, text: str) -> Response:
    """Accepts the post and shows it."""
    service.reached()
    service.shows(text)
    return OK


def answers(status: int, body: str = "", *, shown: bool = False, **headers: str) -> Behaviour:
    """Returns a behaviour that gives this HTTP answer; `shown` if people see the text anyway."""

    def behave(service: Service, text: str) -> Response:
        service.reached()
        if shown or (status, body.strip()) == (200, "ok"):
            service.shows(text)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(status, named, body.encode())

    return behave


def hangs(service: Service, text: str) -> Response:
    """Shows the text but never answers."""
    service.reached()
    service.shows(text)
    service.clock.move(HANGS_S)
    raise PossiblySent("no answer came (TimeoutError)")


def refuses(error: BaseException) -> Behaviour:
    """Returns a behaviour in which no request arrives and `error` is raised."""

    def behave(service: Service, text: str) -> Response:
        del service, text
        raise error

    return behave


def fails_with(error: BaseException, *, shown: bool = False) -> Behaviour:
    """Returns a behaviour in which the request arrives and `error` comes back."""

    def behave(service: Service, text: str) -> Response:
        service.reached()
        if shown:
            service.shows(text)
        raise error

    return behave


def sns_error(code: str, status: int = 400) -> ClientError:
    """Returns the error as boto3 raises it."""
    return ClientError(
        {
            "Error": {"Code": code, "Message": "about the topic"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        },
        "Publish",
    )


def secret_error(code: str) -> ClientError:
    """Returns the error as boto3 raises it."""
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "GetSecretValue")


def in_turn(*behaviours: Behaviour, then: Behaviour = works) -> Behaviour:
    """Returns a behaviour that uses these in turn, one per request, then `then`."""
    remaining = list(behaviours)

    def behave(service: Service, text: str) -> Any:
        return (remaining.pop(0) if remaining else then)(service, text)

    return behave


def for_seconds(seconds: float, behaviour: Behaviour) -> Behaviour:
    """Returns a behaviour that lasts this many seconds and then works."""

    def behave(service: Service, text: str) -> Any:
        return (behaviour if service.clock.age_s < seconds else works)(service, text)

    return behave


def rate_limit(retry_after: str, *, size: int = 30) -> Behaviour:
    """Returns a rate limit of one post a second with a burst of `size`."""
    level, at = [0.0], [0.0]

    def behave(service: Service, text: str) -> Response:
        level[0] = max(level[0] - (service.clock.age_s - at[0]), 0)
        at[0] = service.clock.age_s
        if level[0] + 1 > size:
            service.reached()
            return Response(429, {"retry-after": retry_after}, b"rate_limited")
        level[0] += 1
        return works(service, text)

    return behave


@dataclass
class Store:
    """Fakes Secrets Manager: one value for all secrets, or an error."""

    value: str | BaseException = WEBHOOK

    def get_secret_value(self, **_: Any) -> dict[str, str]:
        """Returns the secret, or raises the error."""
        if isinstance(self.value, BaseException):
            raise self.value
        return {"SecretString": self.value}
