"""A stand-in for Slack and Teams on the loopback address: it answers posts by a script."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from sageaudit.adapters.channels.channel import Response
from sageaudit.adapters.channels.services import webhook_invalid_reason, workflow_invalid_reason
from sageaudit.errors import ChannelUnavailable, PossiblySent

_HOME, _URL = "127.0.0.1", "X-Address"
_TIMEOUT_S = 2
"""Long enough for loopback on a busy machine, short enough for tests of a Slack that hangs."""


class Answer(Struct, frozen=True):
    """The answer to one post. With `never_answers`, the post is accepted and not answered."""

    status: int = HTTPStatus.OK
    body: str = "ok"
    headers: Mapping[str, str] = field(default_factory=dict)
    never_answers: bool = False


OK, ACCEPTED = Answer(), Answer(HTTPStatus.ACCEPTED, "")
"""What Slack, and a workflow of Teams, answer to an accepted post."""


class Post(Struct, frozen=True):
    """An accepted post: its address and its JSON."""

    url: str
    payload: dict[str, Any]


class FakeSlack:
    """`taken` has the posts that were answered with success; `tried` counts all.

    `elsewhere` has posts to other webhooks, with their address: they use up no scripted answer.
    """

    def __init__(self, port: int, script: deque[Answer], taken: list[Post]) -> None:
        self.taken = taken
        self.tried = 0
        self.elsewhere: list[tuple[str, dict[str, Any]]] = []
        self._port = port
        self._script = script

    @property
    def posts(self) -> list[dict[str, Any]]:
        """Returns the accepted posts of all Slack webhooks."""
        return [post.payload for post in self.taken if webhook_invalid_reason(post.url) is None]

    def payloads_for_channel(self, channel: str) -> list[dict[str, Any]]:
        """Returns the posts to one channel of the local AWS, whose address ends with its name."""
        return [post.payload for post in self.taken if post.url.endswith(channel)]

    def queue_answers(self, *answers: Answer) -> None:
        """Sets the answers to the next posts; later posts are accepted again."""
        self._script.extend(answers)

    def transport(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Posts to the stand-in instead of `url`, as https_post does."""
        if webhook_invalid_reason(url) is not None and workflow_invalid_reason(url) is not None:
            self.elsewhere.append((url, json.loads(body)))
            return Response(HTTPStatus.OK, body=b"ok")
        self.tried += 1
        connection = HTTPConnection(_HOME, self._port, timeout=_TIMEOUT_S)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise ChannelUnavailable("no connection") from error
            try:
                connection.request("POST", urlsplit(url).path, body, {**headers, _URL: url})
                answer = connection.getresponse()
                read = answer.read()
            except (OSError, HTTPException) as error:
                raise PossiblySent("no answer came") from error
        finally:
            connection.close()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Response(answer.status, named, read)


@contextmanager
def slack_stand_in() -> Iterator[FakeSlack]:
    """Starts a stand-in that listens in this block."""
    script: deque[Answer] = deque()
    posts: list[Post] = []
    over = threading.Event()

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Accepts one post."""
            payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            usual = OK if webhook_invalid_reason(self.headers[_URL]) is None else ACCEPTED
            answer = script.popleft() if script else usual
            if answer.status == usual.status:
                posts.append(Post(self.headers[_URL], payload))
            if answer.never_answers:
                over.wait()
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body.encode())

        def log_message(self, *_: Any) -> None:
            """Logs nothing: the address is a secret."""

    server = ThreadingHTTPServer((_HOME, 0), Webhook)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield FakeSlack(server.server_port, script, posts)
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
