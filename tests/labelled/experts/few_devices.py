"""Jobs that use few of their GPUs, or all of them a little.

Low dollars: against the machine that certainly holds the work, with the slow end of every range
(`merged`: n devices into m, GPU ratios of gpu-training-throughput.json, 2026-11-21). CloudWatch
gives sums only, so the low end may not know how many devices were busy. High dollars: the whole
story known, the quick end of the range.
"""

from sageaudit.structs import replace
from tests.labelled.expert import HUGGING, Scenario, Topic, day, expert, job, merged, rate
from tests.labelled.machine import Shown

FEW = (frozenset({"some-gpus-unused", "gpu-underused", "gpu-too-big", "gpu-starved"}),)
NOT = ("gpu-idle", "idle-start", "idle-tail", "uneven-hosts", "limit-hit", "failed-spend")


def saves(of: str, to: str, times: float) -> float:
    """The share of the bill that the other machine saves when the time grows by `times`."""
    return max(0.0, 1 - float(rate(to)) * times / float(rate(of)))


def few(
    name: str,
    story: str,
    run: tuple[str, str, int, Shown],
    low: float,
    high: float,
    says: str,
    must: tuple[Topic, ...] = FEW,
    must_not: tuple[str, ...] = NOT,
) -> Scenario:
    """A job of one host that imports for three minutes, then works evenly.

    `run`: its name, type, minutes, and what its work shows.
    """
    own, instance, minutes, seg = run
    first = Shown(3, 0, seg.cpu * 0.6, seg.mem * 0.5, seg.gmem * 0.1)
    body = replace(seg, minutes=minutes - 3)
    # one percent less below, one more above: noise, warm-up minutes, rounding
    share = (max(0.0, low - 0.02), min(1.0, high + 0.01))
    began = day(int(own.split("-")[-5]), 9)
    work = job(own, instance, first, body, began=began, image=HUGGING)
    return expert(name, story, work, share=share, must=must, must_not=must_not, says=says)


SCENARIOS = (
    few(
        "third-of-eight-a10g",
        "Eight A10G each a third busy and a third full: the batch is too small for eight.",
        ("segformer-2026-05-07-08-59-13-220", "ml.g5.48xlarge", 480,
            Shown(0, 264, 2400, 11, 240, wobble=0.06)),
        # Certain: g5.12xlarge, 4 GPUs: 7.09 x (1 + 0.33 x 1). 53 GiB in 89 GiB, 24 cores in 48.
        # Whole story: the GPUs wait for a too small batch; four L4 (1.28 times slower) suffice.
        saves("ml.g5.48xlarge", "ml.g5.12xlarge", merged(264, 8, 4)),
        saves("ml.g5.48xlarge", "ml.g6.12xlarge", 1.0),
        "Four GPUs hold it: ml.g5.12xlarge, at most a third slower, saves about half.",
    ),
    few(
        "third-of-eight-a100",
        "Eight A100 each a third busy, 14 GiB each, fed by a small batch size.",
        ("clip-distill-2026-05-09-08-58-45-631", "ml.p4d.24xlarge", 540,
            Shown(0, 264, 2900, 14, 280, wobble=0.08)),
        # Certain: nothing. No smaller A100 host; L40S x 4 at the slow end costs what p4d costs.
        # Whole story: batch four times as large would bring 264 to 720 of 800.
        0.0, 1 - 264 / 720,
        "No smaller A100 host is sold, so raise the batch or fix the feed; no certain dollars.",
    ),
    few(
        "one-of-eight-a100",
        "A single-process BERT script on p4d: one A100 at 95 %, seven never touched.",
        ("bert-ner-2026-05-06-08-59-50-417", "ml.p4d.24xlarge", 420,
            Shown(0, 95, 420, 2.6, 40, wobble=0.015, top=99.4)),
        # Sum 95, 16 of 40 GiB, 4 cores, 30 GiB of host. Certain without the ceiling: g6e.2xlarge,
        # one L40S 44.7 GiB, A100 -> L40S at most 1.93. Bold: one A100 was busy, 1.22, g6e.xlarge.
        saves("ml.p4d.24xlarge", "ml.g6e.2xlarge", merged(95, 8, 1, 1.93)),
        saves("ml.p4d.24xlarge", "ml.g6e.xlarge", merged(95, 1, 1, 1.22)),
        "You pay for eight and use one: a one-GPU host costs a fraction even if slower.",
    ),
    few(
        "two-of-eight-h100",
        "torchrun --nproc_per_node 2 on a p5: two H100 at 90 %, six never touched.",
        ("dpo-8b-2026-05-15-08-57-29-088", "ml.p5.48xlarge", 360,
            Shown(0, 180, 700, 4, 120, wobble=0.03, top=199)),
        # Sum 180: 2 of 8 H100, 48 GiB each. Certain without knowing how many: p4de, 8 A100 of
        # 80 GiB each, H100 -> A100 at most 2.33. Bold: g7e.12xlarge, two RTX PRO 6000 of
        # 96 GiB, 2.07.
        saves("ml.p5.48xlarge", "ml.p4de.24xlarge", merged(180, 8, 8, 2.33)),
        saves("ml.p5.48xlarge", "ml.g7e.12xlarge", merged(180, 2, 2, 2.07)) + 0.08,
        "Six of eight H100 stood idle; two-GPU work belongs on a smaller host.",
    ),
    few(
        "two-of-eight-v100",
        "A legacy script pinned to CUDA devices 0 and 1 of a p3.16xlarge.",
        ("resnet-legacy-2026-05-05-08-58-01-733", "ml.p3.16xlarge", 600,
            Shown(0, 180, 900, 9, 175, wobble=0.03, top=199)),
        # Sum 180, 14 GiB on each of two. Certain: p3.8xlarge, 8 devices into 4. Bold: the two into
        # one L40S (V100 -> L40S 0.51): g6e.4xlarge, 28 of 44.7 GiB, 9 of 16 cores.
        saves("ml.p3.16xlarge", "ml.p3.8xlarge", merged(180, 8, 4)),
        0.85,
        "ml.p3.8xlarge halves the bill for sure; six GPUs were never used.",
    ),
    few(
        "three-of-eight-a10g",
        "Three LoRA runs in parallel on three of eight A10G, five GPUs unused.",
        ("lora-sweep-2026-05-16-08-59-06-154", "ml.g5.48xlarge", 660,
            Shown(0, 267, 1400, 12, 249, wobble=0.03, top=299)),
        # Three processes, one to a GPU at 89 %, 83 % of the memory each. Certain: g5.12xlarge with
        # 8 into 4 (1.33); the story: 3 of 4 at the same time.
        saves("ml.g5.48xlarge", "ml.g5.12xlarge", merged(267, 8, 4)),
        saves("ml.g5.48xlarge", "ml.g5.2xlarge", 3 * 0.95),
        "Three processes fit on ml.g5.12xlarge at the same speed.",
    ),
    few(
        "one-of-four-at-80",
        "One A10G of a g5.12xlarge at 80 %, the other three at nothing.",
        ("asr-ctc-2026-05-08-08-58-33-902", "ml.g5.12xlarge", 540,
            Shown(0, 80, 310, 9, 62, wobble=0.05, top=99)),
        # Sum 80: one at 80 or four at 20. Into one A10G: 1 + 0.2 x 3 = 1.6; 14 GiB fit; 3.1 cores,
        # 17 GiB of host memory: g5.2xlarge (8 vCPU, 32 GiB) holds it.
        saves("ml.g5.12xlarge", "ml.g5.2xlarge", merged(80, 4, 1)),
        saves("ml.g5.12xlarge", "ml.g5.2xlarge", 1.0) + 0.04,
        "ml.g5.2xlarge holds it: surely two thirds saved, nearly four fifths if one was busy.",
    ),
    few(
        "one-of-four-at-95",
        "One A10G of a g5.12xlarge flat at 95 %, the others unused all twelve hours.",
        ("vits-tts-2026-05-10-08-59-27-365", "ml.g5.12xlarge", 720,
            Shown(0, 95, 260, 8, 71, wobble=0.012, top=99.2)),
        # Sum 95, flat: one device at its ceiling. g5.2xlarge at the same time.
        saves("ml.g5.12xlarge", "ml.g5.2xlarge", 1.0),
        saves("ml.g5.12xlarge", "ml.g5.xlarge", 1.0) + 0.02,
        "Flat at one device's ceiling: same speed on ml.g5.2xlarge at a fifth of the rate.",
    ),
    few(
        "tenth-of-eight-l4",
        "Eight L4 at a tenth each with a 2 GiB replica on every one.",
        ("tabular-tx-2026-05-18-08-58-19-246", "ml.g6.48xlarge", 510,
            Shown(0, 80, 700, 4, 72, wobble=0.10)),
        # Ten percent each, 2 GiB each: eight small replicas, 16 GiB in all. Into one L4:
        # 1 + 0.1 x 7; 7 cores and 31 GiB: g6.4xlarge (16 vCPU, 64 GiB).
        saves("ml.g6.48xlarge", "ml.g6.4xlarge", merged(80, 8, 1)),
        saves("ml.g6.48xlarge", "ml.g6.2xlarge", 1.0),
        "One L4 has time and memory for it; even at the slow end five sixths go.",
    ),
    few(
        "copies-of-20-gib-on-four",
        "Data-parallel copies of one 20 GiB model on four A10G at 24 % each.",
        ("yolo-ddp-2026-05-12-08-57-44-519", "ml.g5.12xlarge", 600,
            Shown(0, 96, 340, 10, 358, wobble=0.06)),
        # Four copies of 20 GiB at 24 %: one A10G has the time (1.72) and the memory of one copy.
        0.0,
        saves("ml.g5.12xlarge", "ml.g5.2xlarge", merged(96, 4, 1)) + 0.16,
        "The series cannot tell copies from shards; if copies, one GPU has the time.",
    ),
    few(
        "memory-bound-four-a10g",
        "A sharded mixture model: GPUs 15 % busy but 95 % full on all four.",
        ("mixtral-lora-2026-05-20-08-59-31-187", "ml.g5.12xlarge", 660,
            Shown(0, 60, 380, 46, 381, wobble=0.08)), 0.0,
        saves("ml.g5.12xlarge", "ml.g6.12xlarge", 1.0),
        "GPU memory is the binding side: no smaller host; only a trial on L4 x 4 is open.",
        (frozenset({"gpu-underused", "gpu-starved"}),), (*NOT, "some-gpus-unused"),
    ),
)  # fmt: skip
