"""Each row of the table in docs/message-rule.md is played, and the sent messages are compared."""

from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.domain.alert.alert import FollowUpReason
from sageaudit.domain.policy.policy import Policy
from tests.fakes.markdown_tables import table_rows
from tests.fakes.story_lines import Story

POLICY = Policy(floor_usd=Decimal(10), trial_floor_usd=Decimal(20))
"""The floors that the page names."""
PAGE = Path(__file__).parents[3] / "docs" / "message-rule.md"
ROWS = [
    (runs, sent) for runs, sent, _ in table_rows(PAGE.read_text("utf-8"), "The rule as a table")
]


@pytest.mark.parametrize(("runs", "sent"), ROWS)
def test_a_row_of_the_page_gives_the_sent_messages(runs: str, sent: str) -> None:
    """The kind and day of each message are compared."""
    assert (", ".join(Story(runs, POLICY).sent) or "none") == sent


def test_the_page_has_rows_of_each_kind() -> None:
    """If the table is not found, the test above would pass without a row."""
    kinds = {word.rpartition(" ")[0] or word for _, sent in ROWS for word in sent.split(", ")}
    follow_ups = {f"follow-up: {news}" for news in FollowUpReason}
    assert kinds == follow_ups | {"none", "first", "trial", "worse", "cost-spike"}
    assert len(ROWS) > 70
