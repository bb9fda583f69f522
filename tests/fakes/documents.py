"""Sample audit documents with exact amounts.

Their parts are real domain objects, written by the product's own `document`.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, cast

from sageaudit.domain.audit.audit import Audit, Judged, Judgement
from sageaudit.domain.audit.bill_document import (
    BillDocument,
    LineDocument,
    line_document,
    qualify_bill,
)
from sageaudit.domain.audit.document import AuditDocument, JobDocument, PhaseDocument
from sageaudit.domain.audit.document import document as audit_document
from sageaudit.domain.audit.finding_document import (
    FindingDocument,
    FixDocument,
    finding_document,
    is_standing,
    max_saving_usd,
    to_plain_value,
)
from sageaudit.domain.bill.bill import BillLine
from sageaudit.domain.bill.bill import bill as priced
from sageaudit.domain.bill.bill_facts import BillFacts
from sageaudit.domain.bill.counterfactual import Savings, Slice
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Detection,
    Finding,
    NotApplicable,
    Parameter,
    RuleInfo,
    Severity,
    Unknown,
)
from sageaudit.domain.bill.idle_capacity import IdleCapacity
from sageaudit.domain.prices.market import Rate
from sageaudit.structs import replace
from tests.fakes import jobs

ACCOUNT, REGION = "111122223333", "us-east-1"
UNCOVERED = "CloudWatch has CPUUtilization for only 41% of the active time"
BUCKETS = {
    "failed-spend": "lost",
    "spot-not-used": "possible",
    "trainium-candidate": "possible",
    "cost-regression": "none",
    "spot-without-checkpoint": "none",
}
"""Buckets of rules whose findings are not avoidable cost."""


def job_arn(name: str, kind: str = "training-job") -> str:
    """Returns the ARN of a job in ACCOUNT and REGION."""
    return f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind}/{name}"


RUN = jobs.job(
    name="train-bert-0412",
    arn=job_arn("train-bert-0412"),
    phases=jobs.phases(
        ("Starting", -130), ("Downloading", 1500), ("Training", 9240), ("Uploading", 60)
    ),
    image=None,
)
"""A training job of three billed hours on one GPU instance."""
DOWNLOAD = Finding(
    rule=RuleInfo("SA101", "download-dominates"),
    detection=Detection(
        confidence=Confidence.MEASURED,
        bucket=Bucket.AVOIDABLE,
        summary="Downloading took 25 min of the 3 h billed (14%, or $0.51) before the first step.",
        evidence={
            "download_s": Decimal(1500),
            "download_share_percent": Decimal("13.9"),
            "input_mode": "File",
        },
        fix=(Parameter("InputDataConfig[0].InputMode", "File", "FastFile"),),
    ),
    severity=Severity.HIGH,
    saving_usd=Decimal("0.505"),
    alone_usd=Decimal("0.505"),
    range_usd=None,
)
"""A download that took a fifth of a run."""
UNDERUSED = Finding(
    rule=RuleInfo("SA202", "gpu-underused"),
    detection=Detection(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary="The GPU averaged 11% over 2 h 20 min; p95 was 24%.",
        evidence={
            "gpu_mean_percent": Decimal("11.2"),
            "gpu_p95_percent": Decimal(24),
            "gpu_memory_max_percent": Decimal("38.5"),
            "active_s": Decimal(8400),
        },
        fix=(Parameter("ResourceConfig.InstanceType", "ml.g5.2xlarge", "ml.g4dn.xlarge"),),
        caution="The data loader gets 4 vCPUs in place of 8.",
    ),
    severity=Severity.MEDIUM,
    saving_usd=Decimal("1.53"),
    alone_usd=Decimal("1.73"),
    range_usd=(Decimal("1.73"), Decimal("1.98")),
)
"""A GPU that worked little; a smaller type saves about a third."""
SPOT = Finding(
    rule=RuleInfo("SA401", "spot-not-used"),
    detection=Detection(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary="This on-demand run writes checkpoints, so managed spot is worth a trial.",
        evidence={"checkpoints": True},
        fix=(Parameter("EnableManagedSpotTraining", old=False, new=True),),
        caution="SageMaker publishes no spot rate, and work is repeated after an interruption.",
    ),
    severity=Severity.LOW,
    saving_usd=Decimal("0.9"),
    alone_usd=None,
    range_usd=None,
)
"""On-demand use that spot might make cheaper."""
COMPUTE = BillLine(
    item="compute",
    usage_type="USE1-Train:ml.g5.2xlarge",
    quantity=Decimal(3),
    unit="instance-hours",
    rate=Rate(
        Decimal("1.515"), "2026-05-20", "AWS Price List; the entry for hosting has the same rate"
    ),
    usd=Decimal("4.545"),
)
"""Three hours of one instance."""
STORAGE = BillLine(
    item="storage",
    usage_type="USE1-Train:VolumeUsage.gp2",
    quantity=Decimal("0.06"),
    unit="GB-months",
    rate=Rate(
        Decimal("0.14"), "2026-05-20", "AWS Price List; the entry for hosting has the same rate"
    ),
    usd=Decimal("0.0084"),
    note="30 GB for 3 of the month's 744 hours",
)
AUDIT = Audit(
    job=RUN,
    family="train-bert",
    owner="anna",
    bill=replace(priced(RUN, jobs.market()), lines=(COMPUTE, STORAGE)),
    bill_facts=BillFacts("list", spot_saved_usd=None, prepaid_value_usd=None, notes=()),
    usage=jobs.flat(RUN, 154, cpu=30, gpu=11, gpu_memory=38, memory=50),
    outcomes=(
        (RuleInfo("SA203", "cpu-underused"), Unknown("metrics_missing", UNCOVERED)),
        (RuleInfo("SA601", "failed-spend"), NotApplicable("the job completed")),
        (RuleInfo("SA602", "max-runtime-loose"), Clear()),
    ),
    savings=Savings(
        findings=(UNDERUSED, DOWNLOAD, SPOT),
        avoidable_usd=Decimal("2.035"),
        lost_usd=Decimal(0),
        lost_up_to_usd=Decimal(0),
        possible_usd=Decimal("0.9"),
        waterfall=(
            Slice("avoidable: gpu-underused", Decimal("1.53")),
            Slice("avoidable: download-dominates", Decimal("0.505")),
            Slice("rest", Decimal("2.5184")),
        ),
    ),
    judgement=Judgement(Judged.YES),
    is_settled=True,
    due_at=None,
    ruleset="1",
    policy="1",
    idle_capacity=IdleCapacity(
        unit="gpu_hours",
        paid=Decimal(3),
        worked=Decimal("0.29"),
        list_usd=Decimal("4.10565"),
        counted_usd=Decimal("2.035"),
        likely_causes=("batch_size", "profile"),
    ),
)
"""An audit of $4.5534, of which two findings count $2.035 as avoidable."""


def document(**changes: Any) -> AuditDocument:
    """Returns AUDIT as it is stored and printed, with changes.

    `job`, `audit` and `bill` change keys of these parts; all other keywords replace a part. With
    `findings`, sums and waterfall are computed from them, unless they are given.
    """
    whole: dict[str, Any] = {**audit_document(AUDIT)}
    whole["job"] = job(**changes.pop("job", {}))
    whole["audit"] = {**whole["audit"], **changes.pop("audit", {})}
    whole["bill"] = bill(**changes.pop("bill", {}))
    if "findings" in changes:
        whole |= sums(changes["findings"], whole["bill"]["total_usd"])
    if "findings" in changes and "waterfall" not in changes:
        whole["waterfall"] = waterfall(changes["findings"], whole["bill"]["total_usd"])
    if "lost_usd" in changes:
        whole["lost_up_to_usd"] = changes["lost_usd"]
    return cast("AuditDocument", whole | changes)


def job(**changes: Any) -> JobDocument:
    """Returns AUDIT's job with changes; the ARN follows the name, and times may be datetimes."""
    whole = audit_document(AUDIT)["job"]
    texts = {name: to_plain_value(value) for name, value in changes.items()}
    return cast("JobDocument", {**whole, "arn": job_arn(texts.get("name", whole["name"])), **texts})


def bill(**changes: Any) -> BillDocument:
    """Returns AUDIT's bill with changes; `complete` and `spend_qualifier` follow from the rest."""
    whole: dict[str, Any] = {**audit_document(AUDIT)["bill"], **changes}
    whole = {**whole, "complete": not whole["missing"], **changes}
    qualifier = qualify_bill(cast("BillDocument", whole))
    return cast("BillDocument", {**whole, "spend_qualifier": qualifier.value, **changes})


def finding(rule: str = "download-dominates", **changes: Any) -> FindingDocument:
    """Returns DOWNLOAD, UNDERUSED or SPOT as a document; for another rule a copy of DOWNLOAD.

    `saving_usd` also sets the saving alone and removes the range, unless they are given.
    """
    samples = {sample.rule.name: sample for sample in (DOWNLOAD, UNDERUSED, SPOT)}
    whole: dict[str, Any] = {**finding_document(samples.get(rule, DOWNLOAD)), "rule": rule}
    if rule not in samples:
        whole |= {"id": f"SA-{rule}", "bucket": BUCKETS.get(rule, "avoidable")}
    if "saving_usd" in changes:
        whole |= {"saving_alone_usd": changes["saving_usd"], "saving_range_usd": None}
    return cast("FindingDocument", whole | changes)


def fix(parameter: str, old: Any, new: Any) -> FixDocument:
    """Returns one parameter to change."""
    return {"parameter": parameter, "old": old, "new": new}


def line(**changes: Any) -> LineDocument:
    """Returns COMPUTE as a document."""
    return cast("LineDocument", {**line_document(COMPUTE), **changes})


def phase(
    name: str, seconds: int | None, usd: str | None, *, billed: bool = True, why: str | None = None
) -> PhaseDocument:
    """Returns one phase; `why` says why it is not billed although instances worked."""
    return {
        "name": name,
        "seconds": None if seconds is None else Decimal(seconds),
        "billed": billed,
        "not_billed_because": why,
        "usd": None if usd is None else Decimal(usd),
    }


def idle_capacity(
    paid: str,
    worked: str,
    list_usd: str | None,
    *,
    unit: str = "gpu_hours",
    likely_causes: Any = (),
) -> Any:
    """Returns an idle capacity; no finding counts any of its dollars."""
    return {
        "unit": unit,
        "paid": Decimal(paid),
        "worked": Decimal(worked),
        "idle": Decimal(paid) - Decimal(worked),
        "list_usd": None if list_usd is None else Decimal(list_usd),
        "counted_usd": None if list_usd is None else Decimal(0),
        "likely_causes": [*likely_causes],
    }


def sums(findings: Iterable[FindingDocument], total_usd: Decimal | None) -> dict[str, Any]:
    """Returns the sums of an audit with these findings.

    A sum is None if the total is unknown, or if all dollars in it are.
    """
    counted = [item for item in findings if is_standing(item)]
    dollars: dict[str, Any] = {}
    for bucket in ("avoidable", "lost", "possible"):
        parts = [item["saving_usd"] for item in counted if item["bucket"] == bucket]
        known_usd = [usd for usd in parts if usd is not None]
        is_unknown = total_usd is None or (parts and not known_usd)
        dollars[f"{bucket}_usd"] = None if is_unknown else sum(known_usd, Decimal(0))
    most = [max_saving_usd(item) or Decimal(0) for item in counted if item["bucket"] == "lost"]
    up_to = None if dollars["lost_usd"] is None else sum(most, Decimal(0))
    return {**dollars, "lost_up_to_usd": up_to}


def waterfall(
    findings: Iterable[FindingDocument], total_usd: Decimal | None
) -> list[dict[str, Any]]:
    """Returns the slices of the bill: one per counted finding, and the rest."""
    if total_usd is None:
        return []
    slices: list[dict[str, Any]] = [
        {"slice": f"{item['bucket']}: {item['rule']}", "usd": item["saving_usd"]}
        for item in findings
        if is_standing(item) and Bucket(item["bucket"]).is_counted and item["saving_usd"]
    ]
    rest = total_usd - sum((part["usd"] for part in slices), Decimal(0))
    return [*slices, {"slice": "rest", "usd": rest}] if rest else slices
