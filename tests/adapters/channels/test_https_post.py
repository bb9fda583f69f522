"""The transport under the webhook, over a real TLS connection that ends at loopback."""

import gc
import logging
import socket
import ssl
import struct
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.channels import services as module
from sageaudit.adapters.channels.services import https_post
from sageaudit.errors import ChannelUnavailable, PossiblySent
from tests.fakes.tls_server import tls_server

HEADERS = {"Content-Type": "application/json"}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(autouse=True)
def trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loopback server is its own authority, as others are in the system's list."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    """Answers with these bytes, and closes."""
    return lambda connection: connection.sendall(answer)


def cut(connection: socket.socket) -> None:
    """Closes with a reset, as where a machine goes away."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_one_post_is_made_and_its_answer_read(tmp_path: Path) -> None:
    """Status, headers in lower case, body. Some services keep a password in the query."""
    answer = b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno"
    with tls_server(tmp_path, saying(answer)) as server:
        response = https_post(f"{server.url}?sig=s3cr3t", b"{}", HEADERS)
    assert (response.status, response.headers["retry-after"], response.body) == (429, "7", b"no")
    [heard] = server.requests
    assert heard.startswith(b"POST /services/T0001/B0001/s3cr3ts3cr3t?sig=s3cr3t HTTP/1.1\r\n")
    assert b"\r\nHost: 127.0.0.1:" in heard
    assert b"Content-Type: application/json\r\n" in heard
    assert heard.endswith(b"\r\n\r\n{}")


@pytest.mark.parametrize("status", [302, 307, 308])
def test_a_redirect_is_handed_back(status: int, tmp_path: Path) -> None:
    """The server hears one request and the guard of the tests no other host."""
    answer = f"HTTP/1.1 {status} Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n"
    with tls_server(tmp_path, saying(answer.encode())) as server:
        assert https_post(server.url, b"{}", HEADERS).status == status
    assert len(server.requests) == 1


def test_a_huge_answer_is_not_read_whole(tmp_path: Path) -> None:
    """Slack's words are short; 100 MB would take the whole time."""
    sent = [0]

    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(1_000):
            connection.sendall(b"x" * 100_000)
            sent[0] += 100_000

    with tls_server(tmp_path, flood) as server:
        assert len(https_post(server.url, b"{}", HEADERS).body) == 1_000
    assert sent[0] < 50_000_000


def test_an_answer_that_ends_with_its_connection_is_read(tmp_path: Path) -> None:
    """HTTP/1.0 says no length."""
    with tls_server(tmp_path, saying(b"HTTP/1.0 200 OK\r\n\r\nok")) as server:
        assert https_post(server.url, b"{}", HEADERS).body == b"ok"


def test_no_connection_means_that_nothing_was_sent() -> None:
    """Nobody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(ChannelUnavailable):
        https_post(f"https://127.0.0.1:{port}/services/T/B/s3cr3t", b"{}", HEADERS)


def test_a_name_that_is_not_found_means_that_nothing_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The resolver's error is an OSError too."""

    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(ChannelUnavailable, match="gaierror"):
        https_post("https://hooks.slack.com/services/T/B/s3cr3t", b"{}", HEADERS)


@pytest.mark.parametrize("why", ["expired", "another name", "unknown authority"])
def test_a_stranger_without_slacks_certificate_gets_nothing(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a byte of the request is sent."""
    if why == "unknown authority":
        monkeypatch.delenv("SSL_CERT_FILE")
    name, expired = "192.0.2.1" if why == "another name" else "127.0.0.1", why == "expired"
    with (
        tls_server(tmp_path, saying(OK), name=name, expired=expired) as server,
        pytest.raises(ChannelUnavailable, match="SSLCertVerificationError"),
    ):
        https_post(server.url, b"{}", HEADERS)
    assert server.requests in ([], [b""])


@pytest.mark.parametrize("how", ["silent", "plain", "closed", "closed at once"])
def test_a_handshake_that_never_ends_means_that_nothing_was_sent(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No secret leaves before TLS stands, and no socket stays open."""
    monkeypatch.setattr(module, "EXCHANGE_TIMEOUT_S", 0.3)
    if how == "closed at once":
        wrap = ssl.SSLContext.wrap_socket

        def late(*of: Any, **more: Any) -> ssl.SSLSocket:
            time.sleep(0.1)
            return wrap(*of, **more)

        monkeypatch.setattr(ssl.SSLContext, "wrap_socket", late)

    def spoil(connection: socket.socket) -> None:
        if how == "silent":
            time.sleep(0.6)
        elif how == "plain":
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nok")
        cut(connection)

    with (
        tls_server(tmp_path, saying(OK), before_tls=spoil) as server,
        pytest.raises(ChannelUnavailable),
    ):
        https_post(server.url, b"{}", HEADERS)
    gc.collect()
    assert server.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"s3cr3t is no HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\no",
        b"HTTP/1.1 200 OK\r\n" + b"X: s3cr3t\r\n" * 200 + b"\r\nok",
    ],
    ids=["closed", "garbage", "half", "half a chunk", "too many headers"],
)
def test_no_whole_answer_leaves_it_open(
    answer: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The notice left: it may have been posted. The address is in no error and no log."""
    caplog.set_level(logging.DEBUG)
    with tls_server(tmp_path, saying(answer)) as server, pytest.raises(PossiblySent) as raised:
        https_post(server.url, b"{}", HEADERS)
    error_and_log = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert "s3cr3t" not in error_and_log


def test_a_connection_that_breaks_leaves_it_open(tmp_path: Path) -> None:
    """After the request, before the status line."""
    with tls_server(tmp_path, cut) as server, pytest.raises(PossiblySent):
        https_post(server.url, b"{}", HEADERS)


def test_a_request_that_is_not_read_leaves_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How much of it the other side has is not known."""
    monkeypatch.setattr(module, "EXCHANGE_TIMEOUT_S", 0.5)
    huge = {"Content-Length": "99999999"}
    with tls_server(tmp_path, saying(OK)) as server, pytest.raises(PossiblySent):
        https_post(server.url, b"x" * 50_000_000, huge)


@pytest.mark.parametrize("part", ["nothing", "status", "headers", "body"])
def test_an_answer_that_drips_or_hangs_ends_in_time(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte starts a socket's own time-out again; the exchange ends all the same."""
    monkeypatch.setattr(module, "EXCHANGE_TIMEOUT_S", 0.5)
    begin = {
        "nothing": b"",
        "status": b"",
        "headers": b"HTTP/1.1 200 OK\r\nX: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
    }

    def drip(connection: socket.socket) -> None:
        connection.sendall(begin[part])
        while not server.over.wait(0.05):
            connection.sendall(b"" if part == "nothing" else b"o")

    with tls_server(tmp_path, drip) as server:
        began = time.monotonic()
        with pytest.raises(PossiblySent):
            https_post(server.url, b"{}", HEADERS)
        assert time.monotonic() - began < 2
