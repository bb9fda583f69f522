"""A stand-in for Slack and Teams on the loopback address, which answers posts by a script."""

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
"""Seconds that are long enough for a busy machine, and short enough for tests of a Slack that
hangs."""


class Answer(Struct, frozen=True):
    """The answer to one post. With `never_answers`, the post is accepted but not answered."""

    status: int = HTTPStatus.OK
    body: str = "ok"
    headers: Mapping[str, str] = field(default_factory=dict)
    never_answers: bool = False


OK = Answer()
"""Slack's answer to an accepted post."""
ACCEPTED = Answer(HTTPStatus.ACCEPTED, "")
"""The answer of a Teams workflow to an accepted post."""


class Post(Struct, frozen=True):
    """An accepted post: its address and its JSON."""

    url: str
    payload: dict[str, Any]


class FakeSlack:
    """The stand-in for Slack and Teams.

    `accepted`: the posts that were answered with success. `post_count`: the number of all posts.
    `other_posts`: posts to other webhooks, with their addresses, which use no scripted answer.
    """

    def __init__(self, port: int, script: deque[Answer], accepted: list[Post]) -> None:
        self.accepted = accepted
        self.post_count = 0
        self.other_posts: list[tuple[str, dict[str, Any]]] = []
        self._port = port
        self._script = script

    @property
    def posts(self) -> list[dict[str, Any]]:
        """The accepted posts of all Slack webhooks."""
        return [post.payload for post in self.accepted if webhook_invalid_reason(post.url) is None]

    def payloads_for_channel(self, channel: str) -> list[dict[str, Any]]:
        """Returns the accepted posts to a channel, whose address ends with the channel's name."""
        return [post.payload for post in self.accepted if post.url.endswith(channel)]

    def queue_answers(self, *answers: Answer) -> None:
        """Sets the answers to the next posts; posts after these are accepted."""
        self._script.extend(answers)

    def transport(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Posts to the stand-in instead of `url`, with the interface of https_post."""
        if webhook_invalid_reason(url) is not None and workflow_invalid_reason(url) is not None:
            self.other_posts.append((url, json.loads(body)))
            return Response(HTTPStatus.OK, body=b"ok")
        self.post_count += 1
        connection = HTTPConnection(_HOME, self._port, timeout=_TIMEOUT_S)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise ChannelUnavailable("no connection") from error
            try:
                connection.request("POST", urlsplit(url).path, body, {**headers, _URL: url})
                answer = connection.getresponse()
                answer_body = answer.read()
            except (OSError, HTTPException) as error:
                raise PossiblySent("no answer came") from error
        finally:
            connection.close()
        answer_headers = {name.lower(): value for name, value in answer.getheaders()}
        return Response(answer.status, answer_headers, answer_body)


@contextmanager
def slack_stand_in() -> Iterator[FakeSlack]:
    """Runs a stand-in inside the block."""
    script: deque[Answer] = deque()
    posts: list[Post] = []
    is_over = threading.Event()

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answers one post by the script."""
            payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            success = OK if webhook_invalid_reason(self.headers[_URL]) is None else ACCEPTED
            answer = script.popleft() if script else success
            if answer.status == success.status:
                posts.append(Post(self.headers[_URL], payload))
            if answer.never_answers:
                is_over.wait()
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
        is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()
