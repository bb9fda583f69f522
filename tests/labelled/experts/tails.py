"""Runs whose GPU stands still at the end: hung, honest, or slow to hand over.

Hung with one core: every minute is avoidable, low leaves a fifth for noticing. All cores busy: the
metrics cannot tell polling from work, so low is nothing.
"""

from tests.labelled.expert import (
    CKPT,
    GPU_OK,
    HUGGING,
    LOSS_OK,
    between,
    cents,
    expert,
    healthy,
    job,
    usd,
)
from tests.labelled.machine import Shown

NOT = ("idle-start", "idle-middle", "gpu-too-big", "some-gpus-unused")
END = frozenset({"idle-tail", "gpu-idle"})

SCENARIOS = (
    expert(
        "end-hung-one-core-g5-2xlarge",
        "Training ended after four hours; the process spun one core for two and a half more.",
        job("price-forecast-2026-05-05-07-12-41-118", "ml.g5.2xlarge", Shown(3, 0, 180, 20, 3),
            Shown(247, 82, 320, 58, 71), Shown(150, 0, 100.6, 55, 71, wobble=0.0)),
        wasted=between(usd("ml.g5.2xlarge", 2.5), 0.8, 1.06), must=("idle-tail",),
        must_not=(*NOT, *LOSS_OK, "cpu-bottleneck", "serial-code", "download-dominates"),
        says="The tail did nothing: a spinning core is no work. Fix the exit, set a lower limit.",
    ),
    expert(
        "end-hung-at-a-barrier-p5en",
        "Two p5en stood at a barrier for over two hours after the last checkpoint.",
        job(
            # rank 0 wrote its last checkpoint; the others wait at a barrier that nobody leaves
            "moe-align-2026-05-09-00-10-43-628", "ml.p5en.48xlarge",
            Shown(6, 0, 420, 4, 8),
            Shown(474, 764, 3100, 22, 700),
            Shown(130, 0, 101, 22, 700, wobble=0.0),
            hosts=2, image=HUGGING, describe=CKPT,
        ),
        wasted=between(usd("ml.p5en.48xlarge", 130 / 60, 2), 0.75, 1.04), must=("idle-tail",),
        must_not=(*NOT, *LOSS_OK, "cpu-bottleneck", "serial-code", "uneven-hosts", "cheaper-type"),
        says="$300 of a barrier: a time-out on the process group, and an alarm on idle GPUs.",
    ),
    expert(
        "end-hung-all-cores-polling-g5-12xlarge",
        "48 loader workers polled an empty queue for 200 minutes after the last step.",
        job("tile-segment-2026-05-06-19-40-03-552", "ml.g5.12xlarge", Shown(4, 0, 300, 14, 8),
            Shown(296, 352, 2600, 41, 300), Shown(200, 0, 4790, 40, 290)),
        # low: by the metrics this could be honest CPU work
        wasted=between(usd("ml.g5.12xlarge", 200 / 60), 0, 1.05), must=(END | {"gpu-starved"},),
        must_not=(*NOT, *LOSS_OK, "cpu-underused", "download-dominates", "upload-dominates"),
        says="Four A10G stood still for 200 minutes with all cores busy: ask what ran there.",
    ),
    expert(
        "end-evaluation-on-cpu-g6-4xlarge",
        "Fifty minutes of honest evaluation on fourteen cores end a seven-hour run.",
        job("ranker-listwise-2026-05-07-05-20-27-906", "ml.g6.4xlarge", Shown(3, 0, 250, 18, 4),
            Shown(397, 86, 1010, 52, 77), Shown(50, 0, 1420, 66, 77), up=60),
        # high: the same minutes on a c7i.4xlarge, and the head and the upload wished away
        share=(0, 0.08),
        must_not=tuple(topic for topic in (*GPU_OK, *LOSS_OK) if topic != "idle-tail"),
        says="Honest work; as a job of its own on a CPU machine it would save some 60 cents.",
    ),
    expert(
        "end-script-uploads-g6e-12xlarge",
        "The script itself copied 900 GB of embeddings to S3 for seventy minutes at the end.",
        job("caption-large-2026-05-08-02-01-56-240", "ml.g6e.12xlarge", Shown(4, 0, 300, 8, 6),
            Shown(206, 358, 1900, 33, 330), Shown(70, 0, 262, 31, 330), image=HUGGING),
        # low: the bytes must travel some time; high: all of it while the GPUs still worked
        wasted=cents(0, float(usd("ml.g6e.12xlarge", 70 / 60)) * 1.08 + 1),
        must=(END | {"upload-dominates", "gpu-starved"},),
        must_not=(*NOT, *LOSS_OK, "cpu-bottleneck", "download-dominates"),
        says="Seventy minutes of four L40S waiting for a copy: upload shards while training.",
    ),
    healthy(
        "end-nine-minutes-g5-xlarge",
        "A three-hour run writes its metrics and saves for nine minutes, then ends.",
        job("speech-tags-2026-05-08-11-25-19-073", "ml.g5.xlarge", Shown(2, 0, 110, 30, 3),
            Shown(170, 84, 230, 61, 74), Shown(9, 0, 190, 62, 74)),
        high=0.1, but=("gpu-too-big", "serial-code"),
        says="Saving takes its minutes; nothing to say.",
    ),
)  # fmt: skip
