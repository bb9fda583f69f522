"""What was told, as items: those of before are read, and corrupt ones are named."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.history.dynamo.told_items import (
    day_attributes,
    read_day,
    read_run,
    run_attributes,
)
from sageaudit.domain.alert.family_day import DayClaim, FamilyDay
from sageaudit.domain.alert.news import News, Said
from sageaudit.domain.alert.rule import Tell, Why
from sageaudit.domain.alert.run_told import RunClaim, RunTold
from sageaudit.domain.bill.finding import Severity
from sageaudit.errors import Malformed
from tests.fakes.delivering import NOON, PK

SAID = Said(2, News(Severity.HIGH, Decimal(5), None), NOON)
DAY = FamilyDay().claimed(PK, DayClaim(2, SAID.news, NOON, corrects=False), NOON)
TELL = Tell(why=Why.WORSE, after=SAID, corrects=SAID)
TOLD = RunTold().told(SAID).claimed(RunClaim(3, SAID.news, TELL, NOON, NOON))
KEYS = {"pk": "TOLD#family", "sk": "2026-05-20"}


def test_a_day_that_named_one_audit_is_read_as_a_message_of_unknown_figures() -> None:
    """It silences what it silenced: not a higher severity, nor ten times the floor."""
    day = read_day({**KEYS, "audit": f"{PK}|3", "expires_at": 1})
    [said] = day.said()
    assert (day.revision, said) == (0, Said(3, News(Severity.LOW, None, None), None))


@pytest.mark.parametrize(
    ("text", "severity", "usd"),
    [
        ("high $2.04", "high", "2.04"),
        ("low $1,234.50", "low", "1234.50"),
        ("medium unknown", "medium", None),
        ("info $0.003512", "info", "0.003512"),
    ],
)
def test_a_notice_that_was_a_text_is_read_as_figures(
    text: str, severity: str, usd: str | None
) -> None:
    """So that what was told before an upgrade is corrected after it."""
    known = None if usd is None else Decimal(usd)
    told = read_run({**KEYS, "version": Decimal(1), "news": text})
    assert told == RunTold(0, Said(1, News(Severity(severity), known, None), None))


def test_a_notice_without_a_revision_is_read() -> None:
    """So that the first write after an upgrade replaces it."""
    attributes = run_attributes(RunTold(4, SAID))
    del attributes["revision"]
    assert read_run({**KEYS, **attributes}) == RunTold(0, SAID)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.text(max_size=5)
    | st.decimals(allow_nan=True)
    | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def _replaced(item: Any, path: list[int], junk: Any) -> Any:
    """The item with junk somewhere inside."""
    if not path or not isinstance(item, dict | list) or not item:
        return junk
    if isinstance(item, list):
        place = path[0] % len(item)
        inner = _replaced(item[place], path[1:], junk)
        return [*item[:place], inner, *item[place + 1 :]]
    name = sorted(item)[path[0] % len(item)]
    return {**item, name: _replaced(item[name], path[1:], junk)}


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), JUNK)
def test_a_corrupt_item_is_malformed_or_read(path: list[int], junk: Any) -> None:
    """Never anything else."""
    for item, read in ((day_attributes(DAY), read_day), (run_attributes(TOLD), read_run)):
        corrupt = _replaced(item, path, junk)
        with suppress(Malformed):
            read({**KEYS, **corrupt} if isinstance(corrupt, dict) else {**KEYS, "news": corrupt})


@pytest.mark.parametrize("missing", ["version", "news"])
def test_a_notice_without_a_part_is_malformed(missing: str) -> None:
    """Nothing is made up."""
    item = {**KEYS, **run_attributes(RunTold(1, SAID))}
    del item[missing]
    with pytest.raises(Malformed, match=r"'TOLD#family' '2026-05-20' cannot be read"):
        read_run(item)
