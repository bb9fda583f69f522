from datetime import timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import InstanceGroup, Job, Parent, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel, WarmPool
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, phases
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "warm-pool-candidate"
WAITED_S, PULLED_S, WORKED_S = 200, 300, 900
KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
STREAMED = (InputChannel("train", DataSource.S3, "FastFile", "FullyReplicated"),)
COPIED = (InputChannel("train", DataSource.S3, "File", "FullyReplicated"),)
MOUNTED = (InputChannel("train", DataSource.EFS, "File", None),)


def run(worked_s: int = WORKED_S, pulled_s: int = PULLED_S, **more: Any) -> Job:
    """Two hosts of $0.23 an hour: 200 s of waiting, 300 s of image pull, 15 minutes of work."""
    seconds = Decimal(pulled_s + worked_s)
    plain: dict[str, Any] = {
        "created_at": START - timedelta(seconds=WAITED_S),
        "ended_at": START + timedelta(seconds=float(seconds)),
        "phases": phases(
            ("Starting", -WAITED_S), ("Downloading", pulled_s), ("Training", worked_s)
        ),
        "training_s": seconds,
        "billable_s": seconds,
        "volume_gb": 0,
        "channels": STREAMED,
    }
    return job("ml.m5.xlarge", 2, **plain | more)


def before(*gaps_s: int, worked_s: int = WORKED_S, **facts: Any) -> tuple[AuditSummary, ...]:
    """The same runs, newest first; `gaps_s`: from the end of each to the request of the next."""
    requested, runs = START - timedelta(seconds=WAITED_S), []
    phase_s = {"Starting": WAITED_S, "Downloading": PULLED_S, "Training": worked_s}
    elapsed_s = PULLED_S + worked_s
    for gap_s in gaps_s:
        ended_at = requested - timedelta(seconds=gap_s)
        took: dict[str, Any] = {
            "instance_count": 2,
            "elapsed_s": Decimal(elapsed_s),
            "phase_s": {name: Decimal(seconds) for name, seconds in phase_s.items()},
        }
        runs.append(earlier_run(ended_at=ended_at, **took | facts))
        requested = ended_at - timedelta(seconds=WAITED_S + elapsed_s)
    return tuple(runs)


test_cases = cases(
    RULE,
    "A pool that costs less than the pulls that it spares is worth a trial.",
    # Four runs, a minute apart. Two minutes of keep-alive serve each gap: 3 x 60 s of pool, and
    # 120 s of the last one. Spared are 3 x 200 s of waiting and 3 x 300 s of pulls on two hosts:
    # 900 s x 2 x $0.23 / 3600 = $0.115, less 300 s of pool, $0.0383. A run in the mean: 150 s.
    row(finds("A warm pool kept for 2 min would have spared 3 of the family's last 4 starts: "
        "10 min of waiting and 15 min of billed image pulls ($0.12), for 5 min of pool ($0.04).",
        builder="possible", usd="0.019167", fix=[(KEEP, None, 120)],
        evidence={"runs": 4, "spared_starts": 3, "spared_waiting_s": 600, "spared_pulls_s": 900,
        "pool_s": 300}, caution="…mean of these runs…quota…"), run(), earlier=before(60, 60, 60)),
    "The volumes of the pools cost something too.",
    # 150 s less at $0.46 and, for 60 GB at $0.14 in May, 60 x 0.14 / 744 = $0.0113 an hour.
    row(finds(usd="0.019637"),
        run(volume_gb=30), earlier=before(60, 60, 60)),
    "A pool that costs more than the pulls buys less waiting, and has no dollars.",
    # Gaps of 5 minutes: 3 x 300 s and 360 s of pool, 21 min ($0.16), for 15 min of pulls ($0.12).
    row(finds("A warm pool kept for 6 min would have spared 3 of the family's last 4 starts: "
        "10 min of waiting and 15 min of billed image pulls ($0.12), for 21 min of pool ($0.16).",
        builder="advice", usd=None, fix=[(KEEP, None, 360)],
        caution="The pool costs $0.05 more than the pulls that it spares: it buys less waiting, no "
        "dollars…"), run(), earlier=before(300, 300, 300)),
    "Where runs come later than a start takes, no pool is better than one.",
    row(CLEAR, run(), earlier=before(600, 600, 600)),
    row(CLEAR, run(), earlier=before(86_400, 86_400, 86_400)),
    "A long break between two bursts costs one keep-alive.",
    # 60, a day, 60, 60: 3 x 60 s, and 120 s for the break and for the last pool.
    row(finds("…3 of the family's last 5 starts…for 7 min of pool…", usd="0.012267"), run(),
        earlier=before(60, 86_400, 60, 60)),
    "Runs side by side take no pool over.",
    row(CLEAR, run(), earlier=before(-600, -600, -600)),
    "Less than ten minutes in all are not worth a pool.",
    # 3 x 199 s and no pull; with one more second each it is 600 s.
    row(finds("…10 min of waiting, for…", without="pulls ("), run(pulled_s=0),
        earlier=before(20, 20, 20, phase_s={"Starting": Decimal(200)})),
    row(CLEAR, run(pulled_s=0), limits={"spared_from_s": 601},
        earlier=before(20, 20, 20, phase_s={"Starting": Decimal(200)})),
    "A start that is less than a tenth of the work is not noticed.",
    # 3 x 500 s of 4 x 3,750 s are exactly a tenth.
    row(finds("…3 of the family's last 4 starts…"), run(3750),
        earlier=before(60, 60, 60, worked_s=3750)),
    row(CLEAR, run(3760), earlier=before(60, 60, 60, worked_s=3750)),
    "A pull that cannot be told from data is left out.",
    # Copied, mounted, longer than any pull, or before 2024 inside Training.
    *(
        row(finds("…10 min of waiting, for 5 min of pool…", builder="advice",
            evidence={"spared_pulls_s": 0}), run(channels=channels), earlier=before(60, 60, 60))
        for channels in (COPIED, MOUNTED)
    ),
    row(finds(evidence={"spared_pulls_s": 600}), run(pulled_s=1801), earlier=before(60, 60, 60)),
    "Only ten runs are looked at: older ones were of another rhythm.",
    row(finds("…9 of the family's last 10 starts…"), run(), earlier=before(*[60] * 30)),
    "Runs on other instances, on spot or with a pool of their own are left out.",
    *(
        row("unknown: too_few_runs: 1 runs…", run(), earlier=before(60, 60, 60, **facts))
        for facts in (
            {"purchase": Purchase.SPOT}, {"instance_count": 1}, {"retained_s": Decimal(60)},
        )
    ),
    "Fewer than three earlier runs show no habit.",
    row("unknown: too_few_runs: 2 earlier runs…", run(), earlier=before(60, 60)),
    row("unknown: history_unread", run()),
    "A pool is not to be had, or is there already.",
    row("not applicable: it keeps a warm pool…", run(warm_pool=WarmPool("Reused", 600, Decimal(9))),
        earlier=before(60, 60, 60)),
    row("not applicable: managed spot…", run(purchase=Purchase.SPOT), earlier=before(60, 60, 60)),
    row("not applicable: …prepaid", run(purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: it is serverless", run(purchase=Purchase.SERVERLESS)),
    row("not applicable: …several groups", run(groups=(InstanceGroup("ml.m5.xlarge", 1, "a"),
        InstanceGroup("ml.m5.2xlarge", 1, "b")))),
    row("not applicable: …one search…", run(parent=Parent(JobKind.TUNING.row.rollup, "arn:t"))),
    row("not applicable: …processing…", run(kind=JobKind.PROCESSING)),
    "Without a rate there are minutes, and dollars are unknown.",
    row(finds("…15 min of billed image pulls, for 5 min of pool.", usd=None, builder="possible"),
        run(groups=(InstanceGroup("ml.unpriced.xlarge", 2),)),
        earlier=before(60, 60, 60, instance_type="ml.unpriced.xlarge")),
    "A run whose times are not known is left out.",
    row("unknown: too_few_runs…", replace(run(), phases=(), training_s=None, started_at=None,
        ended_at=None), earlier=before(60, 60, 60)),
)  # fmt: skip
