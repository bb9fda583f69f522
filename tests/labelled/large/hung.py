"""Runs that stood still: GPU at nothing and one core spinning (or, worse, a GPU that only seems
busy). A minute in which nothing worked is avoidable in full; low leaves 40 minutes for noticing.
"""

from .form import HUGGING, Expert, Job, Phase, Scenario, Topic, day, run_phases, same
from .load import Seg
from .machines import cents, usd

IDLE: tuple[Topic, ...] = (frozenset({"gpu-idle", "idle-tail", "gpu-starved"}),)
NOT = ("some-gpus-unused", "gpu-too-big", "download-dominates", "upload-dominates")

_START = Job(
    "moe-pretrain-2026-05-07-15-00-12-663",
    "ml.p4d.24xlarge",
    day(7, 15),
    (
        Phase("Starting", 210, "Preparing the instances for training"),
        Phase("Downloading", 260, "Downloading the training image"),
        Phase("Training", 540 * 60, "Training image download completed."),
        Phase("Stopping", 70, "Stopping the training job"),
    ),
    # rendezvous never completed: rank 0 polls on one core
    same(2, Seg(540, 0, 101, 3.2, 6, wobble=0.0)),
    status="Stopped",
    artifact=False,
    max_runtime_h=20,
)
_MIDDLE = Job(
    "pretrain-3b-2026-05-09-04-00-33-908",
    "ml.p5.48xlarge",
    day(9, 4),
    run_phases(780),
    # 4 hours of work, 5 hours at a dead file system mount, 4 hours of work
    same(
        2,
        Seg(5, 0, 400, 4, 8),
        Seg(235, 764, 2900, 24, 680),
        Seg(300, 0, 102, 24, 680),
        Seg(240, 764, 2900, 24, 680),
    ),
    describe={"CheckpointConfig": {"S3Uri": "s3://sagemaker-us-east-1-111122223333/ckpt/3b"}},
)
_END = Job(
    "segment-anything-2026-05-13-02-00-59-111",
    "ml.g5.48xlarge",
    day(13, 2),
    run_phases(430),
    # training done after 4 h 10; a data-loader worker never joined, for three hours
    same(1, Seg(3, 0, 800, 8, 8), Seg(247, 750, 11700, 37, 692), Seg(180, 0, 101, 30, 660)),
)
_SPIN = Job(
    "llama-13b-2026-05-16-00-00-27-440",
    "ml.p4de.24xlarge",
    day(16, 0),
    run_phases(720),
    # a lost peer: NCCL kernels spin at 100 % for five hours, eight cores poll, then a time-out
    same(
        2,
        Seg(5, 0, 300, 5, 8),
        Seg(220, 770, 2100, 30, 704),
        Seg(300, 800, 803, 30, 704, wobble=0.0),
        Seg(195, 770, 2100, 30, 704),
    ),
    image=HUGGING,
    describe={"CheckpointConfig": {"S3Uri": "s3://sagemaker-us-east-1-111122223333/ckpt/13b"}},
)

_SPIN_USD = usd("ml.p4de.24xlarge", 5, 2)
_MID_LOW, _MID_HIGH = usd("ml.p5.48xlarge", 4.3, 2), usd("ml.p5.48xlarge", 5.2, 2)
_END_LOW, _END_HIGH = usd("ml.g5.48xlarge", 2.4, 1), usd("ml.g5.48xlarge", 3.1, 1)

HUNG: tuple[Scenario, ...] = (
    _START.scenario(
        "hung-from-the-start-p4d",
        "Two p4d waited for a rendezvous for nine hours until somebody stopped the job.",
        Expert(
            "yes",
            _START.share(0, 1),
            _START.share(0, 1),
            _START.idle(),
            (frozenset({"gpu-idle", "failed-spend", "idle-start"}),),
            NOT,
            "No GPU worked for a second and there is no model: the whole bill is gone.",
            together_usd=_START.share(0.93, 1),
        ),
    ),
    _MIDDLE.scenario(
        "hung-in-the-middle-p5",
        "Two p5 stood still for five hours in the middle on a dead mount, then went on.",
        Expert(
            "yes",
            cents(_MID_LOW, _MID_HIGH),
            _MIDDLE.share(0, 0),
            _MIDDLE.idle(),
            IDLE,
            (*NOT, "failed-spend", "idle-start"),
            "Five hours of sixteen H100 at nothing: a watchdog on GPU use would save them.",
        ),
    ),
    _END.scenario(
        "hung-at-the-end-g5",
        "Training was over after four hours; the process did not exit for three more.",
        Expert(
            "yes",
            cents(_END_LOW, _END_HIGH),
            _END.share(0, 0),
            _END.idle(),
            (frozenset({"idle-tail", "gpu-idle"}),),
            (*NOT, "failed-spend", "idle-start"),
            "The last three hours did nothing: fix the exit (loader workers, destroy group).",
        ),
    ),
    _SPIN.scenario(
        "hung-but-gpu-at-100-p4de",
        "NCCL spun at 100 % GPU for five hours after a peer was lost; nothing was learnt.",
        Expert(
            "yes",
            cents(0, _SPIN_USD * 102 / 100),
            _SPIN.share(0, 0),
            (_SPIN.idle()[0], cents(0, 16 * 5 + 16)[1]),
            (),
            ("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "failed-spend"),
            "GPU 'use' counts spinning kernels: these metrics cannot show this waste.",
        ),
    ),
)
