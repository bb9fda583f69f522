"""moto behind a local HTTP address, so that a process of its own can use it as AWS.

moto's own server needs Flask; the requests are answered by the same backends here. The service and
region of a request are those that it is signed for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.models import botocore_stubber

_SCOPE = re.compile(r"Credential=[^/]+/\d+/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")
_HOSTS = {"sagemaker": "api.sagemaker.{}.amazonaws.com", "pricing": "api.pricing.{}.amazonaws.com"}


@contextmanager
def moto_http() -> Iterator[str]:
    """The address of moto; to be used within `mock_aws`."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self._answer
            raise AttributeError(name)

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            scope = _SCOPE.search(self.headers.get("Authorization", ""))
            region, service = scope.groups() if scope else ("us-east-1", "s3")
            host = _HOSTS.get(service, f"{service}.{{}}.amazonaws.com").format(region)
            headers = {key: value for key, value in self.headers.items() if key != "Host"}
            request = AWSPreparedRequest(
                self.command, f"https://{host}{self.path}", headers, body, None
            )
            with lock:
                answer: Any = _stubber()("before-send", request)
            content = b"" if answer is None else answer.content
            self.send_response(404 if answer is None else answer.status_code)
            for key, value in ({} if answer is None else answer.headers).items():
                if key.lower() not in {"content-length", "connection", "transfer-encoding"}:
                    self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _stubber() -> BotocoreStubber:
    return botocore_stubber
