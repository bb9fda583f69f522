"""docs/advice.md: each row of its table is played; a state follows from the runs in any order."""

import random
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.domain.advice.advice import (
    MEASURED,
    NOT_COMPARABLE,
    WITHDRAWN,
    State,
    derive_recommendations,
    known_sum,
)
from sageaudit.domain.audit.finding_document import Recommendation
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.job import Purchase
from tests.fakes.families import run_summary
from tests.fakes.markdown_tables import table_rows
from tests.fakes.story_lines import Story, run_head

PAGE = (Path(__file__).parents[3] / "docs" / "advice.md").read_text("utf-8")
ROWS = table_rows(PAGE, "The states as a table")


def moment(text: str) -> datetime:
    """Noon of a day, as `03-02`."""
    month, day = (int(part) for part in text.split("-"))
    return datetime(2026, month, day, 12, tzinfo=UTC)


@pytest.mark.parametrize(("runs", "on", "state", "word", "evidence"), ROWS)
def test_a_row_of_the_page_is_its_state(
    runs: str, on: str, state: str, word: str, evidence: str
) -> None:
    """In the order in which the runs were heard of, and in any other one; heard of twice, too."""
    story = Story(runs)
    family = story.families[""]
    found = story.recommendation("A", moment(on))
    said = found.comparison.evidence if found.comparison else ""
    how = found.silence.label if found.silence else found.outcome or ""
    assert (found.state.value, how, evidence in said) == (state, word, True), said
    for seed in range(5):
        heads = [*family.summaries.items(), *family.summaries.items()]
        random.Random(seed).shuffle(heads)
        family.summaries = dict(heads)
        random.Random(seed).shuffle(family.decisions)
        assert story.recommendation("A", moment(on)) == found


def test_the_page_has_rows_of_each_state() -> None:
    """So that a table which is not found is no green test."""
    assert {row[2] for row in ROWS} == {state.value for state in State}
    silences, outcomes = {"accepted", "snoozed", "exempt"}, {MEASURED, NOT_COMPARABLE, WITHDRAWN}
    assert {row[3] for row in ROWS} == {"", *silences, *outcomes}
    assert len(ROWS) > 45


def test_a_value_that_the_advice_leaves_open_is_taken_by_any() -> None:
    """`s3://<bucket>/<prefix>` is nobody's bucket."""
    path = "CheckpointConfig.S3Uri"
    one = Recommendation(
        "failed-spend", path, "s3://<bucket>/<prefix>", Severity.LOW, amount=Decimal(9)
    )
    told = run_summary(Purchase.ON_DEMAND, recommendations=(one,), settings={})
    then = run_summary(Purchase.ON_DEMAND, recommendations=(), settings={path: "set"})
    runs = [run_head("a", moment("03-01"), told), run_head("b", moment("03-02"), then)]
    assert [found.state for found in derive_recommendations(runs, [], moment("03-03"))] == [
        State.FOLLOWED
    ]


@pytest.mark.parametrize(
    ("runs", "times", "total", "saved"),
    [
        ("03-01..03-05 cost $24 $16; 03-08..03-10 cost $9 new A", 1, "80", "15"),
        ("03-01..03-03 $12; 03-08 new A; 04-20 $12; 05-01 new A; 06-01 $12", 3, "60", None),
        ("03-01..03-03 cost $24 $16; 03-08..03-13 cost $6 new A code 2", 1, "48", None),
    ],
)
def test_what_came_back_is_counted_and_only_what_was_measured_is_claimed(
    runs: str, times: int, total: str, saved: str | None
) -> None:
    """Dollars of all times; a saving of one run, bill against bill."""
    found = Story(runs).recommendation("A", moment("06-02"))
    claimed = found.comparison.saved_usd if found.comparison else None
    assert (found.appearances, known_sum(found.all_amounts)) == (times, Decimal(total))
    assert claimed == (None if saved is None else Decimal(saved))


def test_what_was_measured_stays_after_the_change_is_undone() -> None:
    """Three runs at $9 in place of $24, then the old value again: $45 saved until then."""
    story = Story("03-01..03-03 cost $24 $16; 03-08..03-10 cost $9 new A; 03-15 cost $24 $16")
    found = story.recommendation("A", moment("03-16"))
    assert (found.state, found.appearances, found.comparison) == (State.OPEN, 2, None)
    assert [part.all_saved_usd for part in found.earlier_comparisons] == [Decimal(45)]
    assert found.measured == found.earlier_comparisons


def test_an_advice_that_is_measured_twice_has_both() -> None:
    """What it saves now is apart from what it saved until it was undone."""
    story = Story(
        "03-01..03-03 cost $24 $16; 03-08..03-10 cost $9 new A;"
        " 03-15..03-17 cost $24 $16; 03-20..03-22 cost $10 new A"
    )
    found = story.recommendation("A", moment("03-23"))
    assert (found.state, found.outcome) == (State.FOLLOWED, MEASURED)
    assert [part.all_saved_usd for part in found.measured] == [Decimal(45), Decimal(42)]


def test_two_advices_that_were_taken_together_save_once() -> None:
    """At the larger promise; the other says which one has it."""
    story = Story("03-01..03-03 cost $24 $16+$2 B; 03-08..03-10 cost $9 new A new B")
    larger, other = (story.recommendation(letter, moment("03-11")) for letter in "AB")
    assert larger.comparison is not None
    assert other.comparison is not None
    assert (larger.comparison.saved_usd, other.comparison.saved_usd) == (Decimal(15), None)
    assert other.comparison.evidence == f"measured together with {larger.id}"
