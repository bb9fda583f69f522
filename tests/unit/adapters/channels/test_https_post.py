"""The transport under the webhook, over a real socket that ends at loopback without TLS."""

from __future__ import annotations

import logging
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from sageaudit.adapters.channels import https_post as module
from sageaudit.adapters.channels.https_post import https_post
from sageaudit.errors import ChannelUnavailable, MaybeSent

URL = "https://hooks.slack.com/services/T0001/B0001/s3cr3ts3cr3t"
HEADERS = {"Content-Type": "application/json"}


@contextmanager
def server(
    answer: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[bytes]]:
    """Stands where Slack is; yields what each connection sent."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        port = listening.getsockname()[1]

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                heard.append(_request(connection))
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        asked: list[tuple[str, int | None]] = []

        def connect(host: str, port_asked: int | None, *, timeout: float) -> HTTPConnection:
            asked.append((host, port_asked))
            return HTTPConnection("127.0.0.1", port, timeout=timeout)

        monkeypatch.setattr(module, "HTTPSConnection", connect)
        try:
            yield heard
        finally:
            thread.join()
        assert asked == [("hooks.slack.com", None)]


def _request(connection: socket.socket) -> bytes:
    heard = b""
    while not heard.endswith(b"{}"):
        heard += connection.recv(4096)
    return heard


def test_one_post_is_made_and_its_answer_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Status, headers in lower case, body."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno")

    with server(answer, monkeypatch) as heard:
        response = https_post(URL, b"{}", HEADERS)
    assert (response.status, response.headers["retry-after"], response.body) == (429, "7", b"no")
    assert heard[0].startswith(b"POST /services/T0001/B0001/s3cr3ts3cr3t HTTP/1.1\r\n")
    assert b"Content-Type: application/json\r\n" in heard[0]


def test_the_query_of_an_address_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some services keep the password there."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with server(answer, monkeypatch) as heard:
        https_post(f"{URL}?sig=s3cr3t", b"{}", HEADERS)
    assert heard[0].startswith(b"POST /services/T0001/B0001/s3cr3ts3cr3t?sig=s3cr3t HTTP/1.1\r\n")


def test_a_redirect_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server hears one request and the guard of the tests no other host."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n"
        )

    with server(answer, monkeypatch) as heard:
        assert https_post(URL, b"{}", HEADERS).status == 302
    assert len(heard) == 1


def test_a_huge_answer_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack's words are short."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5_000)

    with server(answer, monkeypatch):
        assert len(https_post(URL, b"{}", HEADERS).body) == 1_000


def test_no_connection_means_that_nothing_was_sent() -> None:
    """Nobody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(ChannelUnavailable) as raised:
        https_post(f"https://127.0.0.1:{port}/services/T/B/s3cr3t", b"{}", HEADERS)
    assert not isinstance(raised.value, MaybeSent)


def test_a_stranger_without_slacks_certificate_gets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TLS that cannot be made is a connection that was never there."""
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(ChannelUnavailable) as raised:
            https_post(f"https://127.0.0.1:{port}/services/T/B/x", b"{}", HEADERS)
    assert not isinstance(raised.value, MaybeSent)


@pytest.mark.parametrize("how", ["silent", "closed", "garbage", "half"])
def test_no_whole_answer_leaves_it_open(
    how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The notice left: it may have been posted. The address is in no error and no log."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(module, "READ_TIMEOUT_S", 0.2 if how == "silent" else 5)
    done = threading.Event()

    def answer(connection: socket.socket) -> None:
        if how == "silent":
            done.wait(5)
        elif how == "garbage":
            connection.sendall(b"s3cr3t is no HTTP\r\n\r\n")
        elif how == "half":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")

    with server(answer, monkeypatch):
        with pytest.raises(MaybeSent) as raised:
            https_post(URL, b"{}", HEADERS)
        done.set()
    told = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert "s3cr3t" not in told
