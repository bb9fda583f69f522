"""A deployed deliver over a virtual clock, with Slack, SNS and the secret as they may behave.

The channels, the handler and its retries are the real ones.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from botocore.exceptions import ClientError

from deliver.handler import wired
from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.channels.channel import Response
from sageaudit.adapters.channels.services import SlackChannel, SnsChannel, checks
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.errors import MaybeSent, Unavailable
from sageaudit.ports import Channel
from sageaudit.workflows.deliver import DeliverDependencies
from tests.fakes.delivering import CHANNELS, PAYLOADS, Clock, notice_body
from tests.fakes.memory_ledger import MemorySendLedger
from tests.fakes.queues import FakeQueue

WEBHOOK = "https://hooks.slack.com/services/T0001/B0001/s3cr3ts3cr3t"
HANGS_S, RECEIVE_S = 10, 0.5
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


class FaultyLedger(MemorySendLedger):
    """`faults`: by method, what is raised before each call; `lost`: after it had its effect."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, list[BaseException]] = {}
        self.lost: dict[str, list[BaseException]] = {}
        self.away_until_s: dict[str, float] = {}
        self.clock: Callable[[], float] = lambda: 0.0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found) or name in ("state", "clock"):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.clock() < self.away_until_s.get(name, 0):
                raise Unavailable("the table is away")
            if before := self.faults.get(name):
                raise before.pop(0)
            answer = found(*args, **kwargs)
            if after := self.lost.get(name):
                raise after.pop(0)
            return answer

        return call


class Delivery:
    """The function, its queues, and what people see, hour by hour."""

    def __init__(
        self,
        slack: Behaviour | None = None,
        sns: Behaviour | None = None,
        channels: Sequence[str] = ("slack", "sns"),
    ) -> None:
        self.clock = Clock()
        self.services = {
            "slack": Service(self.clock, slack or works),
            "sns": Service(self.clock, sns or works),
        }
        self.store = Store(self.clock)
        self.ledger = FaultyLedger()
        self.ledger.clock = lambda: self.services["slack"].age_s
        self.counts: dict[tuple[str, str | None], int] = {}
        self.texts: list[str] = []
        self.queues = {name: FakeQueue(name, self.clock) for name in self.services}
        self.dead = FakeQueue("dead", self.clock)
        secret = SecretReader(self.store, "slack-webhook", lambda: self.clock().timestamp())
        connected: dict[str, Any] = {
            "slack": SlackChannel("slack", secret, self.services["slack"].transport),
            "sns": SnsChannel(self.services["sns"], "arn:aws:sns:us-east-1:111122223333:notices"),
        }
        working = cast("Mapping[str, Channel]", {name: connected[name] for name in channels})
        self.handle = wired(
            DeliverDependencies(cast("Any", self.ledger), working, self.clock),
            queues=cast("dict[str, SqsQueue]", {name: self.queues[name] for name in channels}),
            dead_letters=self.dead,
            checks={name: one for name, one in checks(CHANNELS).items() if name in channels},
            report=cast("Report", Counting(self.counts, self.texts)),
        )

    def notify(self, channel: str = "slack", *, count: int = 1, first: int = 1) -> None:
        """New notices, each with a number as its version."""
        for number in range(first, first + count):
            self.queues[channel].put(numbered_body(channel, number))

    def run(self, *, until_s: float = 15 * 86_400) -> None:
        """Delivers what is due until no message waits, or until so many seconds from now."""
        end = self.clock().timestamp() + until_s
        while waiting := [
            (one.visible_at, name)
            for name, queue in self.queues.items()
            if (one := queue.next()) is not None
        ]:
            at, name = min(waiting)
            if at.timestamp() > end:
                return
            self.clock.move(max((at - self.clock()).total_seconds(), 0) + RECEIVE_S)
            self.deliver_next(name)

    def deliver_next(self, channel: str) -> None:
        """One invocation with one message."""
        queue = self.queues[channel]
        message = queue.next()
        assert message is not None
        queue.deliver(message, self.handle, self.dead)

    def redrive(self) -> int:
        """Sends every dead letter again, as `sageaudit redrive notices` does; how many."""
        letters = list(self.dead.messages.values())
        self.dead.messages.clear()
        for letter in letters:
            self.queues[json.loads(letter.body)["channel"]].put(letter.body)
        return len(letters)

    def heal(self) -> None:
        """Everything works again."""
        for service in self.services.values():
            service.behaviour = works
        self.store.value, self.store.faults, self.store.failing_from_s = WEBHOOK, [], None
        for plan in (self.ledger.faults, self.ledger.lost, self.ledger.away_until_s):
            plan.clear()
        self.dead.errors.clear()

    def anew(self) -> None:
        """Posts and counts are those from here on."""
        self.services["slack"].posts, self.services["slack"].shown[:] = 0, []
        self.counts.clear()

    def reasons(self) -> list[str]:
        """Of the dead letters."""
        return [attributes.get("reason", "") for attributes in self.dead.attributes()]


class Counting:
    """A Report that only adds up, and keeps every text."""

    def __init__(self, counts: dict[tuple[str, str | None], int], texts: list[str]) -> None:
        self._counts = counts
        self._texts = texts

    def count(self, name: str, *, channel: str | None = None) -> None:
        self._counts[name, channel] = self._counts.get((name, channel), 0) + 1

    def defect(self, message: str, error: Exception, **named: Any) -> None:
        self._texts.append(f"{message} {error!r} {named}")

    def __getattr__(self, name: str) -> Any:
        def note(*words: Any, **named: Any) -> None:
            self._texts.append(f"{name} {words} {named}")

        return note


def numbered_body(channel: str, number: int) -> str:
    """A notice whose payload says its number."""
    message = json.loads(notice_body(channel, version=number))
    key = "text" if channel == "slack" else "message"
    message["payload"] = {**PAYLOADS[channel], key: f"notice {number}"}
    return json.dumps(message)
