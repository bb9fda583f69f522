"""Small histories and the right figures of each, as scenarios.md has them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.ports import History
from tests.fakes import documents, sample_documents
from tests.fakes.entries import entry_of
from tests.fakes.families import run_summary
from tests.fakes.markdown_tables import named_rows
from tests.fakes.sample_documents import ESTIMATE_NOTE

PAGE = Path(__file__).with_name("scenarios.md").read_text(encoding="utf-8")
NOW = datetime(2026, 11, 9, 8, 0, tzinfo=UTC)
"""A Monday. The jobs ended on Thursday, those that they are compared with a week before."""
ENDED, ENDED_BEFORE = datetime(2026, 11, 5, 12, tzinfo=UTC), datetime(2026, 10, 29, 12, tzinfo=UTC)
FAMILY, OWNER, TYPE = "training/ranker", "anna", "ml.g5.2xlarge"
NO_STORAGE = "storage: no ML storage price for us-east-1 (Training)"
NO_PRICE = "no Training price known for ml.g5.2xlarge in us-east-1"


def finding(rule: str, usd: str | None, most: str | None = None, **more: Any) -> Any:
    """A finding that saves `usd`, or between that and `most`."""
    saving = None if usd is None else Decimal(usd)
    span = None if most is None else [saving, Decimal(most)]
    return documents.finding(rule, saving_usd=saving, saving_range_usd=span, **more)


def job(usd: str | None, *findings: Any, idle: Any = None, **bill: Any) -> AuditDocument:
    """An audit of a job that cost `usd`; `bill` says what is not certain of that."""
    total = None if usd is None else Decimal(usd)
    return documents.document(
        bill={"total_usd": total, "lines": [], **bill}, findings=[*findings], idle_capacity=idle
    )


def idle_hour(usd: str | None) -> Any:
    """A GPU-hour of `usd` that was not used."""
    return documents.idle_capacity("3", "2", usd)


IDLE_OF_NO_PRICE = finding("gpu-idle", None)
GUESSED_SAVING = finding("gpu-idle", "0.50", estimated=True)
UNJUDGED: dict[str, Any] = {"judged": "no", "avoidable_usd": None, "possible_usd": None}
JOBS: dict[str, AuditDocument] = {
    "exact": job("4.00", finding("gpu-idle", "1.50")),
    "zero": job("0", idle=idle_hour("0")),
    "tiny": job("0.004", finding("gpu-idle", "0.003")),
    "unpriced": job(None, IDLE_OF_NO_PRICE, missing=[NO_PRICE]),
    "unjudged": cast("AuditDocument", job("4.00") | UNJUDGED),
    "lower": job("3.00", finding("gpu-idle", "1.00"), missing=[NO_STORAGE]),
    "upper": job("0.74", IDLE_OF_NO_PRICE, basis="upper_bound", missing=[UPPER_BOUND]),
    "upper and lower": job(
        "0.80", IDLE_OF_NO_PRICE, basis="upper_bound", missing=[UPPER_BOUND, NO_STORAGE]
    ),
    "estimate": job("2.00", GUESSED_SAVING, missing=[ESTIMATE_NOTE], estimated=[ESTIMATE_NOTE]),
    "estimate and lower": job(
        "2.50", GUESSED_SAVING, missing=[ESTIMATE_NOTE, NO_STORAGE], estimated=[ESTIMATE_NOTE]
    ),
    "estimate and upper": job(
        "0.60",
        IDLE_OF_NO_PRICE,
        basis="upper_bound",
        missing=[UPPER_BOUND, ESTIMATE_NOTE],
        estimated=[ESTIMATE_NOTE],
    ),
    "lost": job("1.00", finding("failed-spend", "1.00")),
    "maybe lost": job("5.00", finding("failed-spend", "0", "4.09")),
    "maybe avoidable": job("5.00", finding("gpu-idle", "0", "4.09")),
    "possible": job("6.00", finding("spot-not-used", "0.90")),
    "maybe possible": job("6.00", finding("spot-not-used", "0", "0.90")),
    "unknown possible": job("6.00", finding("spot-not-used", None)),
    "partly possible": job(
        "6.00", finding("spot-not-used", "0.90"), finding("trainium-candidate", None)
    ),
    "idle": job("4.00", idle=idle_hour("1.20")),
    "idle without a price": job("4.00", idle=idle_hour(None)),
}
"""What one job cost and what an audit found in it."""


class Scenario(Struct, frozen=True):
    """Jobs of one week and of the week before, and the right figures by what they are of.

    `rule` found something in the jobs; it is empty if no view is asked for a rule's dollars.
    """

    jobs: list[str]
    before: list[str]
    right: dict[str, str]
    rule: str

    @property
    def bucket(self) -> str:
        """The sum that the rule's dollars are in."""
        return documents.BUCKETS.get(self.rule, "avoidable")

    @property
    def has_one_job(self) -> bool:
        """Whether a list of jobs has one row."""
        return len(self.jobs) == 1 and not self.before


def _scenarios() -> Iterator[tuple[str, Scenario]]:
    for heading in ("One job", "Several jobs", "Compared with the week before"):
        for row in named_rows(PAGE, heading):
            jobs, before = row.pop("jobs"), row.pop("week before", "")
            rule, _, usd = row.pop("rule", "").partition(" ")
            right = row | ({"rule": usd} if rule else {})
            name = f"{jobs} after {before}" if before else jobs
            yield (
                name,
                Scenario(jobs.split(", "), before.split(", ") if before else [], right, rule),
            )


SCENARIOS = dict(_scenarios())


def record(history: History, scenario: Scenario) -> None:
    """Records the scenario's jobs; to compare two weeks, a history has to be older than both."""
    if scenario.before:
        history.record(_entry(JOBS["zero"], ENDED_BEFORE - timedelta(days=14)))
    for jobs, ended_at in ((scenario.before, ENDED_BEFORE), (scenario.jobs, ENDED)):
        for number, name in enumerate(jobs):
            history.record(_entry(JOBS[name], ended_at - timedelta(minutes=number)))


def record_rollup(history: History) -> None:
    """Records a tuning job of three training jobs, which ended in May."""
    history.record(entry_of(sample_documents.rollup_document()))


def _entry(audit: AuditDocument, ended_at: datetime) -> AuditEntry:
    job = documents.job(
        name=f"ranker-{ended_at:%m%d%H%M}",
        family=FAMILY,
        owner=OWNER,
        created_at=ended_at - timedelta(hours=4),
        started_at=ended_at - timedelta(hours=3),
        ended_at=ended_at,
    )
    return entry_of({**audit, "job": job}, run_summary(instance_type=TYPE, instance_count=1))
