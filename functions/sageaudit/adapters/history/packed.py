"""Values as histories store them: JSON, compressed with what most audits say alike.

The first byte is the version of the dictionary, a file that never changes once a release has it:
`tools/history_dictionary.py` writes the next one. Then a zlib stream, which has a checksum.
"""

from __future__ import annotations

import zlib
from functools import cache
from importlib import resources
from typing import Any

from sageaudit.adapters.files.exact_json import from_json, to_json

VERSION = 1
"""Of the dictionary that new values are written with."""
NOT_PACKED = (ValueError, zlib.error, RecursionError)
"""What `unpack` raises for bytes that `pack` did not write."""


def pack(value: object) -> bytes:
    """The JSON of a value, some sixteenth as long for an audit."""
    return pack_text(to_json(value))


def pack_text(text: str) -> bytes:
    """The same of a JSON text."""
    packer = zlib.compressobj(zdict=_dictionary(VERSION))
    return bytes([VERSION]) + packer.compress(text.encode()) + packer.flush()


def unpack(packed: bytes) -> Any:
    """The value; numbers with a point or an exponent are Decimal. Raises one of NOT_PACKED."""
    unpacker = zlib.decompressobj(zdict=_dictionary(packed[0] if packed else 0))
    text = unpacker.decompress(packed[1:]) + unpacker.flush()
    if not unpacker.eof:
        raise ValueError("the packed value is cut")
    return from_json(text.decode())


@cache
def _dictionary(version: int) -> bytes:
    file = resources.files("sageaudit.data") / f"history-{version}.zdict"
    if not file.is_file():
        raise ValueError(f"there is no dictionary {version}")
    return file.read_bytes()
