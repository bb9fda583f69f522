"""A sample audit for each case that pages, messages and terminal output show differently."""

from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.document import AuditDocument
from tests.fakes.documents import (
    bill,
    document,
    finding,
    fix,
    idle_capacity,
    job,
    job_arn,
    line,
    phase,
)

TUNING_ARN = job_arn("sweep-7", "hyper-parameter-tuning-job")
EXEMPT = {"by": "policy", "until": "2026-12-31", "reason": "benchmark"}
ZERO = Decimal(0)
LOOK_AT = ("communication", "profile")
NO_RULES: dict[str, Any] = {"unknown": [], "not_applicable": [], "clear": []}


def uncounted_document() -> AuditDocument:
    """Returns exempt, superseded and already reported findings, and one with alternatives."""
    way = [fix("A.B", 2, 1)]
    return document(
        findings=[
            finding("exempt", exempt=EXEMPT, saving_usd=Decimal(9)),
            finding("small", superseded_by="counted", saving_usd=ZERO),
            finding(
                "spot-not-used", reported_for_run="train-bert-0411", summary="Spot is cheaper."
            ),
            finding("counted", alternatives=[way, way]),
        ]
    )


def possibly_lost_document() -> AuditDocument:
    """Returns a failed run of $4.5534 whose checkpoints may hold part of its work."""
    perhaps = finding(
        "failed-spend",
        id="SA602",
        severity="low",
        confidence="derived",
        summary=(
            "The run failed after 3 h (AWS error); its checkpoints may hold a part of the work."
        ),
        saving_usd=ZERO,
        saving_range_usd=[ZERO, Decimal("4.5534")],
        evidence={},
        fix=[fix("RetryStrategy.MaximumRetryAttempts", None, 2)],
    )
    failed = job(name="train-bert-0414", status="Failed")
    return document(
        job=failed,
        bill=bill(total_usd=Decimal("4.5534")),
        findings=[perhaps],
        # slices of other findings, as the terminal shows possibly lost dollars only below slices
        waterfall=document()["waterfall"],
    )


def lost_document() -> AuditDocument:
    """Returns a failed run, lost at full cost, whose failure message attacks every sink."""
    hostile = (
        "Error: <!channel> see <https://evil.example/x|the fix> \x1b[31mred\x1b[0m `rm` *now*"
        " \u202egnp.exe\u2028@here :rotating_light: http://evil.example/login"
    )
    failed = finding(
        "failed-spend",
        id="SA601",
        summary=f"The run failed after 3 h 20 min and left no model: {hostile}",
        saving_usd=Decimal("4.5534"),
        evidence={"failure": hostile, "checkpoints": False},
        fix=[],
    )
    return document(
        job=job(name="train-bert-0413", status="Failed", owner="@channel *team*", instances=None),
        bill=bill(total_usd=Decimal("4.5534")),
        findings=[failed],
    )


def idle_document(**changes: Any) -> AuditDocument:
    """Returns an audit of 8 hosts at a third of their GPUs' capacity; no cheaper type fits."""
    usage_type, usd, rate_usd = "USE1-Train:ml.p5.48xlarge", Decimal("12152.832"), Decimal("63.296")
    hours = line(usage_type=usage_type, quantity=Decimal(192), rate_usd=rate_usd, usd=usd)
    underused = finding(
        "gpu-underused",
        severity="info",
        confidence="heuristic",
        bucket="none",
        summary="The GPU averaged 34% (P95 34%) over 23 h 49 min.",
        saving_usd=None,
        fix=[],
        caution="This is the smallest type with an H100.",
    )
    audited = {
        "job": job(
            name="llm-0412", instances="8 x ml.p5.48xlarge", ended_at="2026-05-21T10:00:00Z"
        ),
        "bill": bill(total_usd=usd, lines=[hours]),
        "phases": [phase("Training", 86400, "12152.832")],
        "findings": [underused],
        "idle_capacity": idle_capacity("1536", "511.582", "8105.195216", likely_causes=LOOK_AT),
    }
    return document(**audited | changes)


def unpriced_idle_document() -> AuditDocument:
    """Returns the same on a type without a price."""
    return idle_document(
        job=job(name="llm-0413", instances="8 x ml.p9.48xlarge"),
        bill=bill(total_usd=None, missing=["no price is known for ml.p9.48xlarge"], lines=[]),
        phases=[phase("Training", 86400, None)],
        idle_capacity=idle_capacity("1536", "511.582", None, likely_causes=LOOK_AT),
    )


ESTIMATE_NOTE = (
    "SageMaker's rate for ml.m6i.2xlarge is not known here; estimated from EC2's rate x 1.20"
)


def estimated_document() -> AuditDocument:
    """Returns an audit on a type whose rate is an estimate."""
    compute = line(
        usage_type="USE1-Train:ml.m6i.2xlarge",
        rate_usd=Decimal("0.4608"),
        usd=Decimal("1.3824"),
        price_as_of="2026-07-20",
        price_source="1.20 times EC2's on-demand rate in us-east-1",
        price_kind="estimate",
        note="1 x ml.m6i.2xlarge",
    )
    smaller = finding(
        "gpu-underused",
        saving_usd=Decimal("0.96"),
        evidence={},
        fix=[fix("ResourceConfig.InstanceType", "ml.m6i.2xlarge", "ml.m5.large")],
        caution=None,
        estimated=True,
    )
    return document(
        job=job(instances="1 x ml.m6i.2xlarge"),
        bill=bill(
            total_usd=Decimal("1.3908"),
            missing=[ESTIMATE_NOTE],
            estimated=[ESTIMATE_NOTE],
            price_kind="estimate",
            lines=[compute, *bill()["lines"][1:]],
        ),
        phases=[
            phase("Downloading", 1500, "0.192"),
            phase("Training", 9240, "1.18272"),
            phase("Uploading", 60, "0.00768"),
        ],
        findings=[smaller],
        possible_usd=Decimal("0.9"),
    )


def trial(number: int, usd: str, saving: str | None) -> AuditDocument:
    """Returns a trial of the tuning job `sweep-7`, with or without an underused GPU."""
    name, total = f"sweep-7-{number:03d}-0a1b2c3d", Decimal(usd)
    underused = [] if saving is None else [finding("gpu-underused", saving_usd=Decimal(saving))]
    return document(
        job=job(name=name, parent=TUNING_ARN, family=TUNING_ARN),
        bill=bill(total_usd=total, lines=[line(usd=total)]),
        findings=underused,
    )


def rollup_document() -> AuditDocument:
    """Returns a tuning job with three trials, two of them with an underused GPU."""
    underused = finding("gpu-underused")
    of_trials = finding(
        "gpu-underused",
        summary=f"In 2 of 3 training jobs, such as: {underused['summary']}",
        saving_usd=Decimal("3.80"),
        saving_alone_usd=None,
        evidence={"training_jobs": 2, **underused["evidence"]},
    )
    return document(
        job=job(
            name="sweep-7",
            arn=TUNING_ARN,
            kind="tuning",
            family="sweep",
            instances=None,
            purchase=None,
        ),
        phases=[],
        bill=bill(total_usd=Decimal("12.30"), basis="none", lines=[]),
        findings=[of_trials],
        **NO_RULES,
        children=[trial(1, "5.10", "1.70"), trial(2, "5.20", "2.10"), trial(3, "2.00", None)],
        rollup=True,
    )


def unauditable_document() -> AuditDocument:
    """Returns a job that no longer existed when it was audited."""
    return document(
        job=job(owner=None, started_at=None, ended_at=None, instances=None, purchase=None),
        phases=[],
        bill=bill(total_usd=None, complete=False, basis="none", lines=[], price_kind=None),
        judged="no",
        not_judged=["It could not be audited: SageMaker has no training job of this name."],
        findings=[],
        idle_capacity=None,
        **NO_RULES,
        unauditable="SageMaker has no training job of this name",
    )


NO_METRICS = (
    "The use of its machines was not judged: cloudwatch:GetMetricData is not permitted. "
    "Allow cloudwatch:GetMetricData."
)


def unknown(code: str, reason: str, *rules: str) -> list[dict[str, str]]:
    """Returns entries of rules that could not judge for the same reason."""
    return [{"rule": rule, "code": code, "reason": reason} for rule in rules]


UNMEASURED = unknown(
    "metric_denied",
    "GPUUtilization: cloudwatch:GetMetricData is not permitted",
    *("gpu-idle", "gpu-underused"),
)


def not_judged_document() -> AuditDocument:
    """Returns a run whose metrics could not be read: the avoidable cost is unknown."""
    return document(
        judged="no", not_judged=[NO_METRICS], findings=[], avoidable_usd=None, unknown=UNMEASURED
    )


def partly_judged_document() -> AuditDocument:
    """Returns a run with a long download whose metrics could not be read."""
    return document(
        judged="partly",
        not_judged=[NO_METRICS],
        findings=[finding("download-dominates")],
        unknown=UNMEASURED,
    )


def running_document() -> AuditDocument:
    """Returns a running job: its cost so far, without a judgement."""
    status = "the job has not ended (status InProgress)"
    still = "the job is still running"
    return document(
        job=job(status="InProgress", ended_at=None),
        audit={"settled": False},
        bill=bill(
            missing=[f"{still}, and its cost is counted up to 2026-05-20 13:00 UTC"],
            basis="estimated_from_times",
        ),
        judged="no",
        not_judged=[
            "How it used its machines can be judged only after it ends (status InProgress)."
        ],
        findings=[],
        **NO_RULES
        | {
            "unknown": unknown(
                "job_not_finished", status, "download-dominates", "gpu-idle", "gpu-underused"
            )
        },
        **dict.fromkeys(("avoidable_usd", "lost_usd", "possible_usd")),
    )


def cost_spike_document() -> AuditDocument:
    """Returns a run that cost far more than comparable runs, with nothing avoidable."""
    spike = finding(
        "cost-regression",
        id="SA703",
        severity="info",
        bucket="none",
        confidence="measured",
        summary=(
            "The run cost $182.00, but about $24.00 was expected (the median of 9 earlier runs). "
            "What changed: Training (4 h 12 min longer)."
        ),
        saving_usd=None,
        evidence={
            "total_usd": Decimal(182),
            "median_usd": Decimal(24),
            "spread_usd": Decimal("0.40"),
            "above_median_usd": Decimal(158),
            "compared_runs": 9,
        },
        fix=[],
    )
    return document(findings=[spike], bill=bill(total_usd=Decimal(182), lines=[]))


def trial_document() -> AuditDocument:
    """Returns an audit with nothing but Spot as a possible saving."""
    spot = finding(
        "spot-not-used",
        summary="It ran on demand, and runs of its family rarely fail.",
        saving_usd=Decimal(3),
        evidence={},
        caution=None,
    )
    return document(findings=[spot])
