"""Serves moto at a local HTTP address, so that another process can use it as AWS.

moto's own server needs Flask; here the same backends answer the requests. The service and region of
a request are those in its signature.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from moto.core.models import botocore_stubber

_SCOPE = re.compile(r"Credential=[^/]+/\d+/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")
_HOSTS = {"sagemaker": "api.sagemaker.{}.amazonaws.com", "pricing": "api.pricing.{}.amazonaws.com"}
_OWN_HEADERS = {"content-length", "connection", "transfer-encoding", "date", "server"}


@dataclass
class MotoHttp:
    """The server's address, and the calls so far: `SageMaker.ListTrainingJobs`, or the path."""

    url: str
    calls: list[str] = field(default_factory=list)
    slow_s: float = 0
    """Delay before each answer."""


@contextmanager
def moto_http() -> Iterator[MotoHttp]:
    """Serves moto in this block; use it within `mock_aws`."""
    lock, aws = threading.Lock(), MotoHttp("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self._answer
            raise AttributeError(name)

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            aws.calls.append(self.headers.get("X-Amz-Target", self.path))
            time.sleep(aws.slow_s)
            request = _request(self.command, self.path, self.headers, body)
            with lock:
                answer: Any = botocore_stubber("before-send", request)
            content = b"" if answer is None else answer.content
            self.send_response(404 if answer is None else answer.status_code)
            for key, value in ({} if answer is None else answer.headers).items():
                if key.lower() not in _OWN_HEADERS:
                    self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(ConnectionError):  # the process was stopped meanwhile
                self.wfile.write(b"" if self.command == "HEAD" else content)

        def log_message(self, *_: Any) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    aws.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield aws
    finally:
        server.shutdown()
        server.server_close()


def _request(method: str, path: str, headers: Message, body: bytes) -> AWSPreparedRequest:
    """Returns the request as if it was sent to AWS's host."""
    scope = _SCOPE.search(headers.get("Authorization", ""))
    unsigned = ("us-east-1", "sts" if b"Action=GetCallerIdentity" in body else "s3")
    region, service = scope.groups() if scope else unsigned
    host = _HOSTS.get(service, f"{service}.{{}}.amazonaws.com").format(region)
    kept_headers = {key: value for key, value in headers.items() if key != "Host"}
    return AWSPreparedRequest(method, f"https://{host}{path}", kept_headers, body, None)
