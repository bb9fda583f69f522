"""JSON in gzip, as histories store documents: any tool opens it, such as `gunzip`.

Equal values have equal bytes, since the header has no time.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Any

from sageaudit.adapters.files.exact_json import from_json, to_json

_MOST_BYTES = 64 * 2**20
"""Of one value, unpacked: a file of somebody else must not fill the memory."""
_GZIP = zlib.MAX_WBITS | 16
"""Tells zlib to read gzip's header, and its checksum at the end."""
NOT_GZIP_JSON = (ValueError, zlib.error, RecursionError)
"""What reading bytes raises that are not JSON in gzip."""


def gzip_json(value: object) -> bytes:
    """Return the JSON of a value in gzip."""
    return gzip_text(to_json(value))


def gzip_text(text: str) -> bytes:
    """Return a text in gzip."""
    return gzip.compress(text.encode(), mtime=0)


def read_gzip_json(packed: bytes) -> Any:
    """Return the value; numbers with a point or an exponent are Decimal. Raises NOT_GZIP_JSON."""
    return from_json(read_gzip_text(packed))


def read_gzip_text(packed: bytes) -> str:
    """Return the text of `gzip_text`. Raises one of NOT_GZIP_JSON."""
    unpacker = zlib.decompressobj(wbits=_GZIP)
    data = unpacker.decompress(packed, _MOST_BYTES)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it is not one whole gzip file of at most 64 MiB")
    return data.decode()
