"""Small histories and the right figures of each, worked out by hand from the facts of the jobs.

A figure is what the jobs cost, or what of it was avoidable, lost or worth a trial; with what is
certain of it: "about" an estimate, "or more" a lower bound, "up to" an upper bound or the end of a
range, "unknown".
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

from msgspec import Struct, field

from sageaudit.domain.audit.bill_document import BillDocument, qualifier_of_bill
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Entry
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from tests.fakes import documents
from tests.fakes.families import run_summary

NOW = datetime(2026, 11, 9, 8, 0, tzinfo=UTC)
"""A Monday. The jobs ended on Thursday, those that they are compared with a week before."""
ENDED, ENDED_BEFORE = datetime(2026, 11, 5, 12, tzinfo=UTC), datetime(2026, 10, 29, 12, tzinfo=UTC)
FAMILY, OWNER, TYPE = "training/ranker", "anna", "ml.g5.2xlarge"
NO_STORAGE = "storage: no ML storage price for us-east-1 (Training)"
NO_PRICE = "no Training price known for ml.g5.2xlarge in us-east-1"
ZERO = Decimal(0)
BUCKETS = {
    "gpu-idle": "avoidable",
    "failed-spend": "lost",
    "spot-not-used": "possible",
    "trainium-candidate": "possible",
}


def found(rule: str, usd: str | None, most: str | None = None, **more: Any) -> dict[str, Any]:
    """A finding that saves so much, or between that and `most`."""
    saving = None if usd is None else Decimal(usd)
    span = None if most is None else [saving, Decimal(most)]
    money = {"saving_usd": saving, "saving_alone_usd": saving, "saving_range_usd": span}
    whole = documents.finding(rule=rule, id=f"SA-{rule}", bucket=BUCKETS[rule], **money, **more)
    return cast("dict[str, Any]", whole)


def job(usd: str | None, *findings: dict[str, Any], **changes: Any) -> AuditDocument:
    """An audit of a job that cost so much. Sums are those of its findings, as an audit has them."""
    amounts: dict[str, Decimal | None] = {}
    for bucket in ("avoidable", "lost", "possible"):
        parts = [one["saving_usd"] for one in findings if one["bucket"] == bucket]
        unknown = usd is None or (parts and all(part is None for part in parts))
        known = (part for part in parts if part is not None)
        amounts[f"{bucket}_usd"] = None if unknown else sum(known, ZERO)
    ends = [one["saving_range_usd"] for one in findings if one["bucket"] == "lost"]
    up_to = max((end[-1] for end in ends if end), default=amounts["lost_usd"])
    bill: dict[str, Any] = {"total_usd": None if usd is None else Decimal(usd), "lines": []}
    parts_of_bill = ("missing", "estimated", "basis")
    bill |= {name: changes.pop(name) for name in parts_of_bill if name in changes}
    bill["complete"] = not bill.get("missing")
    made = cast("BillDocument", documents.bill(**bill))
    made["spend_qualifier"] = qualifier_of_bill(made).value
    whole = amounts | {"lost_up_to_usd": up_to, "findings": [*findings], "idle_capacity": None}
    return documents.document(bill=made, waterfall=[], **(whole | changes))


def idle(list_usd: str | None) -> dict[str, Any]:
    """A GPU-hour that was not used, worth so much."""
    usd = None if list_usd is None else Decimal(list_usd)
    hours = {"paid": Decimal(3), "worked": Decimal(2), "idle": Decimal(1)}
    value: dict[str, Any] = {"list_usd": usd, "counted_usd": usd and ZERO, "look_at": []}
    return {"unit": "gpu_hours", **hours, **value}


BOUND: dict[str, Any] = {"basis": "upper_bound", "missing": [UPPER_BOUND]}
GUESS: dict[str, Any] = {"missing": [documents.GUESSED], "estimated": [documents.GUESSED]}


def with_gap(doubts: dict[str, Any]) -> dict[str, Any]:
    """Doubts of a bill that has no price of its storage either."""
    return doubts | {"missing": [*doubts["missing"], NO_STORAGE]}


JOBS: dict[str, AuditDocument] = {
    "exact": job("4.00", found("gpu-idle", "1.50")),
    "zero": job("0", idle_capacity=idle("0")),
    "tiny": job("0.004", found("gpu-idle", "0.003")),
    "unpriced": job(None, found("gpu-idle", None), missing=[NO_PRICE]),
    "unjudged": job("4.00", judged="no", avoidable_usd=None, possible_usd=None),
    "lower": job("3.00", found("gpu-idle", "1.00"), missing=[NO_STORAGE]),
    "upper": job("0.74", found("gpu-idle", None), **BOUND),
    "upper and lower": job("0.80", found("gpu-idle", None), **with_gap(BOUND)),
    "estimate": job("2.00", found("gpu-idle", "0.50", estimated=True), **GUESS),
    "estimate and lower": job("2.50", found("gpu-idle", "0.50", estimated=True), **with_gap(GUESS)),
    "estimate and upper": job(
        "0.60", found("gpu-idle", None), basis="upper_bound",
        missing=[UPPER_BOUND, documents.GUESSED], estimated=[documents.GUESSED],
    ),
    "lost": job("1.00", found("failed-spend", "1.00")),
    "maybe lost": job("5.00", found("failed-spend", "0", "4.09")),
    "maybe avoidable": job("5.00", found("gpu-idle", "0", "4.09")),
    "possible": job("6.00", found("spot-not-used", "0.90")),
    "maybe possible": job("6.00", found("spot-not-used", "0", "0.90")),
    "unknown possible": job("6.00", found("spot-not-used", None)),
    "partly possible": job(
        "6.00", found("spot-not-used", "0.90"), found("trainium-candidate", None)
    ),
    "idle": job("4.00", idle_capacity=idle("1.20")),
    "idle without a price": job("4.00", idle_capacity=idle(None)),
}  # fmt: skip
"""What one job cost and what an audit found in it."""


class Scenario(Struct, frozen=True):
    """Jobs of one week and of the week before, and the right figures.

    `rule`: the dollars of the one rule that found something. `change`: how much more the jobs cost
    than those of the week before, "-" where nobody knows; "at least" and "at most" are of its size.
    """

    jobs: tuple[str, ...]
    spend: str
    avoidable: str
    lost: str
    waste: str
    possible: str = "$0.00"
    idle: str = "unknown"
    rule: str = ""
    before: tuple[str, ...] = ()
    spend_before: str = "$0.00"
    change: str = ""
    rule_name: str = field(default="gpu-idle")

    @property
    def right(self) -> dict[str, str]:
        """The right figures by what they are of."""
        own = {"rule": self.rule} if self.rule else {}
        compared = {"spend_before": self.spend_before, "change": self.change} if self.change else {}
        return {
            "spend": self.spend,
            "avoidable": self.avoidable,
            "lost": self.lost,
            "waste": self.waste,
            "possible": self.possible,
            "idle": self.idle,
            **own,
            **compared,
        }


def _one(name: str, spend: str, avoidable: str, lost: str, waste: str, **more: str) -> Scenario:
    return Scenario((name,), spend, avoidable, lost, waste, **cast("dict[str, Any]", more))


NONE, UNKNOWN = "$0.00", "unknown"
SCENARIOS = {
    # one job                    spend                avoidable     lost   avoidable+lost
    "exact": _one("exact", "$4.00", "$1.50", NONE, "$1.50", rule="$1.50"),
    "zero": _one("zero", NONE, NONE, NONE, NONE, idle=NONE),
    "tiny": _one("tiny", "<$0.01", "<$0.01", NONE, "<$0.01", rule="<$0.01"),
    "unpriced": _one(
        "unpriced", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, possible=UNKNOWN, rule=UNKNOWN
    ),
    "unjudged": _one(
        "unjudged", "$4.00", "not judged", NONE, "not judged", possible=UNKNOWN
    ),
    "lower": _one("lower", "$3.00 or more", "$1.00", NONE, "$1.00", rule="$1.00"),
    "upper": _one("upper", "up to $0.74", UNKNOWN, NONE, UNKNOWN, rule=UNKNOWN),
    "upper and lower": _one(
        "upper and lower", "about $0.80", UNKNOWN, NONE, UNKNOWN, rule=UNKNOWN
    ),
    "estimate": _one(
        "estimate", "about $2.00", "about $0.50", NONE, "about $0.50", rule="about $0.50"
    ),
    "estimate and lower": _one(
        "estimate and lower", "about $2.50 or more", "about $0.50", NONE, "about $0.50",
        rule="about $0.50",
    ),
    "estimate and upper": _one(
        "estimate and upper", "up to about $0.60", UNKNOWN, NONE, UNKNOWN, rule=UNKNOWN
    ),
    "maybe lost": _one(
        "maybe lost", "$5.00", NONE, "up to $4.09", "up to $4.09",
        rule="up to $4.09", rule_name="failed-spend",
    ),
    "maybe avoidable": _one("maybe avoidable", "$5.00", NONE, NONE, NONE, rule="up to $4.09"),
    "possible": _one(
        "possible", "$6.00", NONE, NONE, NONE, possible="about $0.90", rule="about $0.90",
        rule_name="spot-not-used",
    ),
    "maybe possible": _one(
        "maybe possible", "$6.00", NONE, NONE, NONE, rule="up to about $0.90",
        rule_name="spot-not-used",
    ),
    "unknown possible": _one(
        "unknown possible", "$6.00", NONE, NONE, NONE, possible=UNKNOWN, rule=UNKNOWN,
        rule_name="spot-not-used",
    ),
    "partly possible": _one(
        "partly possible", "$6.00", NONE, NONE, NONE, possible="about $0.90 or more"
    ),
    "idle": _one("idle", "$4.00", NONE, NONE, NONE, idle="about $1.20"),
    "idle without a price": _one("idle without a price", "$4.00", NONE, NONE, NONE),
    # sums
    "two exact": Scenario(("exact", "exact"), "$8.00", "$3.00", NONE, "$3.00", rule="$3.00"),
    "exact, lower": Scenario(
        ("exact", "lower"), "$7.00 or more", "$2.50", NONE, "$2.50", rule="$2.50"
    ),
    "exact, upper": Scenario(
        ("exact", "upper"), "up to $4.74", "$1.50 or more", NONE, "$1.50 or more",
        rule="$1.50 or more",
    ),
    "lower, upper": Scenario(
        ("lower", "upper"), "about $3.74", "$1.00 or more", NONE, "$1.00 or more",
        rule="$1.00 or more",
    ),
    "exact, estimate": Scenario(
        ("exact", "estimate"), "about $6.00", "about $2.00", NONE, "about $2.00",
        rule="about $2.00",
    ),
    "upper, estimate": Scenario(
        ("upper", "estimate"), "up to about $2.74", "about $0.50 or more", NONE,
        "about $0.50 or more", rule="about $0.50 or more",
    ),
    "exact, unpriced": Scenario(
        ("exact", "unpriced"), "$4.00 or more", "$1.50 or more", "$0.00 or more", "$1.50 or more",
        possible="$0.00 or more", rule="$1.50 or more",
    ),
    "zero, unpriced": Scenario(
        ("zero", "unpriced"), "$0.00 or more", "$0.00 or more", "$0.00 or more", "$0.00 or more",
        possible="$0.00 or more", idle="$0.00 or more", rule=UNKNOWN,
    ),
    "two unpriced": Scenario(
        ("unpriced", "unpriced"), UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, possible=UNKNOWN,
        rule=UNKNOWN,
    ),
    "upper, unpriced": Scenario(
        ("upper", "unpriced"), "about $0.74", UNKNOWN, "$0.00 or more", UNKNOWN,
        possible="$0.00 or more", rule=UNKNOWN,
    ),
    "estimate, unpriced": Scenario(
        ("estimate", "unpriced"), "about $2.00 or more", "about $0.50 or more", "$0.00 or more",
        "about $0.50 or more", possible="$0.00 or more", rule="about $0.50 or more",
    ),
    "exact, unjudged": Scenario(
        ("exact", "unjudged"), "$8.00", "$1.50 or more", NONE, "$1.50 or more",
        possible="$0.00 or more", rule="$1.50",
    ),
    "two unjudged": Scenario(
        ("unjudged", "unjudged"), "$8.00", "not judged", NONE, "not judged", possible=UNKNOWN
    ),
    "two unknown possible": Scenario(
        ("unknown possible", "unknown possible"), "$12.00", NONE, NONE, NONE, possible=UNKNOWN,
        rule=UNKNOWN, rule_name="spot-not-used",
    ),
    "possible, unknown possible": Scenario(
        ("possible", "unknown possible"), "$12.00", NONE, NONE, NONE,
        possible="about $0.90 or more", rule="about $0.90 or more", rule_name="spot-not-used",
    ),
    "exact, partly possible": Scenario(
        ("exact", "partly possible"), "$10.00", "$1.50", NONE, "$1.50",
        possible="about $0.90 or more",
    ),
    "idle, idle without a price": Scenario(
        ("idle", "idle without a price"), "$8.00", NONE, NONE, NONE, idle="about $1.20 or more"
    ),
    "zero, idle": Scenario(("zero", "idle"), "$4.00", NONE, NONE, NONE, idle="about $1.20"),
    "lost, maybe lost": Scenario(
        ("lost", "maybe lost"), "$6.00", NONE, "$1.00 to $5.09", "$1.00 to $5.09",
        rule="$1.00 to $5.09", rule_name="failed-spend",
    ),
    "exact, maybe avoidable": Scenario(
        ("exact", "maybe avoidable"), "$9.00", "$1.50", NONE, "$1.50", rule="$1.50 to $5.59"
    ),
    # against the week before
    "exact after exact": Scenario(
        ("exact", "exact"), "$8.00", "$3.00", NONE, "$3.00",
        before=("exact",), spend_before="$4.00", change="+$4.00",
    ),
    "lower after exact": Scenario(
        ("lower", "exact"), "$7.00 or more", "$2.50", NONE, "$2.50",
        before=("exact",), spend_before="$4.00", change="+$3.00 or more",
    ),
    "upper after exact": Scenario(
        ("upper",), "up to $0.74", UNKNOWN, NONE, UNKNOWN,
        before=("exact",), spend_before="$4.00", change="-$3.26 or more",
    ),
    "exact after lower": Scenario(
        ("exact",), "$4.00", "$1.50", NONE, "$1.50",
        before=("lower",), spend_before="$3.00 or more", change="up to +$1.00",
    ),
    "exact after upper": Scenario(
        ("exact",), "$4.00", "$1.50", NONE, "$1.50",
        before=("upper",), spend_before="up to $0.74", change="+$3.26 or more",
    ),
    "zero after upper": Scenario(
        ("zero",), NONE, NONE, NONE, NONE, idle=NONE,
        before=("upper",), spend_before="up to $0.74", change="up to -$0.74",
    ),
    "upper after upper": Scenario(
        ("upper", "upper"), "up to $1.48", UNKNOWN, NONE, UNKNOWN,
        before=("upper",), spend_before="up to $0.74", change="about +$0.74",
    ),
    "exact after estimate": Scenario(
        ("exact",), "$4.00", "$1.50", NONE, "$1.50",
        before=("estimate",), spend_before="about $2.00", change="about +$2.00",
    ),
    "exact after unpriced": Scenario(
        ("exact",), "$4.00", "$1.50", NONE, "$1.50",
        before=("unpriced",), spend_before=UNKNOWN, change="-",
    ),
    "unpriced after exact": Scenario(
        ("unpriced",), UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, possible=UNKNOWN,
        before=("exact",), spend_before="$4.00", change="-",
    ),
}  # fmt: skip


def record(history: History, scenario: Scenario) -> None:
    """Records the scenario's jobs; to compare two weeks, a history has to be older than both."""
    if scenario.before:
        history.record(_entry(JOBS["zero"], ENDED_BEFORE - timedelta(days=14)))
    for jobs, ended in ((scenario.before, ENDED_BEFORE), (scenario.jobs, ENDED)):
        for number, name in enumerate(jobs):
            history.record(_entry(JOBS[name], ended - timedelta(minutes=number)))


def record_rollup(history: History) -> None:
    """Records a tuning job of three training jobs, which ended in May."""
    made = documents.rollup_document()
    key = JobKey(documents.TUNING_ARN, datetime(2026, 5, 20, 9, tzinfo=UTC))
    history.record(Entry(key, NOW, made, 1, None))


def _entry(audit: AuditDocument, ended: datetime) -> Entry:
    name = f"ranker-{ended:%m%d%H%M}"
    arn = f"arn:aws:sagemaker:{documents.REGION}:{documents.ACCOUNT}:training-job/{name}"
    created = ended - timedelta(hours=4)
    of_job = documents.job(
        name=name,
        arn=arn,
        family=FAMILY,
        owner=OWNER,
        created_at=f"{created:%Y-%m-%dT%H:%M:%SZ}",
        started_at=f"{ended - timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}",
        ended_at=f"{ended:%Y-%m-%dT%H:%M:%SZ}",
    )
    facts = run_summary(Purchase.ON_DEMAND, instance_type=TYPE, instance_count=1)
    whole = cast("AuditDocument", {**audit, "job": of_job})
    return Entry(JobKey(arn, created), ended, whole, 1, None, run=facts)
