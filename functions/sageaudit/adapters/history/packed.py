"""Values as histories store them: JSON, compressed with what most audits say alike.

The first byte is the version of the dictionary, a file that never changes once a release has it:
`tools/history_dictionary.py` writes the next one. Then a CRC-32 of the JSON, and a raw deflate
stream.
"""

from __future__ import annotations

import zlib
from functools import cache
from importlib import resources
from typing import Any

from sageaudit.adapters.files.exact_json import from_json, to_json

VERSION = 1
"""Of the dictionary that new values are written with."""
_MOST_BYTES = 64 * 2**20
"""Of one value, unpacked: a file of somebody else must not fill the memory."""
NOT_PACKED = (ValueError, zlib.error, RecursionError)
"""What `unpack` raises for bytes that `pack` did not write."""


def pack(value: object) -> bytes:
    """The JSON of a value, some sixteenth as long for an audit."""
    return pack_text(to_json(value))


def pack_text(text: str) -> bytes:
    """The same of a JSON text."""
    data, packer = text.encode(), _packer(VERSION).copy()
    return b"".join([bytes([VERSION]), _checksum(data), packer.compress(data), packer.flush()])


def unpack(packed: bytes) -> Any:
    """The value; numbers with a point or an exponent are Decimal. Raises one of NOT_PACKED."""
    unpacker = _unpacker(packed[0] if packed else 0).copy()
    data = unpacker.decompress(packed[5:], _MOST_BYTES)
    if not unpacker.eof or _checksum(data) != packed[1:5]:
        raise ValueError("the packed value is damaged")
    return from_json(data.decode())


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big")


@cache
def _packer(version: int) -> Any:
    """One that has read the dictionary: its copies need not, which takes most of the time."""
    return zlib.compressobj(wbits=-zlib.MAX_WBITS, zdict=_dictionary(version))


@cache
def _unpacker(version: int) -> Any:
    return zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=_dictionary(version))


def _dictionary(version: int) -> bytes:
    file = resources.files("sageaudit.data") / f"history-{version}.zdict"
    if not file.is_file():
        raise ValueError(f"there is no dictionary {version}")
    return file.read_bytes()
