"""What the next runs of a family know of a run."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.audit.earlier import facts_of
from tests.fakes.jobs import ran


def test_no_more_final_metrics_are_kept_than_a_job_may_define() -> None:
    """The first 40, so that a row of the history stays small."""
    metrics = {f"metric-{n}": Decimal(n) for n in range(41)}
    facts = facts_of(ran(3600, final_metrics=metrics))
    assert list(facts.final_metrics) == list(metrics)[:40]
