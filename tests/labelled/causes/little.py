"""GPUs that did almost nothing, that waited for cores, or that are simply used well enough.

Low: the cheapest documented machine that surely does the same (T4 instead of A10G at its worst
ratio, 5.53 in fp32; T4 instead of V100: 3.26; a CPU machine where no GPU worked), less a margin.
High: the tightest type that the story truly needs, or the whole GPU share.
"""

from .form import LOSS_OK, MOVE_OK, XGBOOST, Scenario, Seg, day, healthy, make, verdict
from .machines import part

NOT = ("idle-start", "idle-middle", "idle-tail", "some-gpus-unused", *LOSS_OK, *MOVE_OK)
LITTLE = frozenset({"gpu-idle", "gpu-underused", "gpu-too-big", "cheaper-type"})
WAITS = frozenset({"cpu-bottleneck", "gpu-starved"})

_ONE = make(
    "churn-tabular-2026-05-04-09-10-33-871",
    "ml.g4dn.xlarge",
    day(4, 9),
    Seg(360, 1.0, 112, 31, 9, wobble=0.3),
)
_THREE = make(
    "intent-embed-2026-05-05-14-20-08-314",
    "ml.g5.2xlarge",
    day(5, 14),
    Seg(540, 3.1, 180, 22, 8, wobble=0.25),
)
_SIX = make(
    "sensor-gru-2026-05-06-06-45-51-660",
    "ml.p3.2xlarge",
    day(6, 6),
    Seg(300, 6.0, 140, 6, 12, wobble=0.2),
    volume_gb=50,
)
_MISTAKE = make(
    "doc-layout-2026-05-07-17-00-25-139",
    "ml.g5.4xlarge",
    day(7, 17),
    Seg(660, 0, 1490, 29, 0.6),
)
_TREES = make(
    "fraud-boost-2026-05-08-08-30-44-902",
    "ml.p3.2xlarge",
    day(8, 8),
    Seg(150, 0, 764, 18, 0),
    image=XGBOOST,
    volume_gb=60,
)
_SAW = make(
    "vision-pretext-2026-05-09-10-00-17-482",
    "ml.g5.2xlarge",
    day(9, 10),
    Seg(2, 0, 200, 30, 3),
    *(Seg(4, 76, 520, 64, 83), Seg(1, 14, 300, 64, 83)) * 60,
)
_SAW_FOUR = make(
    "scene-text-2026-05-10-13-15-40-225",
    "ml.g5.12xlarge",
    day(10, 13),
    Seg(3, 0, 300, 14, 4),
    *(Seg(5, 284, 3500, 49, 330), Seg(2, 130, 1500, 49, 330)) * 50,
)
_THIRD = make(
    "augment-heavy-2026-05-11-07-55-12-008",
    "ml.g4dn.4xlarge",
    day(11, 7),
    Seg(480, 35, 1588, 46, 70),
)
_FIFTH = make(
    "audio-spec-2026-05-12-15-05-29-757",
    "ml.g5.xlarge",
    day(12, 15),
    Seg(420, 20, 397.5, 60, 55),
)
_LOADER = make(
    "ocr-lines-2026-05-13-06-20-36-164",
    "ml.g5.8xlarge",
    day(13, 6),
    Seg(480, 45, 108, 8, 60),
)

LITTLES: tuple[Scenario, ...] = (
    _ONE.scenario(
        "gpu-at-one-percent-g4dn-xlarge",
        "A small tabular net fed row by row: the T4 works one second in a hundred.",
        verdict(
            _ONE,
            _ONE.share(part("ml.g4dn.xlarge", "ml.m5.xlarge") - 0.1, 0.97),
            (LITTLE,),
            (*NOT, "cpu-bottleneck", "gpu-memory-growth", "spot-without-checkpoint"),
            "No GPU is needed: an m5.xlarge does this, or larger batches from memory.",
        ),
    ),
    _THREE.scenario(
        "gpu-at-three-percent-g5-2xlarge",
        "Embeddings of single sentences, one request at a time: 3 % of an A10G for nine hours.",
        verdict(
            _THREE,
            _THREE.share(part("ml.g5.2xlarge", "ml.g4dn.xlarge", 1.14) - 0.05, 0.95),
            (LITTLE,),
            (*NOT, "cpu-bottleneck", "gpu-memory-growth"),
            "The GPU did almost nothing, though not nothing: batch, or take the smallest.",
        ),
    ),
    _SIX.scenario(
        "gpu-at-six-percent-p3-2xlarge",
        "A GRU with tiny batches uses 6 % of a V100 and 2 GB of its memory.",
        verdict(
            _SIX,
            _SIX.share(part("ml.p3.2xlarge", "ml.g4dn.xlarge", 1.14) - 0.1, 0.97),
            (LITTLE,),
            (*NOT, "cpu-bottleneck", "gpu-memory-growth", "memory-oversized"),
            "A fifth of the price on a T4 with the same result; fix the batch size first.",
        ),
    ),
    _MISTAKE.scenario(
        "model-on-cpu-by-mistake-g5-4xlarge",
        "The model was never moved to the GPU; sixteen cores did eleven hours of matrix work.",
        verdict(
            _MISTAKE,
            # low: c7i.4xlarge with the same cores; high: the GPU would end it within the hour
            _MISTAKE.share(part("ml.g5.4xlarge", "ml.c7i.4xlarge") - 0.1, 0.97),
            (frozenset({"gpu-idle"}),),
            (*NOT, "gpu-memory-growth", "cpu-underused", "memory-oversized"),
            "GPU at nothing, all cores busy: the model is on the wrong device.",
        ),
    ),
    _TREES.scenario(
        "trees-on-cpu-of-p3-2xlarge",
        "Boosted trees with the CPU method on a V100 machine: eight cores busy, GPU untouched.",
        verdict(
            _TREES,
            _TREES.share(part("ml.p3.2xlarge", "ml.m5.2xlarge") - 0.08, 0.97),
            (frozenset({"gpu-idle", "gpu-too-big", "cheaper-type"}),),
            (*NOT, "gpu-memory-growth", "cpu-underused", "mixed-precision-candidate"),
            "Eight cores without a GPU cost an eighth: m5.2xlarge.",
        ),
    ),
    healthy(
        _SAW,
        "sawtooth-63-percent-g5-2xlarge",
        "Four minutes of steps at 76 %, one of saving at 14 %, for five hours.",
        "Used as most good jobs are; nothing to say.",
        # high: an L4 is a fifth cheaper and, in 16 bit, some 18 % slower at this use
        high=0.08,
        but=("gpu-too-big", "cheaper-type", "memory-oversized", "trainium-candidate"),
    ),
    healthy(
        _SAW_FOUR,
        "sawtooth-60-percent-g5-12xlarge",
        "Four A10G at 71 %, every seven minutes two of a CPU-side metric at 33 %.",
        "Healthy use with pauses for metrics; nothing to say.",
        high=0.08,
        but=("gpu-too-big", "cheaper-type", "trainium-candidate"),
    ),
    _THIRD.scenario(
        "gpu-35-percent-cores-at-limit-g4dn-4xlarge",
        "Heavy image augmentation keeps all sixteen cores at the limit; the T4 waits.",
        verdict(
            _THIRD,
            # low: whether more cores or GPU augmentation pay is to be tried
            _THIRD.share(0, 0.65),
            (WAITS,),
            (*NOT, "gpu-idle", "cpu-underused", "gpu-too-big", "serial-code"),
            "The cores limit this job: more cores for the GPU, or augment on it.",
        ),
    ),
    _FIFTH.scenario(
        "gpu-20-percent-all-cores-g5-xlarge",
        "Spectrograms are made on the fly: four cores at 99 %, the A10G at 20 %.",
        verdict(
            _FIFTH,
            # high: g5.4xlarge has four times the cores for 44 % more
            _FIFTH.share(0, 0.72),
            (WAITS,),
            (*NOT, "gpu-idle", "cpu-underused", "gpu-memory-growth"),
            "Twice the cores cost 8 % more (g5.2xlarge): cores, not the GPU, are short.",
        ),
    ),
    _LOADER.scenario(
        "gpu-45-percent-one-core-of-32-g5-8xlarge",
        "One loader process feeds the A10G; thirty-one of thirty-two cores do nothing.",
        verdict(
            _LOADER,
            # low: the same on g5.xlarge; high: with more workers there, twice as fast
            _LOADER.share(part("ml.g5.8xlarge", "ml.g5.xlarge") - 0.1, 0.8),
            (
                frozenset(
                    {"cheaper-type", "cpu-underused", "serial-code", "gpu-starved", "gpu-underused"}
                ),
            ),
            (*NOT, "gpu-idle", "gpu-memory-growth"),
            "Paid for 32 cores, used one: num_workers, or a g5.xlarge at less than half.",
        ),
    ),
)
