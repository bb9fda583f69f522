from __future__ import annotations

import random

from sageaudit.domain.bill.finding import Bucket, Severity


def test_severities_have_a_rank() -> None:
    """From information to high; as words they would sort by letters."""
    shuffled = random.sample(list(Severity), len(Severity))
    assert sorted(shuffled, key=lambda severity: severity.rank) == ["info", "low", "medium", "high"]
    assert Severity.INFO.rank == 0


def test_avoidable_and_lost_dollars_are_counted() -> None:
    """Possible ones are never added to them."""
    assert [bucket for bucket in Bucket if bucket.counted] == ["avoidable", "lost"]
