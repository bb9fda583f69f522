"""One POST over TLS with the standard library.

slack-sdk is not used: it logs the address at INFO on a connection retry, follows a redirect and
calls the answer a success, and accepts plain http. urllib3 logs the path at DEBUG. `http.client`
does none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from sageaudit.adapters.channels.webhook import Response
from sageaudit.errors import ChannelUnavailable, MaybeSent

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 10
_MOST_BYTES = 1_000


def https_post(url: str, body: bytes, headers: Mapping[str, str]) -> Response:
    """A Transport: no redirect is followed, no proxy taken, nothing logged."""
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    connection = HTTPSConnection(parts.hostname or "", parts.port, timeout=CONNECT_TIMEOUT_S)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise ChannelUnavailable(f"no connection ({type(error).__name__})") from None
        connection.sock.settimeout(READ_TIMEOUT_S)
        try:
            connection.request("POST", path, body, dict(headers))
            answer = connection.getresponse()
            read = answer.read(_MOST_BYTES)
        except (OSError, HTTPException) as error:
            raise MaybeSent(f"no answer came ({type(error).__name__})") from None
        if answer.length and len(read) < _MOST_BYTES:
            raise MaybeSent("half an answer came")
    finally:
        connection.close()
    named = {name.lower(): value for name, value in answer.getheaders()}
    return Response(answer.status, named, read)
