"""A cursor belongs to its question; anything else is one sentence."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.audit.record import JobKey, Position
from sageaudit.errors import BadUsage
from sageaudit.queries.cursor import USUAL, Place, cursor_of, read_cursor
from sageaudit.queries.question import Question, Sort
from sageaudit.queries.window import window

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
QUESTION = Question(window("30d", None, NOW), owner="ana")
PLACE = Place(Position(NOW, JobKey("arn:aws:sagemaker:x", NOW)))


@settings(deadline=None)
@given(st.text(), st.datetimes(timezones=st.just(UTC)))
def test_a_cursor_says_where_to_continue(arn: str, ended_at: datetime) -> None:
    """Whatever the run is called; a URL and a shell take it as it is."""
    place = Place(Position(ended_at, JobKey(arn, ended_at)))
    cursor = cursor_of(QUESTION, place)
    assert cursor.replace("-", "").replace("_", "").isalnum()
    assert read_cursor(QUESTION, cursor) == place


def test_tomorrow_a_cursor_is_still_good() -> None:
    """The window moves with the day; the place does not."""
    tomorrow = replace(QUESTION, window=window("31d", None, NOW))
    assert read_cursor(tomorrow, cursor_of(QUESTION, PLACE)) == PLACE


@pytest.mark.parametrize(
    "other",
    [{"owner": "bo"}, {"owner": None}, {"status": "Failed"}, {"sort": Sort.WASTE}, {"rule": "x"}],
)
def test_another_question_refuses_it(other: dict[str, str]) -> None:
    """So that no list continues in the middle of another."""
    with pytest.raises(BadUsage, match="does not belong to this question"):
        read_cursor(replace(QUESTION, **other), cursor_of(QUESTION, PLACE))  # type: ignore[arg-type]


def _forged(**changes: object) -> str:
    made = cursor_of(replace(QUESTION, sort=Sort.TOTAL), Place(PLACE.position, Decimal(1)))
    unpress = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=USUAL)
    parts = json.loads(unpress.decompress(base64.urlsafe_b64decode(made + "==")))
    for place, value in changes.items():
        parts[int(place.removeprefix("p"))] = value
    return _packed(json.dumps(parts).encode())


def _packed(text: bytes) -> str:
    press = zlib.compressobj(wbits=-zlib.MAX_WBITS, zdict=USUAL)
    return base64.urlsafe_b64encode(press.compress(text) + press.flush()).decode().rstrip("=")


def test_a_cursor_is_short_enough_to_copy() -> None:
    """It fits on two lines of a terminal, with the longest name that a job can have."""
    arn = f"arn:aws:sagemaker:eu-central-1:444455556666:training-job/{'ab3-' * 15}xyz"
    key = replace(PLACE.position.key, arn=arn)
    place = replace(PLACE, position=replace(PLACE.position, key=key))
    question = replace(QUESTION, sort=Sort.NEWEST)
    assert len(cursor_of(question, replace(place, usd=None))) < 160


def test_a_cursor_that_unpacks_to_megabytes_is_refused() -> None:
    """Only its first characters are unpacked."""
    with pytest.raises(BadUsage, match="repeat it with the same filters"):
        read_cursor(QUESTION, _packed(b"[" + b" " * 10_000_000 + b"]"))


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "x", "é", "!!!!", "e30", "W" * 5_000),
        *(_forged(p0=1), _forged(p2="2026-11-20"), _forged(p2="soon"), _forged(p3=1)),
        *(_forged(p5="NaN"), _forged(p5="x"), _forged(p5=None), _forged(p5=[1])),
    ],
)
def test_a_malformed_cursor_is_one_sentence(cursor: str) -> None:
    """It says what to do next."""
    with pytest.raises(BadUsage, match="repeat it with the same filters"):
        read_cursor(replace(QUESTION, sort=Sort.TOTAL), cursor)
