"""Data, images and models on their way, while machines are paid. Low is nothing throughout: the
metrics do not say how much of a phase had to be.
"""

from tests.labelled.expert import CKPT, DATA, GPU_OK, HUGGING, LOSS_OK, cents, expert, job, usd
from tests.labelled.machine import Shown

NOT = (*GPU_OK, *LOSS_OK, "gpu-too-big", "trainium-candidate")


SCENARIOS = (
    expert(
        "download-40-minutes-of-60-hours-p4d",
        "Eight A100 wait forty minutes for a copy of the data, then train for sixty hours.",
        job("world-model-2026-05-18-06-00-13-742", "ml.p4d.24xlarge", Shown(5, 0, 300, 6, 8),
            Shown(3555, 756, 2400, 30, 710), down=2400, pulls=DATA, mode="File", max_runtime_h=72,
            describe=CKPT),
        wasted=cents(0, usd("ml.p4d.24xlarge", 0.75) + 10),
        must=("download-dominates",),
        must_not=(*NOT, "upload-dominates", "image-pull-heavy", "cheaper-type"),
        says="One percent of the run is $17 each time: stream it (FastFile, FSx).",
    ),
    expert(
        "download-20-of-30-minutes-g4dn-xlarge",
        "A demo copies its data for twenty minutes and trains for nine: forty cents in all.",
        job("leaf-demo-2026-05-04-10-20-06-519", "ml.g4dn.xlarge", Shown(9, 81, 260, 50, 66),
            down=1200, up=20, pulls=DATA, mode="File"),
        share=(0, 0.72),
        # nine minutes of GPU are too few for more than the phases
        judged="partly", must_not=(*NOT, "upload-dominates", "image-pull-heavy", "cheaper-type"),
        says="Two thirds are waiting, but it is a quarter of a dollar: at most a note.",
    ),
    expert(
        "already-fast-file-yet-starved-g5-2xlarge",
        "FastFile over two million small images: the GPU gets its batches in gusts, 37 % busy.",
        job("street-view-2026-05-05-16-35-31-287", "ml.g5.2xlarge", Shown(3, 0, 130, 20, 3),
            *(Shown(3, 66, 330, 52, 68), Shown(4, 15, 150, 52, 68)) * 50, down=150),
        # high: shards (WebDataset, Parquet) keep the GPU at 90 %
        share=(0, 0.62), must=(frozenset({"gpu-starved", "gpu-underused"}),),
        must_not=(*LOSS_OK, "download-dominates", "replicated-input", "gpu-idle", "cpu-bottleneck"),
        says="Streaming is on already: pack the small files into shards.",
    ),
    expert(
        "image-pull-14-minutes-g5-xlarge",
        "A 38 GB image of the company's own takes fourteen minutes to pull for 25 of work.",
        job("sim-render-2026-05-06-11-00-39-460", "ml.g5.xlarge", Shown(1, 0, 110, 28, 3),
            Shown(24, 84, 250, 58, 72), down=840, up=20, mode="File",
            image="111122223333.dkr.ecr.us-east-1.amazonaws.com/sim-all-in-one:2026-04"),
        share=(0, 0.36), must=("image-pull-heavy",),
        must_not=(*NOT, "download-dominates", "replicated-input", "upload-dominates"),
        says="The image, not the data: cut it down. FastFile would change nothing.",
    ),
    expert(
        "upload-of-one-40-gb-model-g5-12xlarge",
        "Gzip of one 40 GB model holds four A10G for 35 minutes after three hours.",
        job("instruct-20b-2026-05-07-08-15-54-033", "ml.g5.12xlarge", Shown(4, 0, 280, 13, 8),
            Shown(176, 362, 1200, 44, 350), up=2100, image=HUGGING),
        wasted=cents(0, usd("ml.g5.12xlarge", 2100 / 3600 + 0.15)), must=("upload-dominates",),
        must_not=(*NOT, "download-dominates", "image-pull-heavy"),
        says="Turn compression off (OutputDataConfig NONE); checkpoints would not help.",
    ),
    expert(
        "upload-of-sixty-checkpoints-g6e-4xlarge",
        "Sixty checkpoints lie in the model folder and are packed and sent for fifty minutes.",
        job("style-lora-2026-05-08-15-45-22-814", "ml.g6e.4xlarge", Shown(2, 0, 160, 10, 3),
            Shown(208, 89, 760, 37, 80), up=3000),
        wasted=cents(0, usd("ml.g6e.4xlarge", 3000 / 3600 + 0.15)), must=("upload-dominates",),
        must_not=(*NOT, "download-dominates", "image-pull-heavy"),
        says="Write checkpoints to the checkpoint path; hand over the best one.",
    ),
)  # fmt: skip
