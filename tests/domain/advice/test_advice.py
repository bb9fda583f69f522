"""Each row of the table in docs/advice.md is played: the state follows from the runs in any
order.
"""

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
from sageaudit.domain.audit.finding_document import RunRecommendation
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


@pytest.mark.parametrize(("runs", "day", "state", "word", "evidence"), ROWS)
def test_a_row_of_the_page_gives_its_state(
    runs: str, day: str, state: str, word: str, evidence: str
) -> None:
    """The runs arrive in their order, in other orders, and twice."""
    story = Story(runs)
    family = story.families[""]
    result = story.recommendation("A", moment(day))
    actual_evidence = result.comparison.evidence if result.comparison else ""
    label = result.silence.label if result.silence else result.outcome or ""
    assert (result.state.value, label, evidence in actual_evidence) == (state, word, True), (
        actual_evidence
    )
    for seed in range(5):
        heads = [*family.summaries.items(), *family.summaries.items()]
        random.Random(seed).shuffle(heads)
        family.summaries = dict(heads)
        random.Random(seed).shuffle(family.decisions)
        assert story.recommendation("A", moment(day)) == result


def test_the_page_has_rows_of_each_state() -> None:
    """If the table is not found, the test above would pass without a row."""
    assert {row[2] for row in ROWS} == {state.value for state in State}
    silences, outcomes = {"accepted", "snoozed", "exempt"}, {MEASURED, NOT_COMPARABLE, WITHDRAWN}
    assert {row[3] for row in ROWS} == {"", *silences, *outcomes}
    assert len(ROWS) > 45


def test_any_value_follows_a_recommendation_with_a_placeholder() -> None:
    """`s3://<bucket>/<prefix>` is a placeholder, so any new value follows it."""
    path = "CheckpointConfig.S3Uri"
    recommendation = RunRecommendation(
        "failed-spend", path, "s3://<bucket>/<prefix>", Severity.LOW, amount=Decimal(9)
    )
    recommended_run = run_summary(
        Purchase.ON_DEMAND, recommendations=(recommendation,), settings={}
    )
    later_run = run_summary(Purchase.ON_DEMAND, recommendations=(), settings={path: "set"})
    runs = [
        run_head("a", moment("03-01"), recommended_run),
        run_head("b", moment("03-02"), later_run),
    ]
    assert [result.state for result in derive_recommendations(runs, [], moment("03-03"))] == [
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
def test_all_appearances_are_counted_and_only_measured_savings_are_claimed(
    runs: str, times: int, total: str, saved: str | None
) -> None:
    """The total has the dollars of all appearances; a saving compares the bills of runs."""
    result = Story(runs).recommendation("A", moment("06-02"))
    claimed = result.comparison.saved_usd if result.comparison else None
    assert (result.appearances, known_sum(result.all_amounts)) == (times, Decimal(total))
    assert claimed == (None if saved is None else Decimal(saved))


def test_what_was_measured_stays_after_the_change_is_undone() -> None:
    """Three runs at $9 instead of $24, then the old value again: $45 was saved until then."""
    story = Story("03-01..03-03 cost $24 $16; 03-08..03-10 cost $9 new A; 03-15 cost $24 $16")
    result = story.recommendation("A", moment("03-16"))
    assert (result.state, result.appearances, result.comparison) == (State.OPEN, 2, None)
    assert [part.all_saved_usd for part in result.earlier_comparisons] == [Decimal(45)]
    assert result.measured == result.earlier_comparisons


def test_a_recommendation_that_is_measured_twice_has_both_savings() -> None:
    """The current saving is separate from the one until the change was undone."""
    story = Story(
        "03-01..03-03 cost $24 $16; 03-08..03-10 cost $9 new A;"
        " 03-15..03-17 cost $24 $16; 03-20..03-22 cost $10 new A"
    )
    result = story.recommendation("A", moment("03-23"))
    assert (result.state, result.outcome) == (State.FOLLOWED, MEASURED)
    assert [part.all_saved_usd for part in result.measured] == [Decimal(45), Decimal(42)]


def test_two_recommendations_that_were_followed_together_save_once() -> None:
    """The saving counts for the larger prediction. The other recommendation names it."""
    story = Story("03-01..03-03 cost $24 $16+$2 B; 03-08..03-10 cost $9 new A new B")
    larger, other = (story.recommendation(letter, moment("03-11")) for letter in "AB")
    assert larger.comparison is not None
    assert other.comparison is not None
    assert (larger.comparison.saved_usd, other.comparison.saved_usd) == (Decimal(15), None)
    assert other.comparison.evidence == f"measured together with {larger.id}"
