"""A sweep of 1,000 jobs of one family: each recording gets through (docs/data-model.md)."""

from __future__ import annotations

import pytest

from tests.adapters.history.sweep import sweep


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("workers", [5, 50, 1_000])
def test_a_sweep_within_a_minute_is_recorded_without_a_failure(workers: int, seed: int) -> None:
    """5 is the stack's own limit of audits at one time, 1,000 is none."""
    swept = sweep(1_000, within_s=60, workers=workers, seed=seed)
    assert swept.failed == 0
    assert swept.tries.total() == 1_000
    assert swept.conflicts < 700


def test_the_stacks_own_limit_keeps_conflicts_rare() -> None:
    """One recording in eight is tried a second time."""
    swept = sweep(1_000, within_s=60, workers=5)
    assert swept.conflicts < 150
    assert max(swept.tries) <= 3
