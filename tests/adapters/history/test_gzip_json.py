"""JSON in gzip as histories store it: any tool opens it, and damaged bytes are refused."""

import gzip
import json
import shutil
import subprocess
from contextlib import suppress
from decimal import Decimal
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.files.exact_json import (
    GZIP_JSON_ERRORS,
    gzip_json,
    gzip_text,
    read_gzip_json,
    read_gzip_text,
    to_json,
)
from tests.fakes.entries import document

GUNZIP = shutil.which("gunzip") or ""
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.decimals(-9, 9, places=3),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
)


@given(_VALUES)
def test_any_value_of_json_is_read_back(value: object) -> None:
    """Numbers digit by digit."""
    assert read_gzip_json(gzip_json(value)) == value


@given(st.none() | st.booleans() | st.integers() | st.sampled_from(HTTPStatus))
def test_whole_numbers_and_flags_are_written_as_python_writes_them(value: object) -> None:
    assert to_json(value) == json.dumps(value)


def test_every_tool_opens_it() -> None:
    """The command gunzip, Python's gzip and json; equal documents have equal bytes."""
    packed = gzip_json(document())
    assert packed == gzip_json(document())
    unzipped = subprocess.run([GUNZIP], input=packed, capture_output=True, check=True).stdout
    assert json.loads(unzipped, parse_float=Decimal) == document()
    assert json.loads(gzip.decompress(packed), parse_float=Decimal) == document()


@given(st.binary(), st.integers(0), st.integers(1, 255))
def test_damaged_bytes_never_give_another_value(more: bytes, at: int, flip: int) -> None:
    """A changed byte is refused, or says nothing of the value: of the header, or a spare bit."""
    whole = gzip_json(document())
    at %= len(whole)
    changed = whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
    with suppress(*GZIP_JSON_ERRORS):
        assert read_gzip_json(changed) == document()
    for damaged in (whole[:at], whole + more + b"x", more, b""):
        with pytest.raises(GZIP_JSON_ERRORS):
            read_gzip_json(damaged)


def test_a_value_that_fills_the_memory_is_not_unpacked() -> None:
    """Some kilobytes that would be 65 MiB, in a file of somebody else."""
    with pytest.raises(ValueError, match="16 MiB"):
        read_gzip_text(gzip_text("0" * (17 * 2**20)))
