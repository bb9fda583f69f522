"""Earlier runs of a family, and trials of a tuning job, to start a test from."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun, RunFacts
from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.job.job import Purchase
from tests.fakes.jobs import START


def earlier_run(days_ago: int = 1, **facts: Any) -> EarlierRun:
    """A completed hour on demand on one ml.m5.xlarge for $0.23; keywords are those of RunFacts.

    `status`, `total_usd`, `lost_usd` and other fields of EarlierRun itself go to it.
    """
    own = {key: facts.pop(key) for key in list(facts) if key in EarlierRun.__slots__}
    plain = RunFacts(
        purchase=Purchase.ON_DEMAND,
        instance_type="ml.m5.xlarge",
        instance_count=1,
        elapsed_s=Decimal(3600),
        billable_s=Decimal(3600),
        phase_s={"Starting": Decimal(120), "Downloading": Decimal(60), "Training": Decimal(3540)},
        left_artifact=True,
    )
    run = EarlierRun(
        name=f"train-{days_ago}",
        kind="training",
        status="Completed",
        family="training/pytorch-training/-/train",
        owner=None,
        ended_at=START - timedelta(days=days_ago),
        total_usd=Decimal("0.23"),
        avoidable_usd=Decimal(0),
        lost_usd=Decimal(0),
        facts=replace(plain, **facts),
    )
    return replace(run, **own)


def trial(number: int, objective: str | None, **changes: Any) -> Trial:
    """The hour that ends `number` hours after START, for $1."""
    plain = Trial(
        name=f"trial-{number}",
        status="Completed",
        started_at=START + timedelta(hours=number - 1),
        ended_at=START + timedelta(hours=number),
        elapsed_s=Decimal(3600),
        total_usd=Decimal(1),
        claimed_usd=Decimal(0),
        objective=None if objective is None else Decimal(objective),
    )
    return replace(plain, **changes)
