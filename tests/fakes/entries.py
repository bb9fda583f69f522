"""Audit entries to record in a history, and readers of their results."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import AuditEntry, Detail, RunQuery
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes import documents
from tests.fakes.families import run_summary

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DETAIL = Detail(
    {"TrainingJobName": "a", "Rate": Decimal("1.10")}, {"team": "vision"}, b"\x01", None
)
BIG, SMALL = "ml.g5.2xlarge", "ml.g4dn.xlarge"


def key(name: str = "train-1", created_at: datetime = NOON - timedelta(hours=2)) -> JobKey:
    """Returns the key of a training job."""
    return JobKey(documents.job_arn(name), created_at)


def finding(rule: str = "gpu-underused", **changes: Any) -> dict[str, Any]:
    """Returns a finding that avoids $1.50; its id is `SA-` and the rule's name."""
    sample = documents.finding(
        rule, **{"id": f"SA-{rule}", "saving_usd": Decimal("1.500000")} | changes
    )
    return cast("dict[str, Any]", sample)


def document(name: str = "train-1", **changes: Any) -> AuditDocument:
    """Returns an audit of $4.545, $1.50 of it avoidable; its job ended at noon.

    `job`, `audit` and `bill` change keys of these parts.
    """
    job = {
        "name": name,
        "family": "training/resnet",
        "owner": "ana",
        "created_at": "2026-11-20T10:00:00Z",
        "started_at": "2026-11-20T10:05:00Z",
        "ended_at": "2026-11-20T12:00:00Z",
    }
    whole: dict[str, Any] = {
        "job": job | changes.pop("job", {}),
        "audit": {"ruleset": "2026.11", "policy": "default"} | changes.pop("audit", {}),
        "bill": {"total_usd": Decimal("4.545000"), "lines": []} | changes.pop("bill", {}),
        "phases": [documents.phase("Training", 3000, "0.10")],
        "idle_capacity": documents.idle_capacity("3", "3", "0"),
        "findings": [finding()],
        "unknown": [],
        "not_applicable": [],
        "waterfall": [],
    }
    return documents.document(**whole | changes)


def entry_of(audit: AuditDocument, run: AuditSummary | None = None) -> AuditEntry:
    """Returns an entry of this audit; the job was last modified when it ended."""
    job = audit["job"]
    created_at, ended_at = (
        NOON if text is None else datetime.fromisoformat(text)
        for text in (job["created_at"], job["ended_at"])
    )
    key = JobKey(str(job["arn"]), created_at)
    return AuditEntry(key, ended_at, audit, family_version=1, detail=None, run_summary=run)


def entry(
    name: str = "train-1", *, modified_s: int = 0, force_new_version: bool = False, **changes: Any
) -> AuditEntry:
    """Returns an entry whose job was last modified `modified_s` seconds after noon."""
    return AuditEntry(
        key=key(name),
        last_modified_at=NOON + timedelta(seconds=modified_s),
        document=document(name, **changes),
        family_version=1,
        detail=None,
        force_new_version=force_new_version,
    )


def unsettled_entry(
    name: str = "train-1", *, due_at: str | None = None, **changes: Any
) -> AuditEntry:
    """Returns an entry of an audit that is not final and will be made again."""
    return entry(name, audit={"settled": False, "due_at": due_at}, **changes)


def entry_ending_at(name: str, at: datetime, **changes: Any) -> AuditEntry:
    """Returns an entry of a job that ended then."""
    job = {"ended_at": at} | changes.pop("job", {})
    return entry(name, job=job, **changes)


def with_detail(given: AuditEntry, detail: Detail = DETAIL) -> AuditEntry:
    """Returns the entry with a detail."""
    return replace(given, detail=detail)


def record_run(
    history: History,
    family: str,
    at: datetime,
    *,
    cost_usd: float,
    avoidable_usd: float = 0,
    lost_usd: float = 0,
    unauditable: str | None = None,
    **job: Any,
) -> None:
    """Records a two-hour run that ended at `at`, with these costs.

    If some cost was avoidable, it ran on BIG and SMALL is recommended; otherwise it ran on SMALL.
    """
    smaller = [documents.fix("ResourceConfig.InstanceType", BIG, SMALL)]
    underused = finding("gpu-underused", fix=smaller, saving_usd=Decimal(str(avoidable_usd)))
    failed = finding("failed-spend", fix=[], saving_usd=Decimal(str(lost_usd)))
    audit = document(
        f"{family}-{at:%m%d%H%M}",
        job={
            "family": f"training/pytorch/train.py/{family}",
            "created_at": at - timedelta(hours=2),
            "ended_at": at,
            "status": "Failed" if lost_usd else "Completed",
            **job,
        },
        bill={"total_usd": None if unauditable else Decimal(str(cost_usd))},
        findings=[*([underused] if avoidable_usd else ()), *([failed] if lost_usd else ())],
        unauditable=unauditable,
        judged="no" if unauditable else "yes",
    )
    run = run_summary(instance_type=BIG if avoidable_usd else SMALL, instance_count=1)
    history.record(entry_of(audit, None if unauditable else run))


def summary_of(history: History, name: str = "train-1") -> AuditSummary:
    """Returns the summary of a recorded job."""
    head = history.summary(key(name))
    assert head is not None
    return head


def stored_document(history: History, version: int | None = None) -> AuditDocument:
    """Returns an audit version of the job `train-1`, the newest by default."""
    document = history.audit(key(), version)
    assert document is not None
    return document


def due_audits(history: History, until: datetime) -> list[AuditSummary]:
    """Returns the audits due by then, oldest first; all must be readable."""
    heads = []
    for head in history.runs(RunQuery.due_until(until)):
        assert isinstance(head, AuditSummary)
        heads.append(head)
    return heads
