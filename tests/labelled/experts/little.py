"""GPUs that did almost nothing, that waited for cores, or that are simply used well enough.

Low: the cheapest documented machine that surely does the same (T4 instead of A10G at its worst
ratio, 5.53 in fp32; T4 instead of V100: 3.26; a CPU machine where no GPU worked), less a margin.
High: the tightest type that the story truly needs, or the whole GPU share.
"""

from tests.labelled.expert import LOSS_OK, MOVE_OK, XGBOOST, expert, healthy, job, part
from tests.labelled.machine import Shown

NOT = ("idle-start", "idle-middle", "idle-tail", "some-gpus-unused", *LOSS_OK, *MOVE_OK)
LITTLE = frozenset({"gpu-idle", "gpu-underused", "gpu-too-big", "cheaper-type"})
WAITS = frozenset({"cpu-bottleneck", "gpu-starved"})

SCENARIOS = (
    expert(
        "gpu-at-one-percent-g4dn-xlarge",
        "A small tabular net fed row by row: the T4 works one second in a hundred.",
        job("churn-tabular-2026-05-04-09-10-33-871", "ml.g4dn.xlarge",
            Shown(360, 1.0, 112, 31, 9, wobble=0.3)),
        share=(part("ml.g4dn.xlarge", "ml.m5.xlarge") - 0.1, 0.97), must=(LITTLE,),
        must_not=(*NOT, "cpu-bottleneck", "spot-without-checkpoint"),
        says="No GPU is needed: an m5.xlarge does this, or larger batches from memory.",
    ),
    expert(
        "gpu-at-three-percent-g5-2xlarge",
        "Embeddings of single sentences, one request at a time: 3 % of an A10G for nine hours.",
        job("intent-embed-2026-05-05-14-20-08-314", "ml.g5.2xlarge",
            Shown(540, 3.1, 180, 22, 8, wobble=0.25)),
        share=(part("ml.g5.2xlarge", "ml.g4dn.xlarge", 1.14) - 0.05, 0.95), must=(LITTLE,),
        must_not=(*NOT, "cpu-bottleneck"),
        says="The GPU did almost nothing, though not nothing: batch, or take the smallest.",
    ),
    expert(
        "gpu-at-six-percent-p3-2xlarge",
        "A GRU with tiny batches uses 6 % of a V100 and 2 GB of its memory.",
        job("sensor-gru-2026-05-06-06-45-51-660", "ml.p3.2xlarge",
            Shown(300, 6.0, 140, 6, 12, wobble=0.2), volume_gb=50),
        share=(part("ml.p3.2xlarge", "ml.g4dn.xlarge", 1.14) - 0.1, 0.97), must=(LITTLE,),
        must_not=(*NOT, "cpu-bottleneck", "memory-oversized"),
        says="A fifth of the price on a T4 with the same result; fix the batch size first.",
    ),
    expert(
        "model-on-cpu-by-mistake-g5-4xlarge",
        "The model was never moved to the GPU; sixteen cores did eleven hours of matrix work.",
        job("doc-layout-2026-05-07-17-00-25-139", "ml.g5.4xlarge", Shown(660, 0, 1490, 29, 0.6)),
        # low: c7i.4xlarge with the same cores; high: the GPU would end it within the hour
        share=(part("ml.g5.4xlarge", "ml.c7i.4xlarge") - 0.1, 0.97),
        must=(frozenset({"gpu-idle"}),),
        must_not=(*NOT, "cpu-underused", "memory-oversized"),
        says="GPU at nothing, all cores busy: the model is on the wrong device.",
    ),
    expert(
        "trees-on-cpu-of-p3-2xlarge",
        "Boosted trees with the CPU method on a V100 machine: eight cores busy, GPU untouched.",
        job("fraud-boost-2026-05-08-08-30-44-902", "ml.p3.2xlarge", Shown(150, 0, 764, 18, 0),
            image=XGBOOST, volume_gb=60),
        share=(part("ml.p3.2xlarge", "ml.m5.2xlarge") - 0.08, 0.97),
        must=(frozenset({"gpu-idle", "gpu-too-big", "cheaper-type"}),),
        must_not=(*NOT, "cpu-underused"),
        says="Eight cores without a GPU cost an eighth: m5.2xlarge.",
    ),
    healthy(
        "sawtooth-63-percent-g5-2xlarge",
        "Four minutes of steps at 76 %, one of saving at 14 %, for five hours.",
        job("vision-pretext-2026-05-09-10-00-17-482", "ml.g5.2xlarge", Shown(2, 0, 200, 30, 3),
            *(Shown(4, 76, 520, 64, 83), Shown(1, 14, 300, 64, 83)) * 60),
        # high: an L4 is a fifth cheaper and, in 16 bit, some 18 % slower at this use
        high=0.08, but=("gpu-too-big", "cheaper-type", "memory-oversized", "trainium-candidate"),
        says="Used as most good jobs are; nothing to say.",
    ),
    healthy(
        "sawtooth-60-percent-g5-12xlarge",
        "Four A10G at 71 %, every seven minutes two of a CPU-side metric at 33 %.",
        job("scene-text-2026-05-10-13-15-40-225", "ml.g5.12xlarge", Shown(3, 0, 300, 14, 4),
            *(Shown(5, 284, 3500, 49, 330), Shown(2, 130, 1500, 49, 330)) * 50),
        high=0.08, but=("gpu-too-big", "cheaper-type", "trainium-candidate"),
        says="Healthy use with pauses for metrics; nothing to say.",
    ),
    expert(
        "gpu-35-percent-cores-at-limit-g4dn-4xlarge",
        "Heavy image augmentation keeps all sixteen cores at the limit; the T4 waits.",
        job("augment-heavy-2026-05-11-07-55-12-008", "ml.g4dn.4xlarge",
            Shown(480, 35, 1588, 46, 70)),
        # low: whether more cores or GPU augmentation pay is to be tried
        share=(0, 0.65), must=(WAITS,),
        must_not=(*NOT, "gpu-idle", "cpu-underused", "gpu-too-big", "serial-code"),
        says="The cores limit this job: more cores for the GPU, or augment on it.",
    ),
    expert(
        "gpu-20-percent-all-cores-g5-xlarge",
        "Spectrograms are made on the fly: four cores at 99 %, the A10G at 20 %.",
        job("audio-spec-2026-05-12-15-05-29-757", "ml.g5.xlarge", Shown(420, 20, 397.5, 60, 55)),
        # high: g5.4xlarge has four times the cores for 44 % more
        share=(0, 0.72), must=(WAITS,),
        must_not=(*NOT, "gpu-idle", "cpu-underused"),
        says="Twice the cores cost 8 % more (g5.2xlarge): cores, not the GPU, are short.",
    ),
    expert(
        "gpu-45-percent-one-core-of-32-g5-8xlarge",
        "One loader process feeds the A10G; thirty-one of thirty-two cores do nothing.",
        job("ocr-lines-2026-05-13-06-20-36-164", "ml.g5.8xlarge", Shown(480, 45, 108, 8, 60)),
        # low: the same on g5.xlarge; high: with more workers there, twice as fast
        share=(part("ml.g5.8xlarge", "ml.g5.xlarge") - 0.1, 0.8),
        must=(frozenset({"cheaper-type", "cpu-underused", "serial-code", "gpu-starved",
            "gpu-underused"}),),
        must_not=(*NOT, "gpu-idle"),
        says="Paid for 32 cores, used one: num_workers, or a g5.xlarge at less than half.",
    ),
)  # fmt: skip
