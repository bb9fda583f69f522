"""Sixty large jobs are audited as an expert would, but for differences that are named."""

from __future__ import annotations

import pytest

from tests.labelled.large_jobs import DISAGREED, Compared, compared, table


@pytest.mark.parametrize("one", compared(), ids=lambda one: one.scenario.name)
def test_a_large_job_is_judged_as_an_expert_would(one: Compared) -> None:
    """Dollars within the expert's bounds, idle hours too, and the right thing said.

    A difference is named with its reason; one that is gone must leave the list.
    """
    points, _ = DISAGREED.get(one.scenario.name, ((), ""))
    assert one.differs == points, one.scenario.expert.says


def test_no_more_is_counted_than_was_wasted() -> None:
    """Missing waste is a gap; inventing it is what users never forgive."""
    for one in compared():
        high = one.scenario.expert.wasted_usd and one.scenario.expert.wasted_usd[1]
        assert high is None or (one.document["avoidable_usd"] or 0) <= high + 1


def test_the_table_is_printed() -> None:
    """`pytest -s tests/labelled` shows it beside the confusion table."""
    print(f"\n{table()}")  # noqa: T201 - what this test is for
    assert len(compared()) == 60
