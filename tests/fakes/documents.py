"""Audit documents to start a test from: whole, small, with exact money."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

from sageaudit.domain.advice.advice import Advice, State
from sageaudit.domain.audit.bill_document import LineDocument
from sageaudit.domain.audit.document import AuditDocument, JobDocument, PhaseDocument
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument, Worth
from sageaudit.domain.bill.finding import Severity

ACCOUNT, REGION = "111122223333", "us-east-1"
TUNING_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/sweep-7"


def job(**overrides: Any) -> JobDocument:
    """A training job of two hours on one GPU instance."""
    name = overrides.get("name", "train-bert-0412")
    whole = {
        "name": name,
        "arn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}",
        "kind": "training",
        "status": "Completed",
        "account": ACCOUNT,
        "region": REGION,
        "family": "train-bert",
        "owner": "anna",
        "created_at": "2026-05-20T09:58:00Z",
        "started_at": "2026-05-20T10:00:00Z",
        "ended_at": "2026-05-20T13:00:00Z",
        "tags": {},
        "image": None,
        "instances": "1 x ml.g5.2xlarge",
        "purchase": "on_demand",
        "parent": None,
    }
    return cast("JobDocument", whole | overrides)


def fix(parameter: str, old: Any, new: Any) -> FixDocument:
    """One parameter to change."""
    return {"parameter": parameter, "old": old, "new": new}


def finding(**overrides: Any) -> FindingDocument:
    """A download that took a fifth of a run."""
    whole = {
        "rule": "download-dominates",
        "id": "SA101",
        "severity": "high",
        "confidence": "measured",
        "bucket": "avoidable",
        "summary": "Downloading took 25 min of 3 h billed (14%), $0.51, before the first step.",
        "saving_usd": Decimal("0.505"),
        "saving_alone_usd": Decimal("0.505"),
        "saving_range_usd": None,
        "superseded_by": None,
        "subsumed_by": None,
        "exempt": None,
        "evidence": {
            "download_s": Decimal(1500),
            "download_share_percent": Decimal("13.9"),
            "input_mode": "File",
        },
        "fix": [fix("InputDataConfig[0].InputMode", "File", "FastFile")],
        "first_step": None,
        "alternatives": [],
        "alternatives_usd": [],
        "caution": None,
        "in_chat": True,
        "estimated": False,
        "said_of": None,
    }
    return cast("FindingDocument", whole | overrides)


def type_finding(**overrides: Any) -> FindingDocument:
    """A GPU that worked little; the smaller type saves about a third."""
    whole = {
        "rule": "gpu-underused",
        "id": "SA202",
        "severity": "medium",
        "confidence": "derived",
        "summary": "The GPU averaged 11% over 2 h 20 min; p95 was 24%.",
        "saving_usd": Decimal("1.53"),
        "saving_alone_usd": Decimal("1.73"),
        "saving_range_usd": [Decimal("1.73"), Decimal("1.98")],
        "evidence": {
            "gpu_mean_percent": Decimal("11.2"),
            "gpu_p95_percent": Decimal(24),
            "gpu_memory_max_percent": Decimal("38.5"),
            "active_s": Decimal(8400),
        },
        "fix": [fix("ResourceConfig.InstanceType", "ml.g5.2xlarge", "ml.g4dn.xlarge")],
        "caution": "The data loader gets 4 vCPUs in place of 8.",
    }
    return finding(**(whole | overrides))


PLAIN: dict[str, Any] = {
    "estimated": [],
    "price_kind": "list",
    "spot_saved_usd": None,
    "prepaid_value_usd": None,
    "notes": [],
    "spend_qualifier": "exact",
}
"""A bill at list prices with nothing to add."""
NO_LINES: dict[str, Any] = {"missing": [], "basis": "none", "lines": [], **PLAIN}
NO_HOSTS: dict[str, Any] = {"instances": None, "purchase": None}
NO_RULES: dict[str, Any] = {"unknown": [], "not_applicable": [], "clear": []}


def line(**overrides: Any) -> LineDocument:
    """Three hours of one instance."""
    whole = {
        "item": "compute",
        "usage_type": "USE1-Train:ml.g5.2xlarge",
        "quantity": Decimal(3),
        "unit": "instance-hours",
        "rate_usd": Decimal("1.515"),
        "usd": Decimal("4.545"),
        "price_as_of": "2026-05-20",
        "price_source": "AWS Price List, component Hosting",
        "price_kind": "list",
        "note": None,
    }
    return cast("LineDocument", whole | overrides)


def phase(
    name: str, seconds: int | None, usd: str | None, *, billed: bool = True, why: str | None = None
) -> PhaseDocument:
    """One occurrence of a phase; `why` it is not billed although instances worked."""
    return {
        "name": name,
        "seconds": None if seconds is None else Decimal(seconds),
        "billed": billed,
        "not_billed_because": why,
        "usd": None if usd is None else Decimal(usd),
    }


def document(**overrides: Any) -> AuditDocument:
    """A whole audit: $4.55, of which $2.04 by two findings. Nested parts are given whole."""
    whole = {
        "schema": 1,
        "job": job(),
        "audit": {
            "version": 1,
            "settled": True,
            "due_at": None,
            "ruleset": "1",
            "policy": "1",
            "pool": None,
            "coverage": {
                "period_s": 60,
                "hosts": 1,
                "hosts_expected": 1,
                "share": {"GPUUtilization": Decimal("0.98"), "CPUUtilization": Decimal(1)},
                "missing": [],
            },
        },
        "phases": [
            phase("Starting", 130, "0", billed=False),
            phase("Downloading", 1500, "0.63125"),
            phase("Training", 9240, "3.8885"),
            phase("Uploading", 60, "0.02525"),
        ],
        "bill": {
            "total_usd": Decimal("4.5534"),
            "complete": True,
            "missing": [],
            "basis": "billable_seconds",
            **PLAIN,
            "lines": [
                line(),
                line(
                    item="storage",
                    usage_type="USE1-Train:VolumeUsage.gp2",
                    quantity=Decimal("0.06"),
                    unit="GB-months",
                    rate_usd=Decimal("0.14"),
                    usd=Decimal("0.0084"),
                    note="30 GB for 3 h of a month of 744 h",
                ),
            ],
        },
        "judged": "yes",
        "not_judged": [],
        "avoidable_usd": Decimal("2.035"),
        "lost_usd": Decimal(0),
        "lost_up_to_usd": overrides.get("lost_usd", Decimal(0)),
        "possible_usd": Decimal("0.9"),
        "idle_capacity": {
            "unit": "gpu_hours",
            "paid": Decimal(3),
            "worked": Decimal("0.29"),
            "idle": Decimal("2.71"),
            "list_usd": Decimal("4.10565"),
            "counted_usd": Decimal("2.035"),
            "look_at": ["batch_size", "profile"],
        },
        "findings": [
            type_finding(),
            finding(),
            finding(
                rule="spot-not-used",
                id="SA401",
                severity="low",
                confidence="heuristic",
                bucket="possible",
                summary="On-demand run that writes checkpoints: managed spot is worth a trial.",
                saving_usd=Decimal("0.9"),
                saving_alone_usd=None,
                evidence={"checkpoints": True},
                fix=[fix("EnableManagedSpotTraining", False, True)],
                alternatives=[],
                caution="Spot has no published rate; interruptions repeat work.",
            ),
        ],
        "unknown": [
            {
                "rule": "cpu-underused",
                "code": "metrics_missing",
                "reason": "CPUUtilization covers 41% of the active time",
            }
        ],
        "not_applicable": [{"rule": "failed-spend", "reason": "the job completed"}],
        "clear": ["max-runtime-loose"],
        "waterfall": slices(gpu_underused="1.53", download_dominates="0.505", rest="2.5184"),
        "children": None,
        "rollup": False,
        "own_rules": [],
        "unauditable": None,
    }
    return cast("AuditDocument", whole | overrides)


def bill(**changes: Any) -> dict[str, Any]:
    """The bill of `document` with changes."""
    return {**document()["bill"], **changes}


def slices(**usd: str) -> list[dict[str, Any]]:
    """A waterfall: the avoidable part of a rule, by its name with underscores, and the rest."""
    rules = {name: f"avoidable: {name.replace('_', '-')}" for name in usd if name != "rest"}
    return [{"slice": rules.get(name, name), "usd": Decimal(part)} for name, part in usd.items()]


def set_aside_document() -> AuditDocument:
    """Findings that are exempt, covered or repeated, and one with two ways to fix it."""
    way = [fix("A.B", 2, 1)]
    exempt = {"by": "policy", "until": "2026-12-31", "reason": "benchmark"}
    return document(
        findings=[
            finding(rule="exempt", exempt=exempt, saving_usd=Decimal(9)),
            finding(rule="small", superseded_by="counted", saving_usd=Decimal(0)),
            finding(rule="spot-not-used", said_of="train-bert-0411", summary="Spot is cheaper."),
            finding(rule="counted", alternatives=[way, way]),
        ]
    )


def perhaps_lost_document() -> AuditDocument:
    """A failed run of $4.5534 whose checkpoints may hold a part of its work."""
    return document(
        job=job(name="train-bert-0414", status="Failed"),
        findings=[
            finding(
                rule="failed-spend",
                id="SA602",
                severity="low",
                confidence="derived",
                bucket="lost",
                summary="The run failed after 3 h (AWS error); its checkpoints may hold a part.",
                saving_usd=Decimal(0),
                saving_alone_usd=Decimal(0),
                saving_range_usd=[Decimal(0), Decimal("4.5534")],
                evidence={},
                fix=[fix("RetryStrategy.MaximumRetryAttempts", None, 2)],
            )
        ],
        avoidable_usd=Decimal(0),
        lost_usd=Decimal(0),
        lost_up_to_usd=Decimal("4.5534"),
        possible_usd=Decimal(0),
    )


def lost_document() -> AuditDocument:
    """A failed run at full cost, with a failure message that attacks every sink."""
    hostile = (
        "Error: <!channel> see <https://evil.example/x|the fix> \x1b[31mred\x1b[0m `rm` *now*"
        " \u202egnp.exe\u2028@here :rotating_light: http://evil.example/login"
    )
    return document(
        job=job(name="train-bert-0413", status="Failed", owner="@channel *team*", instances=None),
        findings=[
            finding(
                rule="failed-spend",
                id="SA601",
                bucket="lost",
                summary=f"The run failed after 3 h 20 min and left no model: {hostile}",
                saving_usd=Decimal("4.5534"),
                saving_alone_usd=Decimal("4.5534"),
                evidence={"failure": hostile, "checkpoints": False},
                fix=[],
            )
        ],
        avoidable_usd=Decimal(0),
        lost_usd=Decimal("4.5534"),
        possible_usd=Decimal(0),
        waterfall=[{"slice": "lost: failed-spend", "usd": Decimal("4.5534")}],
    )


def idle_document() -> AuditDocument:
    """Eight hosts at a third of their GPUs, which no cheaper type holds: no finding has dollars."""
    usage_type, usd, rate_usd = "USE1-Train:ml.p5.48xlarge", Decimal("12152.832"), Decimal("63.296")
    hours = line(usage_type=usage_type, quantity=Decimal(192), rate_usd=rate_usd, usd=usd)
    return document(
        job=job(name="llm-0412", instances="8 x ml.p5.48xlarge", ended_at="2026-05-21T10:00:00Z"),
        bill=bill(total_usd=usd, lines=[hours]),
        phases=[phase("Training", 86400, "12152.832")],
        avoidable_usd=Decimal(0),
        possible_usd=Decimal(0),
        idle_capacity={
            "unit": "gpu_hours",
            "paid": Decimal(1536),
            "worked": Decimal("511.582"),
            "idle": Decimal("1024.418"),
            "list_usd": Decimal("8105.195216"),
            "counted_usd": Decimal(0),
            "look_at": ["communication", "profile"],
        },
        findings=[
            type_finding(
                severity="info",
                confidence="heuristic",
                bucket="none",
                summary="The GPU averaged 34% (P95 34%) over 23 h 49 min.",
                **dict.fromkeys(("saving_usd", "saving_alone_usd", "saving_range_usd")),
                fix=[],
                caution="This is the smallest type with an H100.",
            )
        ],
        waterfall=slices(rest="12152.832"),
    )


def unpriced_idle_document() -> AuditDocument:
    """The same on a type that has no price."""
    whole: dict[str, Any] = {**idle_document()}
    lacks = ["no price is known for ml.p9.48xlarge"]
    return document(
        **whole
        | {
            "bill": whole["bill"]
            | {"total_usd": None, "complete": False, "missing": lacks, "lines": []},
            "job": job(name="llm-0413", instances="8 x ml.p9.48xlarge"),
            "phases": [phase("Training", 86400, None)],
            **dict.fromkeys(("avoidable_usd", "lost_usd", "lost_up_to_usd")),
            "idle_capacity": whole["idle_capacity"] | {"list_usd": None, "counted_usd": None},
        }
    )


GUESSED = "SageMaker's rate for ml.m6i.2xlarge is not known here; estimated from EC2's rate x 1.20"


def estimated_document() -> AuditDocument:
    """The same audit on a type whose rate is an estimate."""
    compute = line(
        usage_type="USE1-Train:ml.m6i.2xlarge",
        rate_usd=Decimal("0.4608"),
        usd=Decimal("1.3824"),
        price_as_of="2026-07-20",
        price_source="EC2's on-demand rate in us-east-1 x 1.20",
        price_kind="estimate",
        note="1 x ml.m6i.2xlarge",
    )
    return document(
        job=job(instances="1 x ml.m6i.2xlarge"),
        bill=bill(
            total_usd=Decimal("1.3908"),
            complete=False,
            missing=[GUESSED],
            estimated=[GUESSED],
            price_kind="estimate",
            lines=[compute, *bill()["lines"][1:]],
        ),
        phases=[
            phase("Downloading", 1500, "0.192"),
            phase("Training", 9240, "1.18272"),
            phase("Uploading", 60, "0.00768"),
        ],
        avoidable_usd=Decimal("0.96"),
        findings=[
            type_finding(
                saving_usd=Decimal("0.96"),
                saving_alone_usd=Decimal("0.96"),
                saving_range_usd=None,
                evidence={},
                fix=[fix("ResourceConfig.InstanceType", "ml.m6i.2xlarge", "ml.m5.large")],
                caution=None,
                estimated=True,
            )
        ],
        waterfall=slices(gpu_underused="0.96", rest="0.4308"),
    )


def trial(number: int, usd: str, saving: str | None) -> AuditDocument:
    """A child of the tuning job `sweep-7`, with or without an underused GPU."""
    name = f"sweep-7-{number:03d}-0a1b2c3d"
    total = Decimal(usd)
    found = [] if saving is None else [type_finding(saving_usd=Decimal(saving))]
    return document(
        job=job(name=name, parent=TUNING_ARN, family=TUNING_ARN),
        bill=bill(total_usd=total, lines=[line(usd=total)]),
        findings=found,
        avoidable_usd=Decimal(saving or 0),
        possible_usd=Decimal(0),
        waterfall=[],
    )


def rollup_document() -> AuditDocument:
    """A tuning job with three trials, two of them with an underused GPU."""
    return document(
        job=job(name="sweep-7", arn=TUNING_ARN, kind="tuning", family="sweep", **NO_HOSTS),
        phases=[],
        bill={"total_usd": Decimal("12.30"), "complete": True, **NO_LINES},
        avoidable_usd=Decimal("3.80"),
        possible_usd=Decimal(0),
        findings=[
            type_finding(
                summary=f"In 2 of 3 training jobs, such as: {type_finding()['summary']}",
                saving_usd=Decimal("3.80"),
                saving_alone_usd=None,
                saving_range_usd=None,
                evidence={"training_jobs": 2, **type_finding()["evidence"]},
            )
        ],
        **NO_RULES,
        waterfall=slices(gpu_underused="3.80", rest="8.50"),
        children=[trial(1, "5.10", "1.70"), trial(2, "5.20", "2.10"), trial(3, "2.00", None)],
        rollup=True,
    )


def unauditable_document() -> AuditDocument:
    """A job that was gone when it was looked at."""
    return document(
        job=job(owner=None, started_at=None, ended_at=None, **NO_HOSTS),
        phases=[],
        bill={"total_usd": None, "complete": False, **NO_LINES, "price_kind": None},
        judged="no",
        not_judged=["It could not be audited: SageMaker knows no such training job."],
        avoidable_usd=None,
        lost_usd=None,
        possible_usd=None,
        idle_capacity=None,
        findings=[],
        **NO_RULES,
        waterfall=[],
        unauditable="SageMaker knows no such training job",
    )


NO_METRICS = (
    "The use of its machines was not judged: cloudwatch:GetMetricData is not permitted. "
    "Allow cloudwatch:GetMetricData."
)
_DENIED = "GPUUtilization: cloudwatch:GetMetricData is not permitted"
UNMEASURED: list[dict[str, str]] = [
    {"rule": rule, "code": "metric_denied", "reason": _DENIED}
    for rule in ("gpu-idle", "gpu-underused")
]


def not_judged_document() -> AuditDocument:
    """A run whose metrics could not be read, so that nothing is known of what was avoidable."""
    return document(
        judged="no",
        not_judged=[NO_METRICS],
        avoidable_usd=None,
        possible_usd=Decimal(0),
        findings=[],
        unknown=UNMEASURED,
        waterfall=slices(rest="4.5534"),
    )


def partly_judged_document() -> AuditDocument:
    """A long download of a run whose machines nobody could look at."""
    return document(
        judged="partly",
        not_judged=[NO_METRICS],
        avoidable_usd=Decimal("0.505"),
        possible_usd=Decimal(0),
        findings=[finding()],
        unknown=UNMEASURED,
        waterfall=slices(download_dominates="0.505", rest="4.0484"),
    )


def running_document() -> AuditDocument:
    """A run that has not ended: its cost so far, and no judgement."""
    status = "the job has not ended (status InProgress)"
    still = "the job still runs (status InProgress)"
    return document(
        job=job(status="InProgress", ended_at=None),
        audit={**document()["audit"], "settled": False},
        bill=bill(
            complete=False,
            missing=[f"{still}: its cost is counted until 2026-05-20 13:00 UTC"],
            basis="estimated_from_times",
        ),
        judged="no",
        not_judged=[
            "It has not ended (status InProgress): its use can be judged only after its end."
        ],
        avoidable_usd=None,
        lost_usd=None,
        possible_usd=None,
        findings=[],
        unknown=[
            {"rule": rule, "code": "job_not_finished", "reason": status}
            for rule in ("download-dominates", "gpu-idle", "gpu-underused")
        ],
        not_applicable=[],
        clear=[],
        waterfall=slices(rest="4.5534"),
    )


def dearer_document() -> AuditDocument:
    """A run that cost far more than its like, and nothing avoidable."""
    alarm = finding(
        rule="cost-regression",
        id="SA703",
        severity="info",
        bucket="none",
        confidence="measured",
        summary="Expected about $24.00 (the median of 9 earlier runs), got $182.00. Changed: "
        "Training +4 h 12 min.",
        saving_usd=None,
        saving_alone_usd=None,
        evidence={
            "total_usd": Decimal(182),
            "median_usd": Decimal(24),
            "spread_usd": Decimal("0.40"),
            "above_median_usd": Decimal(158),
            "compared_runs": 9,
        },
        fix=[],
    )
    bill = {**document()["bill"], "total_usd": Decimal(182), "lines": []}
    return document(findings=[alarm], avoidable_usd=Decimal(0), possible_usd=Decimal(0), bill=bill)


def trial_document() -> AuditDocument:
    """Nothing certain, and spot worth a trial."""
    spot = finding(
        rule="spot-not-used",
        id="SA401",
        severity="low",
        bucket="possible",
        confidence="heuristic",
        summary="It ran on demand, and its family fails rarely.",
        saving_usd=Decimal(3),
        saving_alone_usd=Decimal(3),
        fix=[fix("EnableManagedSpotTraining", old=False, new=True)],
        evidence={},
    )
    return document(findings=[spot], avoidable_usd=Decimal(0), possible_usd=Decimal(3))


def advised(rule: str = "gpu-underused", worth: Worth = Worth.COUNTED) -> Advice:
    """An open advice of a rule to the family of these audits."""
    at = datetime(2026, 5, 20, 13, tzinfo=UTC)
    return Advice(
        id="abcdefgh",
        account=ACCOUNT,
        region=REGION,
        family="train-bert",
        owner="anna",
        rule=rule,
        parameter="",
        old=None,
        new="",
        state=State.OPEN,
        severity=Severity.LOW,
        worth=worth,
        amount=None,
        hits=(),
        amounts=(None,),
        times=1,
        first_at=at,
        since=at,
        last_at=at,
    )
