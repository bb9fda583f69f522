"""Slack, SNS and Secrets Manager as they may behave, for the real channels over a virtual clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.adapters.channels.slack import SlackChannel
from sageaudit.adapters.channels.sns import SnsChannel
from sageaudit.adapters.channels.webhook import Response
from sageaudit.errors import MaybeSent
from tests.fakes.delivering import Clock

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
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.clock().timestamp()

    @property
    def age_s(self) -> float:
        """Seconds since the beginning."""
        return self.clock().timestamp() - self.began

    def reached(self) -> None:
        """A request arrived."""
        self.posts += 1

    def shows(self, text: str) -> None:
        """A person sees it."""
        self.shown.append(text)

    def heals(self) -> None:
        """From now on it works."""
        self.behaviour = works

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
    raise MaybeSent("no answer came (TimeoutError)")


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
        return (behaviour if service.age_s < seconds else works)(service, text)

    return behave


def bucket(retry_after: str, *, size: int = 30) -> Behaviour:
    """One a second, and `size` at once."""
    level, at = [0.0], [0.0]

    def behave(service: Service, text: str) -> Response:
        level[0] = max(level[0] - (service.age_s - at[0]), 0)
        at[0] = service.age_s
        if level[0] + 1 > size:
            service.reached()
            return Response(429, {"retry-after": retry_after}, b"rate_limited")
        level[0] += 1
        return works(service, text)

    return behave


@dataclass
class Store:
    """Secrets Manager: `value`, or an error; `faults` come first, one a read."""

    clock: Clock
    value: str | BaseException = WEBHOOK
    faults: list[BaseException] = field(default_factory=list)
    failing_from_s: float | None = None
    failing_until_s: float = 0.0
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.clock().timestamp()

    def get_secret_value(self, **_: Any) -> dict[str, str]:
        """One read."""
        age_s = self.clock().timestamp() - self.began
        if self.failing_from_s is not None and self.failing_from_s <= age_s < self.failing_until_s:
            raise secret_error("ThrottlingException")
        if self.faults:
            raise self.faults.pop(0)
        if isinstance(self.value, BaseException):
            raise self.value
        return {"SecretString": self.value}

    def heals(self) -> None:
        """From now on it has a good webhook."""
        self.value, self.faults, self.failing_from_s = WEBHOOK, [], None


def slack_channel(service: Service, store: Store) -> SlackChannel:
    """The real channel."""
    reader = SecretReader(store, "sageaudit/slack-webhook", lambda: store.clock().timestamp())
    return SlackChannel(reader, service.transport)


def sns_channel(service: Service) -> SnsChannel:
    """The real channel."""
    return SnsChannel(service, "arn:aws:sns:us-east-1:111122223333:notices")
