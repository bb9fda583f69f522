"""Secrets in addresses: the user and password before the host, and the values of a query."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sageaudit.domain.privacy.plain_values import is_plain, looks_secret
from sageaudit.domain.privacy.secret_names import is_secret_name

_PIECE = re.compile(r"[^\s\"'`<>]+")
_SCHEME = re.compile(r"[:=]?(?::|%3[aA])(?:\\*/){2}")
_PORT = re.compile(r"[^/@:]*:[0-9]{1,5}(?:[/?#]|\Z)")
_PAIR = re.compile(r"[?&#;]([^=&#?;]{1,80})=([^&#;]*)")
_VERSION = re.compile(r"(?:^|&)versionid=\w", re.IGNORECASE)
SOME_VERSION = "?versionId=redacted"
_OPEN_USERS = frozenset({"git", "ssh", "hg"})
_PUBLIC = frozenset(
    {
        "delimiter", "format", "lang", "page", "prefix", "region", "size", "version", "versionid",
    }
)  # fmt: skip


def address_secrets(text: str) -> Iterator[tuple[int, int]]:
    """The places of users, passwords and queries' values in all addresses of a text."""
    if "//" not in text:
        return
    for piece in _PIECE.finditer(text):
        places = [hit.span() for hit in _SCHEME.finditer(piece[0])]
        ends = [*(start for start, _ in places[1:]), len(piece[0])]
        for (start, host), end in zip(places, ends, strict=False):
            scheme = piece[0][max(0, start - 12) : start]
            for begin, stop in _of_address(piece[0][host:end], scheme):
                yield piece.start() + host + begin, piece.start() + host + stop


def without_query(address: str) -> str:
    """An address without user, query and fragment, which may sign it.

    That it names a version of an object stays, but not which one.
    """
    scheme, found, rest = address.partition("://")
    if not found:
        return address
    at = _user_end(rest)
    place, *query = re.split("[?#]", rest[at + 1 if at else 0 :], maxsplit=1)
    pinned = query and _VERSION.search(query[0])
    return f"{scheme}://{place}{SOME_VERSION if pinned else ''}"


def _of_address(rest: str, scheme: str) -> Iterator[tuple[int, int]]:
    user = _user_end(rest)
    if user and rest[:user] not in _OPEN_USERS and not scheme.startswith(("abfs", "wasb")):
        yield 0, user
    for pair in _PAIR.finditer(rest, user):
        name, value = pair[1], pair[2]
        if not value or name.lower() in _PUBLIC:
            continue
        if is_secret_name(name) or (looks_secret(value) and not is_plain(value)):
            yield pair.span(2)


def _user_end(rest: str) -> int:
    """Where the `@` before the host is; 0 without one. A password may contain `/` and `@`."""
    if _PORT.match(rest):
        return 0
    cut = re.search(r"[?#]", rest)
    at = rest.rfind("@", 0, cut.start() if cut and ":" not in rest[: cut.start()] else None)
    first = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if at > 0 and ("@" in first or ":" in first):
        return at
    return 0
