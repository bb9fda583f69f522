"""Large CPU machines with little to do, and GPU machines with CPU work.

Low: the type that holds P99 of the cores with a fifth of headroom and the memory, at the same
speed. High: the tightest type that the story truly needs.
"""

from .form import SKLEARN, XGBOOST, Expert, Job, Scenario, Topic, day, run_phases, same
from .kinds import Processing
from .load import Seg
from .machines import NOTHING, rate

NOT = ("gpu-idle", "gpu-underused", "some-gpus-unused", "failed-spend", "uneven-hosts")
LITTLE: tuple[Topic, ...] = (frozenset({"cpu-underused", "serial-code", "memory-oversized"}),)


def part(of: str, to: str, less: float = 0.02) -> float:
    """The share (0..1) of the bill that a move between these types saves, less a margin."""
    return float(1 - rate(to) / rate(of)) - less


_M5 = Job(
    "feature-select-2026-05-07-06-00-21-940",
    "ml.m5.24xlarge",
    day(7, 6),
    run_phases(660, down=130, up=30),
    same(1, Seg(660, 0, 770, 6, 0)),
    image=SKLEARN,
)
_M5_ONE = Job(
    "arima-grid-2026-05-08-06-00-52-313",
    "ml.m5.24xlarge",
    day(8, 6),
    run_phases(1200, down=120, up=20),
    same(1, Seg(1200, 0, 100.4, 4, 0)),
    image=SKLEARN,
)
_C5_ONE = Job(
    "monte-carlo-2026-05-14-06-00-08-584",
    "ml.c5.18xlarge",
    day(14, 6),
    run_phases(480, down=120, up=20),
    same(8, Seg(480, 0, 100.6, 5, 0)),
    image=SKLEARN,
)
_R5 = Job(
    "doc-embeddings-2026-05-15-06-00-40-150",
    "ml.r5.24xlarge",
    day(15, 6),
    run_phases(540, down=200, up=60),
    same(1, Seg(540, 0, 2000, 11, 0)),
    image=SKLEARN,
)
_PROC = Processing(
    "dedup-corpus-2026-05-18-06-00-33-829",
    "ml.m5.24xlarge",
    day(18, 6),
    300 * 60 + 90,
    same(6, Seg(300, 0, 1400, 12, 0, wobble=0.05)),
    volume_gb=200,
)
_GPU = Job(
    "xgb-on-gpu-box-2026-05-20-06-00-11-672",
    "ml.g5.12xlarge",
    day(20, 6),
    run_phases(450, down=180, up=30),
    same(2, Seg(450, 0, 4000, 30, 0)),
    image=XGBOOST,
    script="xgb.py",
)

CPU_JOBS: tuple[Scenario, ...] = (
    _M5.scenario(
        "eight-cores-of-96-m5",
        "Feature selection with n_jobs=8 on 96 vCPU, 23 of 384 GiB.",
        Expert(
            "yes",
            # low: m5.4xlarge 16 vCPU, 64 GiB; high: m5.2xlarge 8 vCPU, 32 GiB
            _M5.share(part("ml.m5.24xlarge", "ml.m5.4xlarge"), 0.925),
            NOTHING,
            _M5.idle(),
            LITTLE,
            NOT,
            "ml.m5.4xlarge does the same at the same pace for a sixth.",
        ),
    ),
    _M5_ONE.scenario(
        "one-core-of-96-m5",
        "A serial ARIMA grid search: one core at 100 % for twenty hours, 15 GiB.",
        Expert(
            "yes",
            # low: m5.2xlarge (32 GiB); high: r5.xlarge (32 GiB)
            _M5_ONE.share(part("ml.m5.24xlarge", "ml.m5.2xlarge"), 0.95),
            NOTHING,
            _M5_ONE.idle(),
            (frozenset({"serial-code", "cpu-underused"}),),
            NOT,
            "Serial code: a small host, or joblib over all cores, but never 95 idle cores.",
        ),
    ),
    _C5_ONE.scenario(
        "one-core-on-each-of-8-c5-18x",
        "Eight c5.18xlarge, on each one Python thread and 7 GiB.",
        Expert(
            "yes",
            # low: c5.2xlarge (16 GiB) x 8; high: eight threads on one m5.4xlarge (64 GiB)
            _C5_ONE.share(part("ml.c5.18xlarge", "ml.c5.2xlarge"), 0.975),
            NOTHING,
            _C5_ONE.idle(),
            (frozenset({"serial-code", "cpu-underused"}),),
            NOT,
            "Eight cores of 576 worked: smaller hosts save eight ninths at the same speed.",
        ),
    ),
    _R5.scenario(
        "memory-host-without-memory-need-r5",
        "Embeddings on r5.24xlarge: 84 of 768 GiB and 20 of 96 vCPU.",
        Expert(
            "yes",
            # low: r5.12xlarge; high: half of that, 32 vCPU and 128 GiB (m7i.8xlarge, 1.935)
            _R5.share(part("ml.r5.24xlarge", "ml.r5.12xlarge"), 1 - 1.935 / 7.258 + 0.01),
            NOTHING,
            _R5.idle(),
            (frozenset({"memory-oversized", "cpu-underused"}),),
            NOT,
            "Neither memory nor cores are needed: ml.m5.12xlarge at the same pace.",
        ),
    ),
    _PROC.scenario(
        "big-processing-few-cores-6-m5",
        "Deduplication on six m5.24xlarge with 14 cores and 46 GiB each at work.",
        Expert(
            "yes",
            # low: m5.12xlarge; high: m5.4xlarge, 14 of 16 cores
            _PROC.share(part("ml.m5.24xlarge", "ml.m5.12xlarge"), 0.84),
            NOTHING,
            _PROC.idle(),
            LITTLE,
            NOT,
            "Half the size holds it for sure, a third or a sixth with a trial.",
        ),
    ),
    _GPU.scenario(
        "xgboost-cpu-on-g5-12x",
        "XGBoost with tree_method=hist on two g5.12xlarge: 40 cores busy, no GPU ever.",
        Expert(
            "yes",
            # low: c5.18xlarge, 72 vCPU and 144 GiB; high: m5.12xlarge, the same 48 vCPU
            _GPU.share(part("ml.g5.12xlarge", "ml.c5.18xlarge"), 0.67),
            NOTHING,
            _GPU.idle(),
            (frozenset({"gpu-idle", "gpu-too-big", "gpu-underused"}),),
            ("some-gpus-unused", "failed-spend", "cpu-underused", "uneven-hosts"),
            "No GPU was touched: a CPU host with as many cores costs half or less.",
        ),
    ),
)
