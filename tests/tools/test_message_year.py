"""docs/evidence/message-year.md: the year of a made-up company is simulated, its table compared."""

from collections import Counter

import pytest

from tools.pages.message_year import PAGE, YearResult, page, play, table


@pytest.fixture(scope="module")
def year() -> YearResult:
    """Returns the result of the whole year of all subjects."""
    return play()


def test_the_page_has_the_numbers_of_the_year(year: YearResult) -> None:
    """`python -m tools.pages.message_year` writes the table."""
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text, "\n".join(table(year)))


def test_a_quarter_has_at_most_40_messages(year: YearResult) -> None:
    """Messages about running jobs are included."""
    sent = [*(sent_at for sent_at, _ in year.sent), *year.running]
    assert max(Counter((sent_at.month - 1) // 3 for sent_at in sent).values()) <= 40


def test_nearly_all_open_dollars_at_the_floor_have_a_message_within_a_day(year: YearResult) -> None:
    """No recommendation has a second message within 30 days."""
    assert year.reported_usd >= year.at_floor_usd * 95 / 100
    assert year.repeats == 0
