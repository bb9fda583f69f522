from datetime import timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Job, Parent
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, phases, ran
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "retry-storm"


def failed(reason: str | None = "AlgorithmError: exit code 1", **changes: Any) -> Job:
    """An hour from START on ml.m5.xlarge without storage for $0.23, that failed."""
    plain: dict[str, Any] = {"status": "Failed", "secondary_status": "Failed", "volume_gb": 0}
    return ran(3600, failure=reason, **plain | changes)


def before(hours: int, **changes: Any) -> AuditSummary:
    """A run for $0.23 that failed with a code error so many hours before START."""
    plain: dict[str, Any] = {
        "status": "Failed",
        "reason": "code error",
        "ended_at": START - timedelta(hours=hours),
        "lost_usd": Decimal("0.23"),
    }
    return earlier_run(**plain | changes)


STORM = [before(1), before(2)]


test_cases = cases(
    RULE,
    "Three failures in a row are a storm. $0.23 + 2 x $0.23; since the end of the first of them.",
    row(finds("3 runs in a row failed since 2026-05-20 08:00 UTC (code error), for $0.69 so far.",
        evidence={"so_far_usd": Decimal("0.69"), "first_ended_at": "2026-05-20T08:00:00+00:00",
        "last_ended_at": "2026-05-20T11:00:00+00:00"}), failed(), earlier=STORM),
    "It takes no dollars from the runs own audits.",
    # They are lost there; here they are only stated.
    row(finds(builder="fact", usd=None, severity="info", caution="…own audit…"), failed(),
        earlier=STORM),
    "Two failures are no storm. One try and one retry; the policy may say that they are.",
    row(CLEAR, failed(), earlier=STORM[:1]),
    row(CLEAR, failed(), earlier=[]),
    row(FOUND, failed(), earlier=STORM[:1], limits={"runs_from": 2}),
    "Exactly seven days ago still counts. This run ended an hour after START.",
    row(FOUND, failed(), earlier=[before(1), before(7 * 24 - 1)]),
    row(CLEAR, failed(), earlier=[before(1),
        before(1, ended_at=START - timedelta(hours=(7 * 24 - 1), seconds=1))]),
    "A success or another reason ends the row. What failed before it does not count.",
    row(CLEAR, failed(), earlier=[before(1), before(2, status="Completed", reason=None),
        before(3)]),
    row(CLEAR, failed(), earlier=[before(1), before(2, reason="memory error"), before(3)]),
    row(CLEAR, failed(), earlier=[before(1), before(2, reason=None), before(3)]),
    "A run that somebody stopped is passed over. It is neither a failure nor a success.",
    row(finds(evidence={"failed_in_a_row": 3}), failed(), earlier=[before(1),
        before(2, status="Stopped", reason="stopped"), before(3)]),
    "A run that did not fail is clear. Also without a history: it breaks the row.",
    row(CLEAR, ran(3600), earlier=STORM),
    row(CLEAR, ran(3600, status="Stopped")),
    "Without history or time it does not know. A failed run's row is then not known.",
    row("unknown: history_unread", failed()),
    row("unknown: times_missing", failed(ended_at=None, last_modified_at=None), earlier=STORM),
    "Failures that were never billed are no matter of cost. Capacity that never came: $0 so far.",
    row(CLEAR, failed("CapacityError: none", started_at=None, training_s=None, billable_s=None,
        phases=phases(("Starting", -600))), earlier=[before(n, reason="capacity error",
        total_usd=Decimal(0)) for n in (1, 2)]),
    row(finds(evidence={"so_far_usd": Decimal("0.23")}), failed("CapacityError: none",
        started_at=None, training_s=None, billable_s=None, phases=phases(("Starting", -600))),
        earlier=[*[before(n, reason="capacity error", total_usd=Decimal(0)) for n in (1, 2)],
        before(3, reason="capacity error")]),
    "An unknown cost makes the sum a lower bound. It is never 0.",
    row(finds("…for at least $0.46 so far.", evidence={"runs_of_unknown_cost": 1}), failed(),
        earlier=[before(1), before(2, total_usd=None)]),
    "Errors of AWS belong into a retry strategy.",
    # SageMaker retries inside the job; other reasons have no parameter.
    row(finds(fix=[("RetryStrategy.MaximumRetryAttempts", None, 2)]), failed("InternalServerError"),
        earlier=[before(n, reason="AWS error") for n in (1, 2)]),
    row(finds(fix=[]), failed(), earlier=STORM),
    "The evidence says whether the settings were the same.",
    # Unknown where one run has no fingerprint.
    row(finds(evidence={"same_settings": True}), failed(fingerprint="aa"[0]),
        earlier=[before(1, fingerprint="a"), before(2, fingerprint="aa"[1])]),
    row(finds(evidence={"same_settings": False}), failed(fingerprint="ab"[0]),
        earlier=[before(1, fingerprint="a"), before(2, fingerprint="ab"[1])]),
    row(finds(evidence={"same_settings": None}), failed(fingerprint=("a", None)[0]),
        earlier=[before(1, fingerprint="a"), before(2, fingerprint=("a", None)[1])]),
    "Trials and free jobs are not its concern.",
    # Trials are one family and fail in parallel; a free job costs nothing.
    row("not applicable: …trial…", failed(parent=Parent(JobKind.TUNING.row.rollup, "arn:t"))),
    row("not applicable: …Debugger…", failed(kind=JobKind.PROCESSING,
        free="built-in Debugger rule")),
)  # fmt: skip
