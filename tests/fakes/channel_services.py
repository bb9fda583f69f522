"""Slack, SNS and Secrets Manager as they may behave: what reaches them, and what people see."""

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
"""What a service does with a text: returns its answer, or raises. It calls `shows` for what people
see, and is not counted as a post where it raises ChannelUnavailable."""


@dataclass
class Service:
    """`shown` has each message that a person may see; `posts` counts what reached the service."""

    clock: Clock
    behaviour: Behaviour
    shown: list[str] = field(default_factory=list)
    posts: int = 0

    def reached(self) -> None:
        """A request arrived."""
        self.posts += 1

    def shows(self, text: str) -> None:
        """A person sees it."""
        self.shown.append(text)

    def transport(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Stands for https_post."""
        del url, headers
        answer: Response = self.behaviour(self, str(json.loads(body)["text"]))
        return answer

    def publish(self, **request: Any) -> dict[str, str]:
        """Stands for boto3's SNS client."""
        answer = self.behaviour(self, str(request["Message"]))
        if isinstance(answer, Response):
            return {"MessageId": "1"}
        raise answer


def works(service: Service, text: str) -> Response:
    """Posts it."""
    service.reached()
    service.shows(text)
    return OK


def answers(status: int, body: str = "", *, shown: bool = False, **headers: str) -> Behaviour:
    """An HTTP answer; `shown` where nobody knows, and the worst is that it was posted."""

    def behave(service: Service, text: str) -> Response:
        service.reached()
        if shown or (status, body.strip()) == (200, "ok"):
            service.shows(text)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(status, named, body.encode())

    return behave


def hangs(service: Service, text: str) -> Response:
    """Posts it and says nothing."""
    service.reached()
    service.shows(text)
    service.clock.move(HANGS_S)
    raise PossiblySent("no answer came (TimeoutError)")


def refuses(error: BaseException) -> Behaviour:
    """No request reaches it."""

    def behave(service: Service, text: str) -> Response:
        del service, text
        raise error

    return behave


def says(error: BaseException, *, shown: bool = False) -> Behaviour:
    """A request reaches it, and an error comes back."""

    def behave(service: Service, text: str) -> Response:
        service.reached()
        if shown:
            service.shows(text)
        raise error

    return behave


def sns_error(code: str, status: int = 400) -> ClientError:
    """As boto3 raises it."""
    return ClientError(
        {
            "Error": {"Code": code, "Message": "about the topic"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        },
        "Publish",
    )


def secret_error(code: str) -> ClientError:
    """As boto3 raises it."""
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "GetSecretValue")


def first(*behaviours: Behaviour, then: Behaviour = works) -> Behaviour:
    """One after the other, one a request."""
    left = list(behaviours)

    def behave(service: Service, text: str) -> Any:
        return (left.pop(0) if left else then)(service, text)

    return behave


def until(seconds: float, behaviour: Behaviour) -> Behaviour:
    """So long, then it works."""

    def behave(service: Service, text: str) -> Any:
        return (behaviour if service.clock.age_s < seconds else works)(service, text)

    return behave


def bucket(retry_after: str, *, size: int = 30) -> Behaviour:
    """One a second, and `size` at once."""
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
    """Secrets Manager: the value of each secret, or an error."""

    value: str | BaseException = WEBHOOK

    def get_secret_value(self, **_: Any) -> dict[str, str]:
        """One read."""
        if isinstance(self.value, BaseException):
            raise self.value
        return {"SecretString": self.value}
