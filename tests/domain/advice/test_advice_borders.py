"""Just inside and just outside of what decides about the state of an advice."""

from datetime import UTC, datetime

import pytest

from tests.fakes.story_lines import Story

BEFORE = "03-01..03-03 cost $24 $16"


@pytest.mark.parametrize(
    ("runs", "on", "state", "outcome"),
    [
        # the data took 200 s to read: a fifth more is the same data
        (f"{BEFORE}; 03-08..03-13 cost $13 new A data 24", "03-14", "followed", "measured"),
        (f"{BEFORE}; 03-08..03-13 cost $13 new A data 25", "03-14", "followed", "not comparable"),
        # under a minute nothing is said about data
        (f"{BEFORE} data 1; 03-08..03-13 cost $13 new A data 5", "03-14", "followed", "measured"),
        (f"{BEFORE} data 1; 03-08..03-13 cost $9 new A data 6", "03-14", "followed", "not comparable"),
        # of six runs that are all different three will not be comparable; of five, they may come
        (f"{BEFORE}; 03-08..03-12 cost $13 new A data 30", "03-13", "followed", None),
        (f"{BEFORE}; 03-08..03-13 cost $13 new A data 30", "03-14", "followed", "not comparable"),
        # runs of 90 days before are compared
        ("01-01..01-03 cost $24 $16; 04-01..04-03 cost $9 new A", "04-04", "followed", "measured"),
        ("01-01..01-03 cost $24 $16; 04-02..04-04 cost $9 new A", "04-05", "followed",
         "not comparable"),
        # 60 days without a run
        ("03-01..03-05 $16", "05-03", "open", None),
        ("03-01..03-05 $16", "05-04", "closed", None),
        # a value that one of the five runs before had is taken by three runs in a row
        ("02-20 new A; 02-21..02-24 clean; 03-01 $16; 03-02 new A", "03-03", "open", None),
        ("02-20 new A; 02-21..02-25 clean; 03-01 $16; 03-02 new A", "03-03", "followed", None),
    ],
)  # fmt: skip
def test_an_advice_at_a_border(runs: str, on: str, state: str, outcome: str | None) -> None:
    """Each pair differs by the least that makes another state, or another outcome."""
    month, day = (int(part) for part in on.split("-"))
    found = Story(runs).recommendation("A", datetime(2026, month, day, 12, tzinfo=UTC))
    assert (found.state.value, found.outcome) == (state, outcome)
