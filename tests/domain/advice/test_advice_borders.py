"""Values at both sides of each threshold that decides about the state of a recommendation."""

from datetime import UTC, datetime

import pytest

from tests.fakes.story_lines import Story

BEFORE = "03-01..03-03 cost $24 $16"


@pytest.mark.parametrize(
    ("runs", "day_text", "state", "outcome"),
    [
        # the data took 200 s to read: a fifth more is the same data
        (f"{BEFORE}; 03-08..03-13 cost $13 new A data 24", "03-14", "followed", "measured"),
        (f"{BEFORE}; 03-08..03-13 cost $13 new A data 25", "03-14", "followed", "not comparable"),
        # a download under a minute says nothing about the data
        (f"{BEFORE} data 1; 03-08..03-13 cost $13 new A data 5", "03-14", "followed", "measured"),
        (
            f"{BEFORE} data 1; 03-08..03-13 cost $9 new A data 6",
            "03-14",
            "followed",
            "not comparable",
        ),
        # of six different runs, three will never be comparable; of five, more runs may still come
        (f"{BEFORE}; 03-08..03-12 cost $13 new A data 30", "03-13", "followed", None),
        (f"{BEFORE}; 03-08..03-13 cost $13 new A data 30", "03-14", "followed", "not comparable"),
        # runs that are up to 90 days older are compared
        ("01-01..01-03 cost $24 $16; 04-01..04-03 cost $9 new A", "04-04", "followed", "measured"),
        ("01-01..01-03 cost $24 $16; 04-02..04-04 cost $9 new A", "04-05", "followed",
         "not comparable"),
        # 60 days without a run
        ("03-01..03-05 $16", "05-03", "open", None),
        ("03-01..03-05 $16", "05-04", "closed", None),
        # if one of the five runs before had the value, only three runs in a row follow it
        ("02-20 new A; 02-21..02-24 clean; 03-01 $16; 03-02 new A", "03-03", "open", None),
        ("02-20 new A; 02-21..02-25 clean; 03-01 $16; 03-02 new A", "03-03", "followed", None),
    ],
)  # fmt: skip
def test_a_recommendation_at_a_threshold(
    runs: str, day_text: str, state: str, outcome: str | None
) -> None:
    """The two rows of a pair differ just enough for another state or outcome."""
    month, day = (int(part) for part in day_text.split("-"))
    result = Story(runs).recommendation("A", datetime(2026, month, day, 12, tzinfo=UTC))
    assert (result.state.value, result.outcome) == (state, outcome)
