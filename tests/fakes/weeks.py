"""Weeks of a small company in a history: what its families ran, cost and were advised."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.record import Entry
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from tests.adapters.history.entries import ACCOUNT, REGION, document, finding
from tests.fakes.families import run_summary

BIG, SMALL = "ml.g5.2xlarge", "ml.g4dn.xlarge"


def record(
    history: History,
    family: str,
    at: datetime,
    usd: float,
    saving: float = 0,
    *,
    lost: float = 0,
    owner: str = "ana",
    tags: dict[str, str | None] | None = None,
    unauditable: str | None = None,
) -> None:
    """One run; with a saving it is advised SMALL, without one it ran on that."""
    name = f"{family}-{at:%m%d%H%M}"
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}"
    fix = [{"parameter": "ResourceConfig.InstanceType", "old": BIG, "new": SMALL}]
    money = {"saving_usd": Decimal(str(saving)), "saving_alone_usd": Decimal(str(saving))}
    crash = {"saving_usd": Decimal(str(lost)), "saving_alone_usd": Decimal(str(lost))}
    findings = [finding("gpu-underused", fix=fix, **money)] if saving else []
    if lost:
        findings.append(finding("failed-spend", bucket="lost", fix=[], **crash))
    job: dict[str, Any] = {
        "arn": arn,
        "family": f"training/pytorch/train.py/{family}",
        "owner": owner,
        "ended_at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "created_at": f"{at - timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}",
        "status": "Failed" if lost else "Completed",
        "tags": tags or {},
    }
    whole = document(
        name,
        job=job,
        bill={"total_usd": None if unauditable else Decimal(str(usd))},
        findings=findings,
        avoidable_usd=None if unauditable else Decimal(str(saving)),
        lost_usd=Decimal(str(lost)),
        unauditable=unauditable,
        judged="no" if unauditable else "yes",
    )
    kind = BIG if saving else SMALL
    facts = run_summary(Purchase.ON_DEMAND, instance_type=kind, instance_count=1)
    key = JobKey(arn, at - timedelta(hours=2))
    history.record(Entry(key, at, whole, 1, None, run=None if unauditable else facts))
