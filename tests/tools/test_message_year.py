"""docs/evidence/message-year.md: the year of a made-up company is played, its table compared."""

from collections import Counter

import pytest

from tools.pages.message_year import PAGE, Played, page, play, table


@pytest.fixture(scope="module")
def year() -> Played:
    """The whole year of all subjects."""
    return play()


def test_the_page_has_the_numbers_of_the_year(year: Played) -> None:
    """Written anew by `python -m tools.pages.message_year`."""
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text, "\n".join(table(year)))


def test_a_quarter_has_at_most_40_messages(year: Played) -> None:
    """Those about running jobs are included."""
    sent = [*(at for at, _ in year.sent), *year.running]
    assert max(Counter((at.month - 1) // 3 for at in sent).values()) <= 40


def test_nearly_all_open_dollars_at_the_floor_have_a_message_within_a_day(year: Played) -> None:
    """And no advice has a second one within 30 days."""
    assert year.told_usd >= year.at_floor_usd * 95 / 100
    assert year.repeats == 0
