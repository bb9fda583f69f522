"""Runs that failed, were stopped, met their limit or have not ended, with and without what a resume
would keep.
"""

from tests.labelled.expert import CKPT, GPU_OK, HUGGING, MOVE_OK, expert, job
from tests.labelled.machine import BUCKET, Phase, Shown

NOT = (*GPU_OK, *MOVE_OK, "spot-without-checkpoint", "warm-pool-idle", "trainium-candidate")
EARLY = ("gpu-idle", "gpu-underused", "some-gpus-unused", "idle-start", "gpu-too-big")
RUN_CKPT = {"CheckpointConfig": {"S3Uri": f"{BUCKET}/checkpoints/run"}}
UP = (Phase("Uploading", 40, "Uploading generated training model"),)
STOP = (Phase("Stopping", 110, "Stopping the training job"),)
ERROR = "AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "

SCENARIOS = (
    expert(
        "failed-late-with-checkpoints-g5-12xlarge",
        "A full disk ended nine hours of training; the last checkpoint is twenty minutes old.",
        job("pose-track-2026-05-04-20-30-11-052", "ml.g5.12xlarge", Shown(3, 0, 300, 12, 8),
            Shown(537, 360, 2300, 41, 340), last=UP, status="Failed", artifact=False, describe=CKPT,
            failure=ERROR + '"OSError: [Errno 28] No space left on device" at step 48210'),
        share=(0, 0.05),
        # low: the checkpoints may hold nearly all of it
        lost=(0, 1), together=(0, 1), must=("failed-spend",),
        must_not=(*NOT, "limit-hit", "gpu-too-big"),
        says="Up to all of it, if nobody resumes; with a resume only twenty minutes are lost.",
    ),
    expert(
        "failed-early-before-the-first-checkpoint-g6e-4xlarge",
        "A missing column ended the first epoch after 24 minutes; no checkpoint was due yet.",
        job("voice-clone-2026-05-05-10-05-47-913", "ml.g6e.4xlarge", Shown(2, 0, 150, 9, 3),
            Shown(22, 84, 800, 31, 70), last=UP, status="Failed", artifact=False, describe=CKPT,
            failure=ERROR + "\"KeyError: 'speaker_id'\""),
        share=(0, 0.2), lost=(0, 1), together=(0, 1), must=("failed-spend",),
        must_not=(*NOT, "limit-hit", "gpu-too-big"),
        says="$1.8 gone for a typo: run one batch of every split before the large run.",
    ),
    expert(
        "failed-late-without-checkpoints-p3-8xlarge",
        "The final evaluation met a NaN and took seven hours of training with it.",
        job("cloud-mask-2026-05-06-22-15-29-371", "ml.p3.8xlarge", Shown(3, 0, 280, 9, 6),
            Shown(417, 366, 1900, 37, 340), last=UP, status="Failed", artifact=False,
            failure=ERROR + '"ValueError: Input contains NaN" in evaluate.py line 88'),
        # high: bold people would also leave the V100; then less counts as lost
        share=(0, 0.5), lost=(0.5, 1), together=(0.94, 1), must=("failed-spend",),
        must_not=(*NOT, "limit-hit"),
        says="Everything lost: save the model before evaluating, and set checkpoints.",
    ),
    expert(
        "stopped-by-hand-with-model-g5-4xlarge",
        "Its author saw the loss flatten, stopped the run after five hours and took the model.",
        job("keyword-spot-2026-05-07-12-50-04-698", "ml.g5.4xlarge", Shown(2, 0, 180, 12, 3),
            Shown(310, 86, 900, 38, 74),
            last=(Phase("Stopping", 60, "Stopping the training job"),
                Phase("Uploading", 30, "Uploading generated training model")), status="Stopped",
            describe=CKPT),
        share=(0, 0.05), lost=(0, 0.02),
        must_not=(*NOT, "failed-spend", "limit-hit", "gpu-too-big", "max-runtime-loose"),
        says="Stopped on purpose, the model and the checkpoints are there; nothing to say.",
    ),
    expert(
        "limit-met-with-model-g5-2xlarge",
        "The twelve-hour limit cut a busy run; SIGTERM saved the model and it was uploaded.",
        job("slot-fill-2026-05-08-03-00-55-807", "ml.g5.2xlarge", Shown(2, 0, 150, 22, 3),
            Shown(714, 88, 490, 58, 79), down=200,
            last=(*STOP, Phase("Uploading", 30, "Uploading generated training model")),
            status="Stopped", ending="MaxRuntimeExceeded", max_runtime_h=12, describe=CKPT),
        share=(0, 0.08),
        # high: an unfinished model may be worth nothing
        lost=(0, 1), together=(0, 1), must=("limit-hit",),
        must_not=(*NOT, "max-runtime-loose", "gpu-too-big"),
        says="Cut short, yet kept: resume from the checkpoint with a higher limit.",
    ),
    expert(
        "limit-met-without-model-g6-12xlarge",
        "The eight-hour limit cut a busy run that saves only at its end.",
        job("river-flow-2026-05-09-14-20-38-246", "ml.g6.12xlarge", Shown(3, 0, 250, 10, 8),
            Shown(473, 356, 2500, 43, 330), down=230, last=STOP, status="Stopped",
            ending="MaxRuntimeExceeded", artifact=False, max_runtime_h=8),
        share=(0, 0.05), lost=(0.95, 1), together=(0.97, 1),
        must=(frozenset({"limit-hit", "failed-spend"}),),
        must_not=(*NOT, "max-runtime-loose", "gpu-too-big"),
        says="All eight hours are lost: a higher limit and checkpoints.",
    ),
    expert(
        "failed-after-three-minutes-g5-xlarge",
        "An import failed in the first minute: seven cents.",
        job("title-gen-2026-05-10-09-00-20-135", "ml.g5.xlarge", Shown(1, 0, 130, 18, 1), down=110,
            last=(Phase("Uploading", 8, "Uploading generated training model"),), status="Failed",
            artifact=False,
            failure=ERROR + "\"ModuleNotFoundError: No module named 'sentencepiece'\""),
        share=(0, 1), lost=(0, 1), together=(0, 1), judged="no",
        must_not=(*NOT, "failed-spend", "limit-hit", "gpu-too-big", "cheaper-type"),
        says="Seven cents and its author has seen the error: nobody wants a message.",
    ),
    expert(
        "failed-after-eleven-hours-no-artifact",
        "A 70B fine-tune ran out of GPU memory after eleven hours without one checkpoint.",
        job(
            "sft-70b-2026-05-05-18-00-28-903", "ml.p4d.24xlarge",
            Shown(4, 0, 260, 6, 8),
            Shown(636, 756, 1900, 34, 752),
            starting=220, down=270,
            last=(Phase("Uploading", 30, "Uploading generated training model"),), hosts=4,
            image=HUGGING, status="Failed", artifact=False,
            failure='AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage '
                '"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"',
        ),
        share=(0, 0.03), lost=(0.95, 1), together=(0.97, 1), must=("failed-spend",),
        must_not=(*EARLY, "limit-hit", "spot-without-checkpoint"),
        says="Everything is lost: checkpoint, and test the longest batch first.",
    ),
    expert(
        "failed-after-twelve-hours-with-checkpoints",
        "An internal error after twelve hours; checkpoints every half hour stand in S3.",
        job(
            "sd-xl-lora-2026-05-07-20-00-14-371", "ml.g5.48xlarge",
            Shown(4, 0, 600, 8, 8),
            Shown(696, 748, 11300, 36, 700),
            starting=220, down=270,
            last=(Phase("Uploading", 60, "Uploading generated training model"),), hosts=2,
            status="Failed", artifact=False, describe=RUN_CKPT,
            failure="InternalServerError: We encountered an internal error. Please try again.",
        ),
        share=(0, 0.05),
        # low: the checkpoints hold all but half an hour; high: nobody resumed, all gone
        lost=(0, 1), together=(0, 1), must=("failed-spend",),
        must_not=(*EARLY, "limit-hit", "spot-without-checkpoint"),
        says="Failed, but CheckpointConfig was set: resume from it; what is lost is not known.",
    ),
    expert(
        "max-runtime-exceeded-no-artifact",
        "A diffusion run was cut at the 24-hour limit and left neither model nor checkpoint.",
        job("diffusion-256-2026-05-10-00-00-39-266", "ml.p3.16xlarge", Shown(4, 0, 500, 8, 8),
            Shown(1432, 752, 2300, 40, 700), starting=220, down=270,
            last=(Phase("Stopping", 120, "Stopping the training job"),), hosts=2, status="Stopped",
            ending="MaxRuntimeExceeded", artifact=False, max_runtime_h=24),
        share=(0, 0.05), lost=(0.95, 1), together=(0.95, 1),
        must=(frozenset({"limit-hit", "failed-spend"}),),
        must_not=(*EARLY, "max-runtime-loose", "spot-without-checkpoint"),
        says="Twenty-four hours gave nothing: raise the limit and set checkpoints.",
    ),
    expert(
        "still-in-progress-p5", "Two p5 are six hours into a busy run that has not ended.",
        job("pretrain-1b-2026-05-20-02-00-05-822", "ml.p5.48xlarge", Shown(5, 0, 400, 4, 8),
            Shown(355, 760, 3100, 24, 690), starting=220, down=270, last=(), hosts=2,
            status="InProgress", artifact=False, max_runtime_h=48),
        judged="no", idle=None,
        must_not=(*EARLY, "idle-tail", "failed-spend", "limit-hit", "max-runtime-loose"),
        says="Not finished: no verdict yet, and its cost grows.",
    ),
)  # fmt: skip
