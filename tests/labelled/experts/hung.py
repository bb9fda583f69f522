"""Runs that stood still: GPU at nothing and one core spinning (or, worse, a GPU that only seems
busy). A minute in which nothing worked is avoidable in full; low leaves 40 minutes for noticing.
"""

from tests.labelled.expert import HUGGING, between, cents, expert, job, usd
from tests.labelled.machine import Phase, Shown

IDLE = (frozenset({"gpu-idle", "idle-tail", "gpu-starved"}),)
NOT = ("some-gpus-unused", "gpu-too-big", "download-dominates", "upload-dominates")

_SPIN = job(
    # a lost peer: NCCL kernels spin at 100 % for five hours, eight cores poll, then a time-out
    "llama-13b-2026-05-16-00-00-27-440",
    "ml.p4de.24xlarge",
    Shown(5, 0, 300, 5, 8),
    Shown(220, 770, 2100, 30, 704),
    Shown(300, 800, 803, 30, 704, wobble=0.0),
    Shown(195, 770, 2100, 30, 704),
    hosts=2,
    image=HUGGING,
    describe={"CheckpointConfig": {"S3Uri": "s3://sagemaker-us-east-1-111122223333/ckpt/13b"}},
)
SCENARIOS = (
    expert(
        "hung-from-the-start-p4d",
        "Two p4d waited for a rendezvous for nine hours until somebody stopped the job.",
        job(
            # rendezvous never completed: rank 0 polls on one core
            "moe-pretrain-2026-05-07-15-00-12-663", "ml.p4d.24xlarge",
            Shown(540, 0, 101, 3.2, 6, wobble=0.0),
            phases=(Phase("Starting", 210, "Preparing the instances for training"),
                Phase("Downloading", 260, "Downloading the training image"),
                Phase("Training", 540 * 60, "Training image download completed."),
                Phase("Stopping", 70, "Stopping the training job")), hosts=2, status="Stopped",
            artifact=False, max_runtime_h=20,
        ),
        share=(0, 1), lost=(0, 1), together=(0.93, 1),
        must=(frozenset({"gpu-idle", "failed-spend", "idle-start"}),), must_not=NOT,
        says="No GPU worked for a second and there is no model: the whole bill is gone.",
    ),
    expert(
        "hung-in-the-middle-p5",
        "Two p5 stood still for five hours in the middle on a dead mount, then went on.",
        job(
            # 4 hours of work, 5 hours at a dead file system mount, 4 hours of work
            "pretrain-3b-2026-05-09-04-00-33-908", "ml.p5.48xlarge",
            Shown(5, 0, 400, 4, 8),
            Shown(235, 764, 2900, 24, 680),
            Shown(300, 0, 102, 24, 680),
            Shown(240, 764, 2900, 24, 680),
            hosts=2,
            describe={
                "CheckpointConfig": {"S3Uri": "s3://sagemaker-us-east-1-111122223333/ckpt/3b"}},
        ),
        wasted=cents(usd("ml.p5.48xlarge", 4.3, 2), usd("ml.p5.48xlarge", 5.2, 2)), must=IDLE,
        must_not=(*NOT, "failed-spend", "idle-start"),
        says="Five hours of sixteen H100 at nothing: a watchdog on GPU use would save them.",
    ),
    expert(
        "hung-at-the-end-g5",
        "Training was over after four hours; the process did not exit for three more.",
        job(
            # training done after 4 h 10; a data-loader worker never joined, for three hours
            "segment-anything-2026-05-13-02-00-59-111", "ml.g5.48xlarge",
            Shown(3, 0, 800, 8, 8),
            Shown(247, 750, 11700, 37, 692),
            Shown(180, 0, 101, 30, 660),
        ),
        wasted=cents(usd("ml.g5.48xlarge", 2.4), usd("ml.g5.48xlarge", 3.1)),
        must=(frozenset({"idle-tail", "gpu-idle"}),), must_not=(*NOT, "failed-spend", "idle-start"),
        says="The last three hours did nothing: fix the exit (loader workers, destroy group).",
    ),
    expert(
        "hung-but-gpu-at-100-p4de",
        "NCCL spun at 100 % GPU for five hours after a peer was lost; nothing was learnt.",
        _SPIN, wasted=between(usd("ml.p4de.24xlarge", 5, 2), 0, 1.02),
        idle=(_SPIN.idle()[0], cents(0, 16 * 5 + 16)[1]),
        must_not=("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "failed-spend"),
        says="GPU 'use' counts spinning kernels: these metrics cannot show this waste.",
    ),
)  # fmt: skip
