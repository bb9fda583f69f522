"""Made-up audits to record: everything has a default, a test names what it is about."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Detail, Entry
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes import documents

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ACCOUNT = "111122223333"
REGION = "us-east-1"
DETAIL = Detail(
    {"TrainingJobName": "a", "Rate": Decimal("1.10")}, {"team": "vision"}, b"\x01", None
)


def key(name: str = "train-1", created_at: datetime = NOON - timedelta(hours=2)) -> JobKey:
    """A training job's key."""
    return JobKey(f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}", created_at)


def finding(rule: str = "gpu-underused", **changes: Any) -> dict[str, Any]:
    """A finding of the sums; the id is made of the rule's name."""
    plain: dict[str, Any] = {
        "summary": "The GPU was busy 8 % of 50 minutes.",
        "saving_usd": Decimal("1.500000"),
        "saving_alone_usd": Decimal("1.730000"),
        "saving_range_usd": None,
        "evidence": {"gpu_mean_percent": Decimal("8.2"), "minutes": 50},
        "fix": [documents.fix("ResourceConfig.InstanceType", "a", "b")],
        "caution": None,
    }
    made = documents.type_finding(rule=rule, id=f"SA-{rule}", **plain | changes)
    return cast("dict[str, Any]", made)


def phase(name: str = "Training", seconds: str = "3000") -> dict[str, Any]:
    """A billed phase."""
    return cast("dict[str, Any]", documents.phase(name, int(seconds), "0.10"))


def document(name: str = "train-1", **changes: Any) -> AuditDocument:
    """An audit; `job`, `audit` and `bill` in the changes are merged into their parts."""
    real: dict[str, Any] = {**documents.document()}
    own: dict[str, dict[str, Any]] = {
        "job": {
            "name": name,
            "arn": key(name).arn,
            "family": "training/resnet",
            "owner": "ana",
            "created_at": "2026-11-20T10:00:00Z",
            "started_at": "2026-11-20T10:05:00Z",
            "ended_at": "2026-11-20T12:00:00Z",
        },
        "audit": {"version": 0, "ruleset": "2026.11", "policy": "default"},
        "bill": {"total_usd": Decimal("4.545000"), "lines": []},
        "idle_capacity": {
            "worked": Decimal(3),
            "idle": Decimal(0),
            "list_usd": Decimal(0),
            "counted_usd": Decimal(0),
            "look_at": [],
        },
    }
    for part in ("job", "audit", "bill"):
        own[part] |= changes.pop(part, {})
    whole: dict[str, Any] = {
        **{part: real[part] | values for part, values in own.items()},
        "phases": [phase()],
        "avoidable_usd": Decimal("1.500000"),
        "possible_usd": Decimal(0),
        "findings": [finding()],
        "unknown": [],
        "not_applicable": [],
        "clear": ["cpu-underused"],
        "waterfall": [],
    }
    return documents.document(**whole | changes)


def entry(
    name: str = "train-1", *, modified_s: int = 0, again: bool = False, **changes: Any
) -> Entry:
    """An entry whose job was last changed `modified_s` seconds after noon."""
    return Entry(
        key=key(name),
        last_modified_at=NOON + timedelta(seconds=modified_s),
        document=document(name, **changes),
        family_version=1,
        detail=None,
        again=again,
    )


def unsettled(name: str = "train-1", *, due_at: str | None = None, **changes: Any) -> Entry:
    """An entry that waits for a second look."""
    return entry(name, audit={"settled": False, "due_at": due_at}, **changes)


def ended(name: str, at: datetime, **changes: Any) -> Entry:
    """An entry of a job that ended then."""
    job = {"ended_at": at.isoformat()} | changes.pop("job", {})
    return entry(name, job=job, **changes)


def with_detail(given: Entry, detail: Detail = DETAIL) -> Entry:
    """The entry with its detail."""
    return replace(given, detail=detail)


def head_of(history: History, name: str = "train-1") -> AuditSummary:
    """The head of a job that was recorded."""
    head = history.head(key(name))
    assert head is not None
    return head


def stored(history: History, version: int | None = None) -> AuditDocument:
    """The document of a version of the job `train-1`, the newest by default."""
    document = history.audit(key(), version)
    assert document is not None
    return document
