from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Job, Parent, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import market, phases, ran, series, usage
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, lines, row

RULE = "cost-regression"
NO_STORAGE: dict[str, Any] = {"volume_gb": None}
HOUR = ran(3600, **NO_STORAGE)
"""An hour of ml.m5.xlarge; without storage it costs $0.23."""


def family(*costs: str | None, **facts: Any) -> list[AuditSummary]:
    """Completed runs at these dollars, the newest first."""
    return [
        earlier_run(day, total_usd=None if cost is None else Decimal(cost), **facts)
        for day, cost in enumerate(costs, 1)
    ]


WIDE = family("0.18", "0.18", "0.23", "0.28", "0.28")
STEADY = family(*["0.23"] * 5)
DEAR, CHEAP = {"instance_type": "ml.m5.4xlarge"}, {"instance_type": "ml.m5.xlarge"}
WEEKLY = {"instance_count": 4}


def in_turn(*stretches: tuple[int, str, dict[str, Any]]) -> list[AuditSummary]:
    """Runs in their order, as (how many, dollars, facts); the answer has the newest first."""
    runs = [(usd, facts) for count, usd, facts in stretches for _ in range(count)]
    days = range(1, len(runs) + 1)
    return [
        earlier_run(day, total_usd=Decimal(usd), **facts)
        for day, (usd, facts) in zip(days, reversed(runs), strict=True)
    ]


TOLD: dict[str, Any] = {"found_rules": (RULE,)}
DOUBLED = ran(7200, **NO_STORAGE)
"""Two hours: $0.46."""
BATCH = replace(DOUBLED, kind=JobKind.PROCESSING, phases=phases(("Processing", 7200)), volume_gb=30)


@later
def disk(run: Job, percent: float) -> Measurements:
    """The volume's use, all the time."""
    return usage(run, series(Metric.DISK, [percent] * 120), series(Metric.CPU, [90] * 120))


test_cases = cases(
    RULE,
    "A run at four times the median is found with what changed.",
    # Another type for another time, on spot, with other settings.
    row(finds("Expected about $0.23 (the median of 5 earlier runs), got $0.92. Changed: type "
        "ml.m5.xlarge to "
        "ml.m5.2xlarge; purchase on_demand to spot; image, data or hyperparameters; "
        "Training +1 h 1 min.", builder="fact", evidence={"above_median_usd": Decimal("0.69"),
        "changed_type": "type ml.m5.xlarge to ml.m5.2xlarge"}), ran(7200, "ml.m5.2xlarge",
        purchase=Purchase.SPOT, fingerprint="f2"), earlier=family(*["0.23"] * 5, fingerprint="f1"),
        on=market(storage_usd="0")),
    "The end of a rise is no alarm, also where it had become the level.",
    row(CLEAR, DOUBLED, earlier=[*family("2.00", **TOLD), *in_turn((5, "0.46", {}))]),
    row(CLEAR, HOUR, earlier=in_turn((20, "0.23", CHEAP), (6, "0.92", DEAR | TOLD))),
    "A later first point of a processing job is a change of its data.",
    row(finds("…Changed: …its data (18 min more until its first point)…"), ran(7200,
        kind=JobKind.PROCESSING, phases=phases(("Processing", 7200)), **NO_STORAGE),
        lines(series(Metric.CPU, [None] * 20 + [90] * 100)), earlier=family(*["0.23"] * 5,
        kind="processing", first_point_s=Decimal(120))),
    "So is a fuller volume: 40% and 20% of 30 GB. Of a training job the download tells.",
    row(finds("…Changed: …its data (2.0 times as much disk used)…"), BATCH, disk(40),
        earlier=family(*["0.23"] * 5, kind="processing", disk_gb=Decimal(6))),
    row(finds(without="disk used"), BATCH, disk(40),
        earlier=family(*["0.23"] * 5, kind="processing", disk_gb=Decimal(9))),
    row(finds(without="disk used"), BATCH, disk(4),
        earlier=family(*["0.23"] * 5, kind="processing", disk_gb=Decimal("0.6"))),
    row(finds(without="disk used"), replace(DOUBLED, volume_gb=30), disk(40),
        earlier=family(*["0.23"] * 5, disk_gb=Decimal(6))),
    "Runs of another kind, and sums below a cent, say nothing.",
    row("unknown: no_usual_cost", ran(7200, **NO_STORAGE), earlier=family(*["0.05"] * 6,
        kind="processing")),
    row(CLEAR, ran(60, **NO_STORAGE), earlier=family(*["0.0006"] * 6)),
    "More instances are named. One became three; and nothing else is known to have changed.",
    row(finds("…Changed: count 1 to 3; Training +1 min."), ran(3600, instances=3), earlier=STEADY),
    "An unknown change is stated. A price, say.",
    row(finds("…Changed: nothing known."), HOUR, earlier=family(*["0.10"] * 5,
        phase_s={"Training": Decimal(3600)})),
    "Runs that are meant to differ are not compared.",
    # Trials of a tuning job; nor is a failed run, or a free one.
    row("not applicable: the trials of one search are meant to differ", replace(HOUR,
        parent=Parent(JobKind.TUNING.row.rollup, "arn:tuning"))),
    row("not applicable: …did not complete…", replace(HOUR, status="Failed")),
    row("not applicable: built-in Debugger rule", replace(HOUR, free="built-in Debugger rule")),
    "A phase that is not billed is no reason. An hour more in Starting costs nothing.",
    row(finds("…Changed: nothing known."), HOUR, earlier=family(*["0.05"] * 5,
        phase_s={"Starting": Decimal(1), "Training": Decimal(3590)})),
    "It is an alarm without dollars. The findings on what grew carry them.",
    row(finds(usd=None, severity="info", caution="….", fix=[]), ran(14400), earlier=STEADY),
    "Exactly a quarter above a steady median is found. 4500 s of $0.23 are $0.2875.",
    row(FOUND, ran(4500), earlier=STEADY, on=market(storage_usd="0")),
    row(CLEAR, ran(4499), earlier=STEADY, on=market(storage_usd="0")),
    "A family that scatters is given its spread.",
    # Median $0.23, MAD $0.05: the fence is 0.23 + 3 x 1.4826 x 0.05 = $0.45239.
    row(CLEAR, ran(7080), earlier=WIDE, on=market(storage_usd="0")),
    row(FOUND, ran(7081), earlier=WIDE, on=market(storage_usd="0")),
    row(FOUND, ran(5400), earlier=WIDE, on=market(storage_usd="0"), limits={"spreads_from": 1}),
    "A cheaper run is clear. A family at no cost too, such as one on a training plan.",
    row(CLEAR, ran(1800), earlier=STEADY, on=market(storage_usd="0")),
    row(CLEAR, ran(0, **NO_STORAGE), earlier=family(*["0"] * 5), on=market(storage_usd="0")),
    "Fewer than five known runs are too few. Failed and unpriced ones do not count.",
    row("unknown: history_unread", HOUR, earlier=None),
    row("unknown: too_few_runs", HOUR, earlier=STEADY[:4]),
    row("unknown: too_few_runs", HOUR, earlier=[*STEADY[:4], earlier_run(9, status="Failed")]),
    row("unknown: too_few_runs", HOUR, earlier=family("0.2", "0.2", "0.2", "0.2", None)),
    "A lasting step is named until it has stood for three runs, and posted once.",
    # The data doubled: the second and the third run are the same event, the fourth is usual.
    row(finds("Expected about $0.23 (the median of 10 earlier runs), got $0.46.…", said_of=None),
        DOUBLED, earlier=in_turn((20, "0.23", {}))),
    row(finds(said_of="train-1"), DOUBLED, earlier=in_turn((20, "0.23", {}), (1, "0.46", TOLD))),
    row(finds(said_of="train-1"), DOUBLED, earlier=in_turn((20, "0.23", {}), (2, "0.46", TOLD))),
    row(CLEAR, DOUBLED, earlier=in_turn((20, "0.23", {}), (3, "0.46", TOLD))),
    row(CLEAR, DOUBLED, earlier=in_turn((20, "0.23", {}), (25, "0.46", {}))),
    "An event that grows by a quarter is posted again. $0.46 is a quarter above $0.368.",
    row(finds(said_of=None), DOUBLED, earlier=in_turn((20, "0.23", {}), (1, "0.368", TOLD))),
    row(finds(said_of="train-1"), DOUBLED, earlier=in_turn((20, "0.23", {}), (1, "0.369", TOLD))),
    "An event that nobody was told of is posted. The run before was not judged.",
    row(finds(said_of=None), DOUBLED, earlier=in_turn((20, "0.23", {}), (1, "0.46", {}))),
    "An event that ended is another one when it comes back.",
    row(finds(said_of=None), DOUBLED,
        earlier=in_turn((20, "0.23", {}), (1, "0.46", TOLD), (1, "0.23", {}))),
    "The newest level counts, not half a year. Twice as much was usual before.",
    row(FOUND, DOUBLED, earlier=in_turn((30, "0.46", {}), (5, "0.23", {}))),
    "Advice that is undone is named at its first runs. The cheaper type was usual by then.",
    row(finds("Expected about $0.23 (the median of 8 earlier runs), got $0.92. Changed: type "
        "ml.m5.xlarge to ml.m5.4xlarge…"), ran(3600, "ml.m5.4xlarge", **NO_STORAGE),
        earlier=in_turn((30, "0.92", DEAR), (8, "0.23", CHEAP))),
    row(FOUND, ran(3600, "ml.m5.4xlarge", **NO_STORAGE),
        earlier=in_turn((30, "0.92", DEAR), (8, "0.23", CHEAP), (2, "0.92", DEAR))),
    row(CLEAR, ran(3600, "ml.m5.4xlarge", **NO_STORAGE),
        earlier=in_turn((30, "0.92", DEAR), (8, "0.23", CHEAP), (3, "0.92", DEAR))),
    row(finds(said_of=None), ran(3600, "ml.m5.4xlarge", **NO_STORAGE), earlier=in_turn(
        (30, "0.92", DEAR), *[(6, "0.23", CHEAP), (2, "0.92", DEAR | TOLD)] * 2,
        (6, "0.23", CHEAP))),
    "A cheaper type is no event, and its own level soon. Two hours of it are twice the usual.",
    row(CLEAR, HOUR, earlier=in_turn((30, "0.92", DEAR))),
    row(FOUND, DOUBLED, earlier=in_turn((30, "0.92", DEAR), (3, "0.23", CHEAP))),
    "Runs on other instances that come back have each other. One each week, on four hosts.",
    row(FOUND, ran(3600, instances=4, **NO_STORAGE),
        earlier=in_turn((6, "0.23", {}), (1, "0.92", WEEKLY), (6, "0.23", {}))),
    row(CLEAR, ran(3600, instances=4, **NO_STORAGE),
        earlier=in_turn(*[(6, "0.23", {}), (1, "0.92", WEEKLY)] * 3, (6, "0.23", {}))),
    row(CLEAR, HOUR, earlier=in_turn(*[(6, "0.23", {}), (1, "0.92", WEEKLY)] * 3)),
    "One dear run is no level, and neither is one cheap run.",
    row(FOUND, DOUBLED, earlier=in_turn((9, "0.23", {}), (1, "0.92", {}), (2, "0.23", {}))),
    row(FOUND, DOUBLED, earlier=in_turn((9, "0.23", {}), (1, "0.02", {}), (2, "0.23", {}))),
    "Slow growth is not an event. Two percent more with each run.",
    row(CLEAR, ran(3600, **NO_STORAGE), earlier=[
        earlier_run(day, total_usd=Decimal("0.23") / Decimal("1.02") ** day)
        for day in range(1, 40)]),
    "A family without three alike in a row has no usual cost.",
    row("unknown: no_usual_cost", DOUBLED, earlier=[
        earlier_run(day, instance_type=f"ml.m{day}.large") for day in range(1, 8)]),
    "A run of unknown cost is unknown. Its type has no price.",
    row("unknown: bill_unknown", ran(3600, "ml.unpriced.xlarge"), earlier=STEADY),
)  # fmt: skip
