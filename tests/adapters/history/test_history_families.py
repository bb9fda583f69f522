"""What History promises of a family's runs: what rules compare, and only runs that ended before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.audit.record import earlier_run
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from tests.adapters.history.entries import ACCOUNT, NOON, REGION, ended

FACTS = RunFacts(
    purchase=Purchase.SPOT,
    instance_type="ml.g5.xlarge",
    instance_count=2,
    elapsed_s=Decimal("3600.250"),
    billable_s=Decimal(1200),
    phase_s={"Training": Decimal("3000.1"), "Downloading": Decimal(600)},
    retained_s=Decimal(60),
    fingerprint="f" * 64,
    data_pinned=False,
    left_artifact=True,
    reason_class="memory error",
    final_metrics={"validation:auc": Decimal("0.91234567890123456"), "odd": Decimal("1E-300")},
    found=("gpu-idle", "spot-not-used"),
)
BARE = RunFacts(purchase=Purchase.ON_DEMAND)


def test_what_rules_compare_comes_back_as_it_was(history: History) -> None:
    """Exact numbers, of any exponent; what is not known stays unknown."""
    history.record(replace(ended("full", NOON), facts=FACTS))
    history.record(replace(ended("bare", NOON - timedelta(hours=1)), facts=BARE))
    history.record(ended("none", NOON - timedelta(hours=2)))
    heads = list(history.by_family(ACCOUNT, REGION, "training/resnet"))
    assert [head.facts for head in heads] == [FACTS, BARE, None]
    runs = [earlier_run(head) for head in heads]
    assert [run and run.name for run in runs] == ["full", "bare", None]


def test_only_runs_that_ended_before_are_listed(history: History) -> None:
    """A run that ended at that very moment is not before it; the newest come first."""
    for hour in range(5):
        history.record(ended(f"at-{hour}", NOON + timedelta(hours=hour)))
    heads = history.by_family(
        ACCOUNT, REGION, "training/resnet", limit=2, before=NOON + timedelta(hours=3)
    )
    assert [head.name for head in heads] == ["at-2", "at-1"]


def test_a_roll_up_is_no_run_to_compare_with(history: History) -> None:
    """Its dollars are its children's."""
    history.record(replace(ended("sweep", NOON, rollup=True), facts=BARE))
    [head] = history.by_family(ACCOUNT, REGION, "training/resnet", limit=1)
    assert earlier_run(head) is None
