from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from tests.fakes.families import earlier_run
from tests.fakes.jobs import ran
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "spot-not-used"
GPU = "ml.g5.2xlarge"
CHECKPOINTS_FIRST = [
    "CheckpointConfig.S3Uri",
    "EnableManagedSpotTraining",
    "StoppingCondition.MaxWaitTimeInSeconds",
]


def told(days_ago: int) -> AuditSummary:
    """A run on demand that was told of spot."""
    return earlier_run(days_ago, found_rules=(RULE,), instance_type=GPU)


def spot_runs(*billed_of_1000: int, first: int = 1, **facts: Any) -> list[AuditSummary]:
    """Completed spot runs of the family, each billed for so many of its 1000 seconds."""
    plain: dict[str, Any] = {"purchase": Purchase.SPOT, "instance_type": GPU}
    return [
        earlier_run(n, elapsed_s=Decimal(1000), billable_s=Decimal(billed), **plain | facts)
        for n, billed in enumerate(billed_of_1000, start=first)
    ]


test_cases = cases(
    RULE,
    "An on demand run is worth a trial.",
    # Half an hour of 6 x $1.515 at 40%.
    row(finds("30 min on demand: managed spot is worth a trial; EC2's spot prices of g5 were 60% "
        "below on demand on average (us-east-1, July 2025).", builder="possible", usd="2.727000",
        span=None, severity="low"), ran(1800, GPU, 6)),
    "A published managed spot run of the family is the counted end, EC2's mean the other.",
    # 14683 of 37026 s were billed; 24 h of $0.23 are $5.52.
    row(finds("…worth a trial; a published run on ml.m5.4xlarge saved 60%, and EC2's spot prices "
        "of m5 were 65% below…", usd="3.330993", span=("3.330993", "3.588000")),
        ran(86_400, checkpointed=True, volume_gb=0)),
    "Of other families, and of scarce types, nothing is published that would hold.",
    *(row(finds("23 h 59 min on demand, with checkpoints: managed spot is worth a trial.", usd=None,
        caution="No figure:…"), ran(86_399, name, checkpointed=True))
        for name in ("ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.odd.xlarge")),
    "Exactly thirty minutes are long enough. Shorter runs save cents.",
    row(FOUND, ran(1800, GPU, 6)),
    row(CLEAR, ran(1799, GPU, 6)),
    "A run of a cheap family is left alone.",
    # $1.38 alone are no reason to change a request; two runs for $1.31 each before it make $4.
    row(CLEAR, ran(21_600, "ml.m5.xlarge", checkpointed=True, volume_gb=0), earlier=[]),
    row(FOUND, ran(21_600, "ml.m5.xlarge", checkpointed=True, volume_gb=0), earlier=[],
        limits={"from_usd": 1.38}),
    row(FOUND, ran(21_600, "ml.m5.xlarge", checkpointed=True, volume_gb=0),
        earlier=[earlier_run(days, total_usd=Decimal("1.31")) for days in (1, 2)]),
    row(CLEAR, ran(21_600, "ml.m5.xlarge", checkpointed=True, volume_gb=0),
        earlier=[earlier_run(days, total_usd=Decimal("1.31")) for days in (1, 2)][:1]),
    "Where spot cannot be or was used it says nothing.",
    row("not applicable: …spot…", ran(36_000, GPU, purchase=Purchase.SPOT)),
    row("not applicable: …training plan…", ran(36_000, GPU, purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: …serverless…", ran(36_000, GPU, purchase=Purchase.SERVERLESS)),
    row("not applicable: …groups…", ran(36_000, GPU, groups=(InstanceGroup(GPU, 1),
        InstanceGroup("ml.m5.large", 1)))),
    row("not applicable: …groups…", ran(36_000, GPU, groups=(InstanceGroup(GPU, 1, "all"),))),
    row("not applicable: …warm pool…", ran(36_000, GPU, warm_pool=WarmPool(None, 1800, None))),
    row("not applicable: …sageaudit:deadline…", ran(36_000, GPU,
        tags={"sageaudit:deadline": "tonight"})),
    row("not applicable: …complete…", ran(36_000, GPU, status="Failed")),
    row("not applicable: …complete…", ran(36_000, GPU, status="Stopped")),
    row("not applicable: …processing…", ran(36_000, GPU, kind=JobKind.PROCESSING)),
    row("not applicable: …transform…", ran(36_000, GPU, kind=JobKind.TRANSFORM)),
    "Without times it does not know. A completed job whose answer has no times.",
    row("unknown: times_missing", ran(1800, GPU, 6, started_at=None, ended_at=None,
        training_s=None)),
    "Three spot runs of its own make a figure.",
    # Two hours of $1.515: 3.03 x (1 - 0.4) at worst, 3.03 x (1 - 0.3) at best; it is counted.
    row(finds("2 h on demand, with checkpoints: 3 spot runs of its family on this type saved "
        "60 to 70%, 65% at the median.", builder="derived", usd="1.818000",
        span=("1.818000", "2.121000")),
        ran(7200, GPU, checkpointed=True, volume_gb=0), earlier=spot_runs(400, 300, 350)),
    "The worst quartile counts.",
    # Of eight runs the two worst are 900 and 600: the milder one. Of four it is the worst.
    row(finds(evidence={"savings_percent": "40 to 70"}), ran(3599, GPU, volume_gb=0),
        earlier=spot_runs(300, 310, 320, 330, 340, 350, 600, 900)),
    row(finds(evidence={"savings_percent": "10 to 70"}), ran(3599, GPU, volume_gb=0),
        earlier=spot_runs(300, 310, 320, 900)),
    "One or two of them make it possible, with dollars.",
    row(finds("…: 2 spot runs of its family on this type saved 60 to 70%, 65% at the median.",
        builder="possible_by_runs", usd="1.818000", span=("1.818000", "2.121000")),
        ran(7200, GPU, volume_gb=0), earlier=[*spot_runs(400, 300),
        earlier_run(9, total_usd=Decimal(4))]),
    row(finds("…: 1 spot run of its family on this type saved 60%.", builder="possible_by_runs",
        usd="1.818000", span=None), ran(7200, GPU, volume_gb=0), earlier=[*spot_runs(400),
        earlier_run(9, total_usd=Decimal(4))]),
    "An interrupted run is compared with this one, whose time was not interrupted.",
    # 900 of 1000 s with the waiting are half of the 1800 s here.
    row(finds("…: 1 spot run of its family on this type saved 50%."), ran(1800, GPU, 6),
        earlier=spot_runs(900, phase_s={"Interrupted": Decimal(100)})),
    "Runs that say nothing of spot leave a guess.",
    # An interrupted run of less than half the time did less; what was not billed proves nothing.
    row(finds(builder="possible", evidence={"own_spot_runs": 0}), ran(7200, GPU, 6),
        earlier=spot_runs(100, 100, 100, phase_s={"Interrupted": Decimal(100)})),
    row(finds(builder="possible", evidence={"own_spot_runs": 0}), ran(1800, GPU, 6),
        earlier=spot_runs(0, 0, 0)),
    # Not completed; on another type; on demand; without one of the two times.
    *(row(finds(builder="possible", evidence={"own_spot_runs": 0}), ran(1800, GPU, 6),
        earlier=spot_runs(400, 300, 350, **facts)) for facts in ({"status": "Failed"},
        {"instance_type": "ml.m5.large"}, {"purchase": Purchase.ON_DEMAND})),
    row(finds(builder="possible_by_runs", evidence={"own_spot_runs": 2}), ran(1800, GPU, 6),
        earlier=[*spot_runs(400, 300), earlier_run(9, purchase=Purchase.SPOT, instance_type=GPU,
        billable_s=None)]),
    row(finds(builder="possible_by_runs", evidence={"own_spot_runs": 2}), ran(1800, GPU, 6),
        earlier=[*spot_runs(400, 300), earlier_run(9, purchase=Purchase.SPOT, instance_type=GPU,
        elapsed_s=Decimal(0))]),
    "What own runs prove is posted once. A guess before that was another sentence.",
    row(finds(said_of="train-2"), ran(1800, GPU, 6), earlier=[earlier_run(1), told(2),
        *spot_runs(400, 300, 350, first=3)]),
    row(finds(said_of=None), ran(1800, GPU, 6), earlier=[*spot_runs(400, 300, 350), told(4)]),
    "Spot that saved its family nothing is not advised.",
    # The worst quartile was billed for every second.
    row(CLEAR, ran(1800, GPU, 6), earlier=spot_runs(300, 400, 1000)),
    row(FOUND, ran(1800, GPU, 6), earlier=spot_runs(300, 400, 999)),
    "Several of the scarcest GPUs get no advice.",
    # A run needs all of them at once; one alone, or several of another kind, may be tried.
    row("not applicable: …cannot be counted on…", ran(7200, "ml.p4d.24xlarge", 2,
        checkpointed=True)),
    row(FOUND, ran(7200, "ml.p4d.24xlarge", 1, checkpointed=True)),
    row(FOUND, ran(7200, GPU, 2, checkpointed=True)),
    row("not applicable: …cannot be counted on…", ran(7200, "ml.p5.48xlarge", 2,
        checkpointed=True)),
    row(FOUND, ran(7200, "ml.p5.48xlarge", 1, checkpointed=True)),
    row("not applicable: …cannot be counted on…", ran(7200, "ml.p6-b200.48xlarge", 2,
        checkpointed=True)),
    row(FOUND, ran(7200, "ml.p6-b200.48xlarge", 1, checkpointed=True)),
    "Own runs outweigh missing checkpoints. 10 h of $1.515 at 40%.",
    row(finds("10 h on demand: 3 spot runs of its family on this type saved 60 to 70%, 65% at the "
        "median.", builder="derived", usd="9.090000", paths=CHECKPOINTS_FIRST,
        caution="…Without checkpoints an interruption starts it again."), ran(36_000, GPU),
        earlier=spot_runs(400, 300, 350)),
    "The sentence of a trial. Its numbers are the evidence's; checkpoints make it safe.",
    row(finds("10 h on demand: write checkpoints first, then managed spot is worth a trial.",
        paths=CHECKPOINTS_FIRST, evidence={"elapsed_s": 36_000}), ran(36_000, GPU)),
    row(finds("10 h on demand, with checkpoints: managed spot is worth a trial; EC2's spot "
        "prices…", paths=CHECKPOINTS_FIRST[1:], usd="9.090000"), ran(36_000, GPU,
        checkpointed=True)),
    "An hour without checkpoints gets no figure; a second less is the limit of MaxWait.",
    row(finds(usd="5.452485"), ran(3599, GPU, 6)),
    row(finds(usd=None, span=None, caution="…checkpoints…"), ran(3600, GPU, 6)),
    "The wait limit is above the run limit. The API refuses a MaxWait under MaxRuntime.",
    row(finds(fix=["s3://<bucket>/<prefix>", True, 14_400]), ran(1800, GPU, 6, max_runtime_s=7200)),
)  # fmt: skip
