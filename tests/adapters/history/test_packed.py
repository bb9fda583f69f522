"""Values as histories store them: read back as they were, or said to be damaged."""

import zlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.history.packed import NOT_PACKED, VERSION, pack, unpack
from tests.adapters.history.entries import document

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.decimals(-9, 9, places=3),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
)


@given(_VALUES)
def test_any_value_of_json_is_read_back(value: object) -> None:
    """Numbers digit by digit."""
    assert unpack(pack(value)) == value


@given(st.binary(), st.integers(0), st.integers(1, 255))
def test_damaged_bytes_are_never_taken_for_a_value(more: bytes, at: int, flip: int) -> None:
    """One bit elsewhere, cut short, or something else from the beginning."""
    whole = pack(document())
    at %= len(whole)
    changed = whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
    for damaged in (changed, whole[:at], more, bytes([VERSION]) + more, b""):
        with pytest.raises(NOT_PACKED):
            unpack(damaged)


def test_a_value_that_fills_the_memory_is_not_unpacked() -> None:
    """A megabyte that would be a gigabyte, in a file of somebody else."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    zeros = b"".join(packer.compress(bytes(2**20)) for _ in range(65)) + packer.flush()
    with pytest.raises(ValueError, match="damaged"):
        unpack(bytes([VERSION]) + bytes(4) + zeros)


def test_an_audit_takes_a_fraction_of_its_json() -> None:
    """What most audits say alike is in the dictionary."""
    assert len(pack(document(total_usd=Decimal("4.545")))) < 700
