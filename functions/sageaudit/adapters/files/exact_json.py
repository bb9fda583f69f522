"""JSON that writes money with all its digits and reads it back as Decimal.

Histories store documents as this JSON in gzip, which tools such as `gunzip` can open. Equal values
have equal bytes, since the gzip header has no time.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any

_quote = json.encoder.encode_basestring
_SCALARS = frozenset({str, int, bool, Decimal, type(None)})
"""The types of most values. They are checked first, since audits have thousands of values."""
_CONSTANTS: Mapping[bool | None, str] = {None: "null", True: "true", False: "false"}
_read = json.JSONDecoder(parse_float=Decimal).decode
_MAX_BYTES = 16 * 2**20
"""The maximum size of one unpacked value. It protects the memory from files of other people."""
GZIP_WBITS = zlib.MAX_WBITS | 16
"""Makes zlib read gzip's header and its checksum."""
GZIP_JSON_ERRORS = (ValueError, zlib.error, RecursionError)
"""The errors from reading bytes that are not gzipped JSON."""


def to_json(value: object, *, sort_keys: bool = False) -> str:
    """Returns a document's JSON text.

    A decimal always has a point or an exponent, an int never. NaN and infinities become null.
    Values of other types become strings (times in ISO 8601).
    """
    if type(value) is str:
        return _text(value)
    if type(value) in _SCALARS:
        return _scalar(value)
    if type(value) is dict or isinstance(value, Mapping):
        keys = sorted(value, key=str) if sort_keys else value
        pairs = [f"{_key(str(key))}:{to_json(value[key], sort_keys=sort_keys)}" for key in keys]
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([to_json(entry, sort_keys=sort_keys) for entry in value]) + "]"
    return _scalar(value)


def from_json(text: str) -> Any:
    """Reads JSON text. Numbers with a point or an exponent become Decimal."""
    return _read(text)


def replace_surrogates(text: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot encode, by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=1_024)
def _key(name: str) -> str:
    # Cached, since audits repeat some hundred keys many times.
    return _text(name)


def _scalar(value: object) -> str:
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, (Decimal, float)):
        return _decimal(Decimal(str(value)))
    return _text(value.isoformat() if isinstance(value, date) else str(value))


def _text(value: str) -> str:
    return _quote(value if value.isascii() else replace_surrogates(value))


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        return "null"
    text = str(value)
    return f"{text}.0" if text.lstrip("-").isdigit() else text


def gzip_json(value: object) -> bytes:
    """Returns a value's JSON in gzip."""
    return gzip_text(to_json(value))


def gzip_text(text: str) -> bytes:
    """Returns a text in gzip. Equal texts have equal bytes."""
    return gzip.compress(text.encode(), mtime=0)


def read_gzip_json(packed: bytes) -> Any:
    """Reads gzipped JSON. Raises GZIP_JSON_ERRORS."""
    return from_json(read_gzip_text(packed))


def read_gzip_text(packed: bytes) -> str:
    """Returns the text that `gzip_text` packed. Raises GZIP_JSON_ERRORS."""
    unpacker = zlib.decompressobj(wbits=GZIP_WBITS)
    data = unpacker.decompress(packed, _MAX_BYTES)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it is not one complete gzip file of at most 16 MiB")
    return data.decode()
