"""Jobs that use few of their GPUs, or all of them a little.

Low dollars: against the machine that certainly holds the work, with the slow end of every range
(`merged`: n devices into m, GPU ratios of gpu-training-throughput.json, 2026-11-21). CloudWatch
gives sums only, so the low end may not know how many devices were busy. High dollars: the whole
story known, the quick end of the range.
"""

from .form import HUGGING, Expert, Job, Scenario, Topic, day, run_phases, same
from .load import Seg
from .machines import Range, merged, rate

FEW: tuple[Topic, ...] = (
    frozenset({"some-gpus-unused", "gpu-underused", "gpu-too-big", "gpu-starved"}),
)
WEAK: tuple[Topic, ...] = (
    frozenset({"gpu-underused", "gpu-starved", "some-gpus-unused", "gpu-too-big"}),
)
NOT = ("gpu-idle", "idle-start", "idle-tail", "uneven-hosts", "limit-hit", "failed-spend")


def saves(job: Job, to: str, times: float) -> float:
    """The share of the bill that the other machine saves when the time grows by `times`."""
    return max(0.0, 1 - float(rate(to)) * times / float(rate(job.kind)))


def one(
    name: str,
    job: Job,
    story: str,
    low: float,
    high: float,
    says: str,
    must: tuple[Topic, ...] = FEW,
    unsaid: tuple[str, ...] = NOT,
) -> Scenario:
    """A scenario of few devices at work."""
    # one percent less below, one more above: noise, warm-up minutes, rounding
    wasted: Range = job.share(max(0.0, low - 0.02), min(1.0, high + 0.01))
    return job.scenario(
        name, story, Expert("yes", wasted, job.share(0, 0), job.idle(), must, unsaid, says)
    )


def job(name: str, kind: str, number: int, minutes: int, seg: Seg, image: str = HUGGING) -> Job:
    """One host that imports for three minutes, then works evenly."""
    head = Seg(3, 0, seg.cpu * 0.6, seg.mem * 0.5, seg.gmem * 0.1)
    body = Seg(minutes - 3, seg.gpu, seg.cpu, seg.mem, seg.gmem, seg.wobble, top=seg.top)
    return Job(name, kind, day(number, 9), run_phases(minutes), same(1, head, body), image=image)


_THIRD_G5 = job(
    "segformer-2026-05-07-08-59-13-220",
    "ml.g5.48xlarge",
    7,
    480,
    Seg(0, 264, 2400, 11, 240, wobble=0.06),
)
# Certain: g5.12xlarge, 4 GPUs: 7.09 x (1 + 0.33 x 1). 53 GiB in 89 GiB, 24 cores in 48.
# Whole story: the GPUs wait for a too small batch; four L4 (1.28 times slower) still suffice.
_THIRD_P4D = job(
    "clip-distill-2026-05-09-08-58-45-631",
    "ml.p4d.24xlarge",
    9,
    540,
    Seg(0, 264, 2900, 14, 280, wobble=0.08),
)
# Certain: nothing. No smaller A100 host; L40S x 4 at the slow end costs what p4d costs.
# Whole story: batch four times as large would bring 264 to 720 of 800.
_ONE_P4D = job(
    "bert-ner-2026-05-06-08-59-50-417",
    "ml.p4d.24xlarge",
    6,
    420,
    Seg(0, 95, 420, 2.6, 40, wobble=0.015, top=99.4),
)
# Sum 95, 16 of 40 GiB, 4 cores, 30 GiB of host. Certain without the ceiling: g6e.2xlarge, one
# L40S 44.7 GiB, A100 -> L40S at most 1.93. Bold: one A100 was busy, 1.22, g6e.xlarge.
_TWO_P5 = job(
    "dpo-8b-2026-05-15-08-57-29-088",
    "ml.p5.48xlarge",
    15,
    360,
    Seg(0, 180, 700, 4, 120, wobble=0.03, top=199),
)
# Sum 180: 2 of 8 H100, 48 GiB each. Certain without knowing how many: p4de, 8 A100 of 80 GiB
# each, H100 -> A100 at most 2.33. Bold: g7e.12xlarge, two RTX PRO 6000 of 96 GiB, 2.07.
_TWO_P3 = job(
    "resnet-legacy-2026-05-05-08-58-01-733",
    "ml.p3.16xlarge",
    5,
    600,
    Seg(0, 180, 900, 9, 175, wobble=0.03, top=199),
)
# Sum 180, 14 GiB on each of two. Certain: p3.8xlarge, 8 devices into 4. Bold: the two into
# one L40S (V100 -> L40S 0.51): g6e.4xlarge, 28 of 44.7 GiB, 9 of 16 cores.
_THREE_G5 = job(
    "lora-sweep-2026-05-16-08-59-06-154",
    "ml.g5.48xlarge",
    16,
    660,
    Seg(0, 267, 1400, 12, 249, wobble=0.03, top=299),
)
# Three processes, one to a GPU at 89 %, 83 % of the memory each. Certain: g5.12xlarge with
# 8 into 4 (1.33); the story: 3 of 4 at the same time.
_ONE_80 = job(
    "asr-ctc-2026-05-08-08-58-33-902",
    "ml.g5.12xlarge",
    8,
    540,
    Seg(0, 80, 310, 9, 62, wobble=0.05, top=99),
)
# Sum 80: one at 80 or four at 20. Into one A10G: 1 + 0.2 x 3 = 1.6; 14 GiB fit; 3.1 cores,
# 17 GiB of host memory: g5.2xlarge (8 vCPU, 32 GiB) holds it.
_ONE_95 = job(
    "vits-tts-2026-05-10-08-59-27-365",
    "ml.g5.12xlarge",
    10,
    720,
    Seg(0, 95, 260, 8, 71, wobble=0.012, top=99.2),
)
# Sum 95, flat: one device at its ceiling. g5.2xlarge at the same time.
_TENTH = job(
    "tabular-tx-2026-05-18-08-58-19-246",
    "ml.g6.48xlarge",
    18,
    510,
    Seg(0, 80, 700, 4, 72, wobble=0.10),
)
# Ten percent each, 2 GiB each: eight small replicas, 16 GiB in all. Into one L4: 1 + 0.1 x 7;
# 7 cores and 31 GiB: g6.4xlarge (16 vCPU, 64 GiB).
_COPIES = job(
    "yolo-ddp-2026-05-12-08-57-44-519",
    "ml.g5.12xlarge",
    12,
    600,
    Seg(0, 96, 340, 10, 358, wobble=0.06),
)
# Four copies of 20 GiB at 24 %: one A10G has the time (1.72) and the memory of one copy.
_BOUND = job(
    "mixtral-lora-2026-05-20-08-59-31-187",
    "ml.g5.12xlarge",
    20,
    660,
    Seg(0, 60, 380, 46, 381, wobble=0.08),
)

FEW_DEVICES: tuple[Scenario, ...] = (
    one(
        "third-of-eight-a10g",
        _THIRD_G5,
        "Eight A10G each a third busy and a third full: the batch is too small for eight.",
        saves(_THIRD_G5, "ml.g5.12xlarge", merged(264, 8, 4)),
        saves(_THIRD_G5, "ml.g6.12xlarge", 1.0),
        "Four GPUs hold it: ml.g5.12xlarge, at most a third slower, saves about half.",
        WEAK,
    ),
    one(
        "third-of-eight-a100",
        _THIRD_P4D,
        "Eight A100 each a third busy, 14 GiB each, fed by a small batch size.",
        0.0,
        1 - 264 / 720,
        "No smaller A100 host is sold, so raise the batch or fix the feed; no certain dollars.",
        WEAK,
    ),
    one(
        "one-of-eight-a100",
        _ONE_P4D,
        "A single-process BERT script on p4d: one A100 at 95 %, seven never touched.",
        saves(_ONE_P4D, "ml.g6e.2xlarge", merged(95, 8, 1, 1.93)),
        saves(_ONE_P4D, "ml.g6e.xlarge", merged(95, 1, 1, 1.22)),
        "You pay for eight and use one: a one-GPU host costs a fraction even if slower.",
    ),
    one(
        "two-of-eight-h100",
        _TWO_P5,
        "torchrun --nproc_per_node 2 on a p5: two H100 at 90 %, six never touched.",
        saves(_TWO_P5, "ml.p4de.24xlarge", merged(180, 8, 8, 2.33)),
        saves(_TWO_P5, "ml.g7e.12xlarge", merged(180, 2, 2, 2.07)) + 0.08,
        "Six of eight H100 stood idle; two-GPU work belongs on a smaller host.",
    ),
    one(
        "two-of-eight-v100",
        _TWO_P3,
        "A legacy script pinned to CUDA devices 0 and 1 of a p3.16xlarge.",
        saves(_TWO_P3, "ml.p3.8xlarge", merged(180, 8, 4)),
        0.85,
        "ml.p3.8xlarge halves the bill for sure; six GPUs were never used.",
    ),
    one(
        "three-of-eight-a10g",
        _THREE_G5,
        "Three LoRA runs in parallel on three of eight A10G, five GPUs unused.",
        saves(_THREE_G5, "ml.g5.12xlarge", merged(267, 8, 4)),
        saves(_THREE_G5, "ml.g5.2xlarge", 3 * 0.95),
        "Three processes fit on ml.g5.12xlarge at the same speed.",
    ),
    one(
        "one-of-four-at-80",
        _ONE_80,
        "One A10G of a g5.12xlarge at 80 %, the other three at nothing.",
        saves(_ONE_80, "ml.g5.2xlarge", merged(80, 4, 1)),
        saves(_ONE_80, "ml.g5.2xlarge", 1.0) + 0.04,
        "ml.g5.2xlarge holds it: surely two thirds saved, nearly four fifths if one was busy.",
    ),
    one(
        "one-of-four-at-95",
        _ONE_95,
        "One A10G of a g5.12xlarge flat at 95 %, the others unused all twelve hours.",
        saves(_ONE_95, "ml.g5.2xlarge", 1.0),
        saves(_ONE_95, "ml.g5.xlarge", 1.0) + 0.02,
        "Flat at one device's ceiling: same speed on ml.g5.2xlarge at a fifth of the rate.",
    ),
    one(
        "tenth-of-eight-l4",
        _TENTH,
        "Eight L4 at a tenth each with a 2 GiB replica on every one.",
        saves(_TENTH, "ml.g6.4xlarge", merged(80, 8, 1)),
        saves(_TENTH, "ml.g6.2xlarge", 1.0),
        "One L4 has time and memory for it; even at the slow end five sixths go.",
        WEAK,
    ),
    one(
        "copies-of-20-gib-on-four",
        _COPIES,
        "Data-parallel copies of one 20 GiB model on four A10G at 24 % each.",
        0.0,
        saves(_COPIES, "ml.g5.2xlarge", merged(96, 4, 1)) + 0.16,
        "The series cannot tell copies from shards; if copies, one GPU has the time.",
        WEAK,
    ),
    one(
        "memory-bound-four-a10g",
        _BOUND,
        "A sharded mixture model: GPUs 15 % busy but 95 % full on all four.",
        0.0,
        saves(_BOUND, "ml.g6.12xlarge", 1.0),
        "GPU memory is the binding side: no smaller host; only a trial on L4 x 4 is open.",
        (frozenset({"gpu-underused", "gpu-starved"}),),
        (*NOT, "some-gpus-unused"),
    ),
)
