"""An expert's jobs are audited as the expert would, but for differences that are named."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.labelled.expert_jobs import DISAGREED, Compared, compared, recall, table

TOO_MUCH = Decimal("1.05")


@pytest.mark.parametrize("one", compared(), ids=lambda one: one.name)
def test_a_job_is_judged_as_an_expert_would(one: Compared) -> None:
    """Dollars within the expert's bounds, idle hours too, and the right thing said.

    A difference is named with its reason; one that is gone must leave the list.
    """
    points, _ = DISAGREED.get(one.name, ((), ""))
    assert one.differs == points, one.expert.says


@pytest.mark.parametrize("one", compared(), ids=lambda one: one.name)
def test_no_more_is_counted_than_was_wasted(one: Compared) -> None:
    """Missing waste is a gap; inventing it is what users never forgive."""
    if one.wasted_usd is not None:
        assert one.counted_usd <= one.wasted_usd[1] * TOO_MUCH + 1


def test_most_of_the_certain_dollars_are_counted() -> None:
    """Four of five, and nine of ten with upper ends and possible dollars."""
    shares = recall()
    assert shares.counted >= Decimal("0.8")
    assert shares.with_upper_ends >= Decimal("0.9")


def test_the_table_is_printed() -> None:
    """`pytest -s tests/labelled` shows it beside the confusion table."""
    print(f"\n{table()}")  # noqa: T201 - what this test is for
    assert len(compared()) == 144
