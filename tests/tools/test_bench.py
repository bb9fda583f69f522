"""The benchmark's programs run, so that a changed command does not break them unnoticed."""

import pytest

from tools.bench import bills


def test_a_bill_is_measured_beside_duckdbs_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command runs once, on 1,000 lines."""
    monkeypatch.setattr(bills, "LINES", 1000)
    monkeypatch.setattr(bills, "RUNS", 1)
    assert [row.label.partition(",")[0] for row in bills.rows()] == ["reconcile", "prices learn"]
