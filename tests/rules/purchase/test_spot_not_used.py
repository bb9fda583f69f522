from __future__ import annotations

from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.job.job import Hints, InstanceGroup, Purchase
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


def spot_runs(*billed_of_1000: int, **facts: Any) -> list[EarlierRun]:
    """Completed spot runs of the family, each billed for so many of its 1000 seconds."""
    plain: dict[str, Any] = {"purchase": Purchase.SPOT, "instance_type": GPU}
    return [
        earlier_run(n, elapsed_s=Decimal(1000), billable_s=Decimal(billed), **plain | facts)
        for n, billed in enumerate(billed_of_1000, start=1)
    ]


test_cases = cases(
    RULE,
    "An on demand run is worth a trial.",
    # Half an hour of 6 x $1.515; 14683 of 37026 s billed at worst, 52 of 175 at best.
    # 4.545 x (1 - 14683/37026) and 4.545 x (1 - 52/175)
    row(finds(builder="possible", usd="2.742639", span=("2.742639", "3.194486"), severity="low"),
        ran(1800, GPU, 6)),
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
        "60 to 70%.", builder="derived", usd="1.818000", span=("1.818000", "2.121000")),
        ran(7200, GPU, checkpointed=True, volume_gb=0), earlier=spot_runs(400, 300, 350)),
    "The worst quartile counts.",
    # Of eight runs the two worst are 900 and 600: the milder one. Of four it is the worst.
    row(finds(evidence={"savings_percent": "40 to 70"}), ran(3599, GPU, volume_gb=0),
        earlier=spot_runs(300, 310, 320, 330, 340, 350, 600, 900)),
    row(finds(evidence={"savings_percent": "10 to 70"}), ran(3599, GPU, volume_gb=0),
        earlier=spot_runs(300, 310, 320, 900)),
    "Fewer than three usable runs leave a guess.",
    # Two; not completed; on another type; on demand; without one of the two times.
    row(finds(builder="possible", evidence={"savings_percent": "60 to 70"}), ran(1800, GPU, 6),
        earlier=spot_runs(400, 300)),
    row(finds(builder="possible", evidence={"savings_percent": "60 to 70"}), ran(1800, GPU, 6),
        earlier=spot_runs(400, 300, 350, status="Failed")),
    row(finds(builder="possible", evidence={"savings_percent": "60 to 70"}), ran(1800, GPU, 6),
        earlier=spot_runs(400, 300, 350, instance_type="ml.m5.large")),
    row(finds(builder="possible", evidence={"savings_percent": "60 to 70"}), ran(1800, GPU, 6),
        earlier=spot_runs(400, 300, 350, purchase=Purchase.ON_DEMAND)),
    row(finds(builder="possible", evidence={"savings_percent": "60 to 70"}), ran(1800, GPU, 6),
        earlier=[*spot_runs(400, 300), earlier_run(9, purchase=Purchase.SPOT, instance_type=GPU,
        billable_s=None)]),
    row(finds(builder="possible", evidence={"savings_percent": "60 to 70"}), ran(1800, GPU, 6),
        earlier=[*spot_runs(400, 300), earlier_run(9, purchase=Purchase.SPOT, instance_type=GPU,
        elapsed_s=Decimal(0))]),
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
    "Own runs make no long run safe.",
    # Nor do checkpoints of its own, which SageMaker does not bring back.
    row(finds(usd=None, bucket="possible", paths=CHECKPOINTS_FIRST), ran(36_000, GPU,
        hints=Hints(own_checkpoints=True)), earlier=spot_runs(400, 300, 350)),
    "The sentence of a trial. Its numbers are the evidence's; checkpoints make it safe.",
    row(finds("10 h on demand: write checkpoints first, then managed spot is worth a trial.",
        paths=CHECKPOINTS_FIRST, evidence={"elapsed_s": 36_000}), ran(36_000, GPU)),
    row(finds("10 h on demand, with checkpoints: managed spot is worth a trial; published runs "
        "saved 60 to 70%.", paths=CHECKPOINTS_FIRST[1:], usd="9.142129"), ran(36_000, GPU,
        checkpointed=True)),
    "An hour without checkpoints gets no figure; a second less is the limit of MaxWait.",
    row(finds(usd="5.483753"), ran(3599, GPU, 6)),
    row(finds(usd=None, span=None, caution="…checkpoints…"), ran(3600, GPU, 6)),
    "The wait limit is above the run limit. The API refuses a MaxWait under MaxRuntime.",
    row(finds(fix=["s3://<bucket>/<prefix>", True, 14_400]), ran(1800, GPU, 6, max_runtime_s=7200)),
)  # fmt: skip
