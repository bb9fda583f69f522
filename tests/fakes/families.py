"""Builders of earlier runs of a family and of trials of a tuning job."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import RUN_FIELDS, AuditSummary, JobKey
from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.job.job import Purchase
from sageaudit.structs import replace
from tests.fakes.jobs import START


def run_summary(purchase: Purchase = Purchase.ON_DEMAND, **fields: Any) -> AuditSummary:
    """Returns a completed training job with only the required fields set."""
    defaults: dict[str, Any] = {
        "key": JobKey("arn:aws:sagemaker:eu-west-1:111122223333:training-job/run", START),
        "settled": True,
        "last_modified_at": START,
        "job": "run",
        "kind": "training",
        "status": "Completed",
        "account": "111122223333",
        "region": "eu-west-1",
        "family": "training/pytorch-training/-/train",
        "ended_at": START,
        "rollup": False,
    }
    return AuditSummary(purchase=purchase, **defaults | fields)


def run_fields(run: AuditSummary) -> dict[str, Any]:
    """Returns the fields of a summary that describe the run itself."""
    return {name: getattr(run, name) for name in RUN_FIELDS}


def earlier_run(days_ago: int = 1, **changes: Any) -> AuditSummary:
    """Returns a completed on-demand run of one hour on one ml.m5.xlarge for $0.23."""
    run = run_summary(
        job=f"train-{days_ago}",
        ended_at=START - timedelta(days=days_ago),
        total_usd=Decimal("0.23"),
        avoidable_usd=Decimal(0),
        lost_usd=Decimal(0),
        instance_type="ml.m5.xlarge",
        instance_count=1,
        elapsed_s=Decimal(3600),
        billable_s=Decimal(3600),
        phase_s={"Starting": Decimal(120), "Downloading": Decimal(60), "Training": Decimal(3540)},
        has_artifact=True,
    )
    return replace(run, **changes)


def trial(number: int, objective: str | None, **changes: Any) -> Trial:
    """Returns a one-hour trial for $1 that ends `number` hours after START."""
    plain = Trial(
        name=f"trial-{number}",
        status="Completed",
        started_at=START + timedelta(hours=number - 1),
        ended_at=START + timedelta(hours=number),
        elapsed_s=Decimal(3600),
        total_usd=Decimal(1),
        counted_usd=Decimal(0),
        objective=None if objective is None else Decimal(objective),
    )
    return replace(plain, **changes)
