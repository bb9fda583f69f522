"""Large CPU machines with little to do, and GPU machines with CPU work.

Low: the type that holds P99 of the cores with a fifth of headroom and the memory, at the same
speed. High: the tightest type that the story truly needs.
"""

from tests.labelled.expert import SKLEARN, XGBOOST, expert, job, processing, rate
from tests.labelled.machine import Shown

NOT = ("gpu-idle", "gpu-underused", "some-gpus-unused", "failed-spend", "uneven-hosts")
LITTLE = (frozenset({"cpu-underused", "serial-code", "memory-oversized"}),)


def part(of: str, to: str, less: float = 0.02) -> float:
    """The share (0..1) of the bill that a move between these types saves, less a margin."""
    return float(1 - rate(to) / rate(of)) - less


SCENARIOS = (
    expert(
        "eight-cores-of-96-m5",
        "Feature selection with n_jobs=8 on 96 vCPU, 23 of 384 GiB.",
        job("feature-select-2026-05-07-06-00-21-940", "ml.m5.24xlarge", Shown(660, 0, 770, 6, 0),
            down=130, up=30, image=SKLEARN),
        # low: m5.4xlarge 16 vCPU, 64 GiB; high: m5.2xlarge 8 vCPU, 32 GiB
        share=(part("ml.m5.24xlarge", "ml.m5.4xlarge"), 0.925), must=LITTLE, must_not=NOT,
        says="ml.m5.4xlarge does the same at the same pace for a sixth.",
    ),
    expert(
        "one-core-of-96-m5",
        "A serial ARIMA grid search: one core at 100 % for twenty hours, 15 GiB.",
        job("arima-grid-2026-05-08-06-00-52-313", "ml.m5.24xlarge", Shown(1200, 0, 100.4, 4, 0),
            down=120, up=20, image=SKLEARN),
        # low: m5.2xlarge (32 GiB); high: r5.xlarge (32 GiB)
        share=(part("ml.m5.24xlarge", "ml.m5.2xlarge"), 0.95),
        must=(frozenset({"serial-code", "cpu-underused"}),), must_not=NOT,
        says="Serial code: a small host, or joblib over all cores, but never 95 idle cores.",
    ),
    expert(
        "one-core-on-each-of-8-c5-18x", "Eight c5.18xlarge, on each one Python thread and 7 GiB.",
        job("monte-carlo-2026-05-14-06-00-08-584", "ml.c5.18xlarge", Shown(480, 0, 100.6, 5, 0),
            down=120, up=20, hosts=8, image=SKLEARN),
        # low: c5.2xlarge (16 GiB) x 8; high: eight threads on one m5.4xlarge (64 GiB)
        share=(part("ml.c5.18xlarge", "ml.c5.2xlarge"), 0.975),
        must=(frozenset({"serial-code", "cpu-underused"}),), must_not=NOT,
        says="Eight cores of 576 worked: smaller hosts save eight ninths at the same speed.",
    ),
    expert(
        "memory-host-without-memory-need-r5",
        "Embeddings on r5.24xlarge: 84 of 768 GiB and 20 of 96 vCPU.",
        job("doc-embeddings-2026-05-15-06-00-40-150", "ml.r5.24xlarge", Shown(540, 0, 2000, 11, 0),
            down=200, up=60, image=SKLEARN),
        # low: r5.12xlarge; high: half of that, 32 vCPU and 128 GiB (m7i.8xlarge, 1.935)
        share=(part("ml.r5.24xlarge", "ml.r5.12xlarge"), 1 - 1.935 / 7.258 + 0.01),
        must=(frozenset({"memory-oversized", "cpu-underused"}),), must_not=NOT,
        says="Neither memory nor cores are needed: ml.m5.12xlarge at the same pace.",
    ),
    expert(
        "big-processing-few-cores-6-m5",
        "Deduplication on six m5.24xlarge with 14 cores and 46 GiB each at work.",
        processing("dedup-corpus-2026-05-18-06-00-33-829", "ml.m5.24xlarge", 300 * 60 + 90,
            Shown(300, 0, 1400, 12, 0, wobble=0.05), hosts=6, volume_gb=200),
        # low: m5.12xlarge; high: m5.4xlarge, 14 of 16 cores
        share=(part("ml.m5.24xlarge", "ml.m5.12xlarge"), 0.84), must=LITTLE, must_not=NOT,
        says="Half the size holds it for sure, a third or a sixth with a trial.",
    ),
    expert(
        "xgboost-cpu-on-g5-12x",
        "XGBoost with tree_method=hist on two g5.12xlarge: 40 cores busy, no GPU ever.",
        job("xgb-on-gpu-box-2026-05-20-06-00-11-672", "ml.g5.12xlarge", Shown(450, 0, 4000, 30, 0),
            down=180, up=30, hosts=2, image=XGBOOST, script="xgb.py"),
        # low: c5.18xlarge, 72 vCPU and 144 GiB; high: m5.12xlarge, the same 48 vCPU
        share=(part("ml.g5.12xlarge", "ml.c5.18xlarge"), 0.67),
        must=(frozenset({"gpu-idle", "gpu-too-big", "gpu-underused"}),),
        must_not=("some-gpus-unused", "failed-spend", "cpu-underused", "uneven-hosts"),
        says="No GPU was touched: a CPU host with as many cores costs half or less.",
    ),
)  # fmt: skip
