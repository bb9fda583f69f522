"""Slack and Teams behind a fake socket that follows a script of answers, hangs and cuts."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec import Struct

from sageaudit.adapters.channels import services as posting
from sageaudit.adapters.channels.services import TeamsChannel

CONNECT_S = 3


class WebhookAnswer(Struct, frozen=True):
    """A webhook's answer to one post.

    `accepts`: whether people see the post. `raw` replaces the whole answer. `cut`: the connection
    ends after this many bytes. `drips` sends one byte a second; `hangs` sends none.
    """

    status: int = 200
    body: str = "ok"
    headers: tuple[tuple[str, str], ...] = ()
    accepts: bool | None = None
    raw: bytes | None = None
    cut: int | None = None
    drips: bool = False
    hangs: bool = False
    slow_s: float = 0.0
    connect: type[OSError] | None = None
    """The error of connecting, if any."""
    resets: bool = False
    """Whether the connection is reset while the post is sent."""

    def seen(self, usual: int) -> bool:
        """Whether people see the post; `usual` is the status of accepted posts."""
        if self.accepts is not None:
            return self.accepts
        return self.status == usual and self.connect is None

    @property
    def answer(self) -> bytes:
        """The bytes of the whole answer."""
        if self.raw is not None:
            return self.raw
        body = self.body.encode()
        named = (*self.headers, ("Content-Length", str(len(body))))
        lines = "".join(f"{name}: {value}\r\n" for name, value in named)
        return f"HTTP/1.1 {self.status} said\r\n{lines}\r\n".encode() + body


OK, ACCEPTED = WebhookAnswer(), WebhookAnswer(202, "")
SLACK_HOST = "hooks.slack.com"
TEAMS_HOST = str(urlsplit(TeamsChannel.secret_format.example).hostname)
USUAL = {SLACK_HOST: OK, TEAMS_HOST: ACCEPTED}


@dataclass
class Webhooks:
    """Answers posts: first by `script` in order, then by `always`, else as usual.

    `seen` has the posts that people see, with their hosts; `tried` counts connections.
    """

    wait: Callable[[float], None]
    now: Callable[[], datetime]
    script: list[WebhookAnswer] = field(default_factory=list)
    always: WebhookAnswer | None = None
    always_until: datetime | None = None
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    seen_at: list[datetime] = field(default_factory=list)
    tried: int = 0
    strangers: list[str] = field(default_factory=list)
    """Hosts that belong to no channel."""
    plan: Callable[[datetime], WebhookAnswer | None] = lambda _: None
    """The answer at a time; it overrides `always`."""
    on_step: Callable[[str], None] = lambda _: None

    def next(self, usual: WebhookAnswer) -> WebhookAnswer:
        """Returns the answer to the next post."""
        if self.script:
            return self.script.pop(0)
        if (planned := self.plan(self.now())) is not None:
            return planned
        if self.always_until is not None and self.now() >= self.always_until:
            return usual
        return self.always or usual

    def posts_to(self, host: str) -> list[dict[str, Any]]:
        """Returns the posts that people see on one host."""
        return [post for at, post in self.seen if at == host]

    def connected(self, _: Any, host: str, port: int) -> "_Socket":
        """Replaces a TLS connection to this address; the script decides whether it succeeds."""
        self.tried += 1
        usual = USUAL.get(host, OK)
        says = self.next(usual)
        if host not in USUAL or port != 443:
            self.strangers.append(host)
        if says.connect is not None:
            if issubclass(says.connect, TimeoutError):
                self.wait(CONNECT_S)
            raise says.connect("the test's network")
        return _Socket(self, says, host)

    @contextmanager
    def ends(self, secured: "_Socket") -> Iterator[threading.Event]:
        """Replaces the timer that ends an exchange, in simulated time."""
        secured.ends_at = self.now() + timedelta(seconds=posting.EXCHANGE_TIMEOUT_S)
        yield secured.over


class _Socket:
    def __init__(self, slack: Webhooks, says: WebhookAnswer, host: str) -> None:
        self._slack = slack
        self._says = says
        self._host = host
        self._sent = b""
        self._has_arrived = False
        self.ends_at: datetime | None = None
        self.over = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def do_handshake(self) -> None:
        """Accepts the certificate."""

    def settimeout(self, seconds: float | None) -> None:
        pass

    def sendall(self, data: Any) -> None:
        self._sent += bytes(data)
        if self._says.resets:
            raise ConnectionResetError("the test's network")

    def close(self) -> None:
        pass

    def shutdown(self, how: int) -> None:
        pass

    def makefile(self, mode: str, *_: Any) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Answer(self._slack, self._says, self), buffer_size=1)

    def arrive(self) -> None:
        """Receives the request, once."""
        if self._has_arrived:
            return
        self._has_arrived, slack = True, self._slack
        slack.on_step("before POST")
        if self._says.seen(USUAL.get(self._host, OK).status):
            slack.seen.append((self._host, json.loads(self._sent.partition(b"\r\n\r\n")[2])))
            slack.seen_at.append(slack.now())
        slack.on_step("after POST")

    def is_over(self, after_s: float) -> bool:
        """Lets time pass; returns whether the exchange was ended meanwhile."""
        now = self._slack.now()
        left_s = (self.ends_at - now).total_seconds() if self.ends_at else after_s
        self._slack.wait(min(after_s, max(left_s, 0)))
        if after_s >= left_s:
            self.over.set()
        return self.over.is_set()


class _Answer(io.RawIOBase):
    def __init__(self, slack: Webhooks, says: WebhookAnswer, socket: _Socket) -> None:
        self._slack = slack
        self._says = says
        self._socket = socket
        self._left = says.answer[: says.cut]
        self._slow_s = says.slow_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads the next bytes; none if the connection was cut or its time is over."""
        self._socket.arrive()
        wait_s = 3_600.0 if self._says.hangs else self._slow_s + self._says.drips
        self._slow_s = 0.0
        if wait_s and self._socket.is_over(wait_s):
            return 0
        most = 1 if self._says.drips else len(buffer)
        part, self._left = self._left[:most], self._left[most:]
        buffer[: len(part)] = part
        return len(part)
