"""One POST over TLS with the standard library.

slack-sdk is not used: it logs the address at INFO on a connection retry, follows a redirect and
calls the answer a success, and accepts plain http. urllib3 logs the path at DEBUG. `http.client`
does none of these.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from sageaudit.adapters.channels.channel import Response
from sageaudit.errors import ChannelUnavailable, MaybeSent

CONNECT_TIMEOUT_S = 3
EXCHANGE_WITHIN_S = 10
"""TLS, request and answer together: the time-out of a socket starts again at each byte."""
_HTTPS = 443
_MOST_BYTES = 1_000


def https_post(url: str, body: bytes, headers: Mapping[str, str]) -> Response:
    """A Transport: no redirect is followed, no proxy taken, nothing logged."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    context = ssl.create_default_context()
    try:
        secured = _connected(context, host, parts.port or _HTTPS)
    except OSError as error:
        raise ChannelUnavailable(f"no connection ({type(error).__name__})") from None
    with secured, _ends(secured) as over:
        try:
            secured.do_handshake()
        except OSError as error:
            raise ChannelUnavailable(f"no secure connection ({type(error).__name__})") from None
        with closing(HTTPSConnection(host, parts.port, context=context)) as connection:
            connection.sock = secured
            try:
                connection.request("POST", path, body, dict(headers))
                answer = connection.getresponse()
                read = answer.read(_MOST_BYTES)
            except (OSError, HTTPException) as error:
                raise MaybeSent(f"no answer came ({type(error).__name__})") from None
        if over.is_set() or (answer.length and len(read) < _MOST_BYTES):
            raise MaybeSent("half an answer came")
    named = {name.lower(): value for name, value in answer.getheaders()}
    return Response(answer.status, named, read)


def _connected(context: ssl.SSLContext, host: str, port: int) -> ssl.SSLSocket:
    """A connection before its TLS handshake, which will check the certificate and its name.

    Wrapped before it is connected: of a connection that the other side has reset meanwhile,
    `wrap_socket` leaves the socket open.
    """
    failed = OSError("no address")
    for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        secured = context.wrap_socket(
            socket.socket(family, kind), server_hostname=host, do_handshake_on_connect=False
        )
        try:
            secured.settimeout(CONNECT_TIMEOUT_S)
            secured.connect(address)
            secured.settimeout(EXCHANGE_WITHIN_S)
        except OSError as error:
            secured.close()
            failed = error
        else:
            return secured
    raise failed


@contextmanager
def _ends(secured: ssl.SSLSocket) -> Iterator[threading.Event]:
    """Shuts the connection at the end of its time; whoever reads from it then reads its end."""
    over = threading.Event()

    def shut() -> None:
        over.set()
        with suppress(OSError):
            # Not SSLSocket.shutdown, which takes TLS away under whoever is still reading.
            socket.socket.shutdown(secured, socket.SHUT_RDWR)

    timer = threading.Timer(EXCHANGE_WITHIN_S, shut)
    timer.daemon = True
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()
