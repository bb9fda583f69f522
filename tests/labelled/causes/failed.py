"""Runs that failed, were stopped or met their limit, with and without what a resume would keep."""

from .form import CKPT, GPU_OK, MOVE_OK, Phase, Scenario, Seg, day, make, verdict

NOT = (*GPU_OK, *MOVE_OK, "spot-without-checkpoint", "warm-pool-idle", "trainium-candidate")
UP = (Phase("Uploading", 40, "Uploading generated training model"),)
STOP = (Phase("Stopping", 110, "Stopping the training job"),)
ERROR = "AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "

_LATE = make(
    "pose-track-2026-05-04-20-30-11-052",
    "ml.g5.12xlarge",
    day(4, 20),
    Seg(3, 0, 300, 12, 8),
    Seg(537, 360, 2300, 41, 340),
    last=UP,
    status="Failed",
    artifact=False,
    describe=CKPT,
    failure=ERROR + '"OSError: [Errno 28] No space left on device" at step 48210',
)
_EARLY = make(
    "voice-clone-2026-05-05-10-05-47-913",
    "ml.g6e.4xlarge",
    day(5, 10),
    Seg(2, 0, 150, 9, 3),
    Seg(22, 84, 800, 31, 70),
    last=UP,
    status="Failed",
    artifact=False,
    describe=CKPT,
    failure=ERROR + "\"KeyError: 'speaker_id'\"",
)
_NONE = make(
    "cloud-mask-2026-05-06-22-15-29-371",
    "ml.p3.8xlarge",
    day(6, 22),
    Seg(3, 0, 280, 9, 6),
    Seg(417, 366, 1900, 37, 340),
    last=UP,
    status="Failed",
    artifact=False,
    failure=ERROR + '"ValueError: Input contains NaN" in evaluate.py line 88',
)
_BY_HAND = make(
    "keyword-spot-2026-05-07-12-50-04-698",
    "ml.g5.4xlarge",
    day(7, 12),
    Seg(2, 0, 180, 12, 3),
    Seg(310, 86, 900, 38, 74),
    last=(
        Phase("Stopping", 60, "Stopping the training job"),
        Phase("Uploading", 30, "Uploading generated training model"),
    ),
    status="Stopped",
    describe=CKPT,
)
_LIMIT_KEPT = make(
    "slot-fill-2026-05-08-03-00-55-807",
    "ml.g5.2xlarge",
    day(8, 3),
    Seg(2, 0, 150, 22, 3),
    Seg(714, 88, 490, 58, 79),
    down=200,
    last=(*STOP, Phase("Uploading", 30, "Uploading generated training model")),
    status="Stopped",
    ending="MaxRuntimeExceeded",
    max_runtime_h=12,
    describe=CKPT,
)
_LIMIT_GONE = make(
    "river-flow-2026-05-09-14-20-38-246",
    "ml.g6.12xlarge",
    day(9, 14),
    Seg(3, 0, 250, 10, 8),
    Seg(473, 356, 2500, 43, 330),
    down=230,
    last=STOP,
    status="Stopped",
    ending="MaxRuntimeExceeded",
    artifact=False,
    max_runtime_h=8,
)
_MINUTES = make(
    "title-gen-2026-05-10-09-00-20-135",
    "ml.g5.xlarge",
    day(10, 9),
    Seg(1, 0, 130, 18, 1),
    down=110,
    last=(Phase("Uploading", 8, "Uploading generated training model"),),
    status="Failed",
    artifact=False,
    failure=ERROR + "\"ModuleNotFoundError: No module named 'sentencepiece'\"",
)

FAILED: tuple[Scenario, ...] = (
    _LATE.scenario(
        "failed-late-with-checkpoints-g5-12xlarge",
        "A full disk ended nine hours of training; the last checkpoint is twenty minutes old.",
        verdict(
            _LATE,
            _LATE.share(0, 0.05),
            ("failed-spend",),
            (*NOT, "limit-hit", "gpu-too-big"),
            "Up to all of it, if nobody resumes; with a resume only twenty minutes are lost.",
            # low: the checkpoints may hold nearly all of it
            lost=_LATE.share(0, 1),
            together=_LATE.share(0, 1),
        ),
    ),
    _EARLY.scenario(
        "failed-early-before-the-first-checkpoint-g6e-4xlarge",
        "A missing column ended the first epoch after 24 minutes; no checkpoint was due yet.",
        verdict(
            _EARLY,
            _EARLY.share(0, 0.2),
            ("failed-spend",),
            (*NOT, "limit-hit", "gpu-too-big"),
            "$1.8 gone for a typo: run one batch of every split before the large run.",
            lost=_EARLY.share(0, 1),
            together=_EARLY.share(0, 1),
        ),
    ),
    _NONE.scenario(
        "failed-late-without-checkpoints-p3-8xlarge",
        "The final evaluation met a NaN and took seven hours of training with it.",
        verdict(
            _NONE,
            # high: bold people would also leave the V100; then less counts as lost
            _NONE.share(0, 0.5),
            ("failed-spend",),
            (*NOT, "limit-hit"),
            "Everything lost: save the model before evaluating, and set checkpoints.",
            lost=_NONE.share(0.5, 1),
            together=_NONE.share(0.94, 1),
        ),
    ),
    _BY_HAND.scenario(
        "stopped-by-hand-with-model-g5-4xlarge",
        "Its author saw the loss flatten, stopped the run after five hours and took the model.",
        verdict(
            _BY_HAND,
            _BY_HAND.share(0, 0.05),
            (),
            (*NOT, "failed-spend", "limit-hit", "gpu-too-big", "max-runtime-loose"),
            "Stopped on purpose, the model and the checkpoints are there; nothing to say.",
            lost=_BY_HAND.share(0, 0.02),
        ),
    ),
    _LIMIT_KEPT.scenario(
        "limit-met-with-model-g5-2xlarge",
        "The twelve-hour limit cut a busy run; SIGTERM saved the model and it was uploaded.",
        verdict(
            _LIMIT_KEPT,
            _LIMIT_KEPT.share(0, 0.08),
            ("limit-hit",),
            (*NOT, "max-runtime-loose", "gpu-too-big"),
            "Cut short, yet kept: resume from the checkpoint with a higher limit.",
            # high: an unfinished model may be worth nothing
            lost=_LIMIT_KEPT.share(0, 1),
            together=_LIMIT_KEPT.share(0, 1),
        ),
    ),
    _LIMIT_GONE.scenario(
        "limit-met-without-model-g6-12xlarge",
        "The eight-hour limit cut a busy run that saves only at its end.",
        verdict(
            _LIMIT_GONE,
            _LIMIT_GONE.share(0, 0.05),
            (frozenset({"limit-hit", "failed-spend"}),),
            (*NOT, "max-runtime-loose", "gpu-too-big"),
            "All eight hours are lost: a higher limit and checkpoints.",
            lost=_LIMIT_GONE.share(0.95, 1),
            together=_LIMIT_GONE.share(0.97, 1),
        ),
    ),
    _MINUTES.scenario(
        "failed-after-three-minutes-g5-xlarge",
        "An import failed in the first minute: seven cents.",
        verdict(
            _MINUTES,
            _MINUTES.share(0, 1),
            (),
            (*NOT, "failed-spend", "limit-hit", "gpu-too-big", "cheaper-type", "short-experiment"),
            "Seven cents and its author has seen the error: nobody wants a message.",
            lost=_MINUTES.share(0, 1),
            together=_MINUTES.share(0, 1),
            judged="no",
        ),
    ),
)
