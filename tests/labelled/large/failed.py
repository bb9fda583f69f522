"""Runs that gave nothing, gave something, or have not ended."""

from .form import HUGGING, Expert, Job, Phase, Scenario, day, same
from .load import Seg
from .machines import NOTHING

CKPT = {"S3Uri": "s3://sagemaker-us-east-1-111122223333/checkpoints/run"}
NOT = ("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "gpu-too-big")


def phases(minutes: int, *tail: Phase) -> tuple[Phase, ...]:
    """Start and training, then how it ended."""
    return (
        Phase("Starting", 220, "Preparing the instances for training"),
        Phase("Downloading", 270, "Downloading the training image"),
        Phase("Training", minutes * 60, "Training image download completed."),
        *tail,
    )


_OOM = Job(
    "sft-70b-2026-05-05-18-00-28-903",
    "ml.p4d.24xlarge",
    day(5, 18),
    phases(640, Phase("Uploading", 30, "Uploading generated training model")),
    same(4, Seg(4, 0, 260, 6, 8), Seg(636, 756, 1900, 34, 752)),
    image=HUGGING,
    status="Failed",
    artifact=False,
    failure="AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "
    '"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"',
)
_SAVED = Job(
    "sd-xl-lora-2026-05-07-20-00-14-371",
    "ml.g5.48xlarge",
    day(7, 20),
    phases(700, Phase("Uploading", 60, "Uploading generated training model")),
    same(2, Seg(4, 0, 600, 8, 8), Seg(696, 748, 11300, 36, 700)),
    status="Failed",
    artifact=False,
    describe={"CheckpointConfig": CKPT},
    failure="InternalServerError: We encountered an internal error. Please try again.",
)
_LIMIT = Job(
    "diffusion-256-2026-05-10-00-00-39-266",
    "ml.p3.16xlarge",
    day(10, 0),
    phases(1436, Phase("Stopping", 120, "Stopping the training job")),
    same(2, Seg(4, 0, 500, 8, 8), Seg(1432, 752, 2300, 40, 700)),
    status="Stopped",
    ending="MaxRuntimeExceeded",
    artifact=False,
    max_runtime_h=24,
)
_RUNNING = Job(
    "pretrain-1b-2026-05-20-02-00-05-822",
    "ml.p5.48xlarge",
    day(20, 2),
    phases(360),
    same(2, Seg(5, 0, 400, 4, 8), Seg(355, 760, 3100, 24, 690)),
    status="InProgress",
    artifact=False,
    max_runtime_h=48,
)

FAILED: tuple[Scenario, ...] = (
    _OOM.scenario(
        "failed-after-eleven-hours-no-artifact",
        "A 70B fine-tune ran out of GPU memory after eleven hours without one checkpoint.",
        Expert(
            "yes",
            _OOM.share(0, 0.03),
            _OOM.share(0.95, 1),
            _OOM.idle(),
            ("failed-spend",),
            (*NOT, "limit-hit", "spot-without-checkpoint"),
            "Everything is lost: checkpoint, and test the longest batch first.",
            together_usd=_OOM.share(0.97, 1),
        ),
    ),
    _SAVED.scenario(
        "failed-after-twelve-hours-with-checkpoints",
        "An internal error after twelve hours; checkpoints every half hour stand in S3.",
        Expert(
            "yes",
            _SAVED.share(0, 0.05),
            # low: the checkpoints hold all but half an hour; high: nobody resumed, all gone
            _SAVED.share(0, 1),
            _SAVED.idle(),
            ("failed-spend",),
            (*NOT, "limit-hit", "spot-without-checkpoint"),
            "Failed, but CheckpointConfig was set: resume from it; what is lost is not known.",
            together_usd=_SAVED.share(0, 1),
        ),
    ),
    _LIMIT.scenario(
        "max-runtime-exceeded-no-artifact",
        "A diffusion run was cut at the 24-hour limit and left neither model nor checkpoint.",
        Expert(
            "yes",
            _LIMIT.share(0, 0.05),
            _LIMIT.share(0.95, 1),
            _LIMIT.idle(),
            (frozenset({"limit-hit", "failed-spend"}),),
            (*NOT, "max-runtime-loose", "spot-without-checkpoint"),
            "Twenty-four hours gave nothing: raise the limit and set checkpoints.",
            together_usd=_LIMIT.share(0.95, 1),
        ),
    ),
    _RUNNING.scenario(
        "still-in-progress-p5",
        "Two p5 are six hours into a busy run that has not ended.",
        Expert(
            "no",
            None,
            NOTHING,
            None,
            (),
            (*NOT, "idle-tail", "failed-spend", "limit-hit", "max-runtime-loose"),
            "Not finished: no verdict yet, and its cost grows.",
        ),
    ),
)
