"""GPU memory that grows: towards its limit, never near it, or as the design has it."""

from .form import HUGGING, MOVE_OK, Phase, Scenario, Seg, day, healthy, make, ramp, verdict

ALWAYS = ("idle-start", "idle-middle", "idle-tail", "some-gpus-unused", "gpu-idle", *MOVE_OK)
OOM = (
    'AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "'
    'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB"'
)
END = (Phase("Uploading", 25, "Uploading generated training model"),)

_LEAK = make(
    "dialog-rl-2026-05-04-16-40-52-407",
    "ml.g5.xlarge",
    day(4, 16),
    Seg(2, 0, 120, 35, 3),
    *ramp(Seg(340, 81, 240, 58, 42), 34, 99.2),
    last=END,
    status="Failed",
    artifact=False,
    failure=OOM,
)
_SLOPE = make(
    "protein-lm-2026-05-13-00-30-16-991",
    "ml.p4d.24xlarge",
    day(13, 0),
    Seg(4, 0, 300, 6, 8),
    *ramp(Seg(1800, 748, 2200, 27, 400), 40, 424),
    image=HUGGING,
    max_runtime_h=48,
)
_PLATEAU = make(
    "depth-maps-2026-05-14-09-45-01-568",
    "ml.g6e.2xlarge",
    day(14, 9),
    Seg(2, 0, 120, 14, 2),
    *ramp(Seg(24, 84, 560, 41, 31), 8, 86),
    Seg(380, 88, 560, 41, 86),
)
_STEPS = make(
    "summary-curric-2026-05-15-04-10-37-233",
    "ml.g5.12xlarge",
    day(15, 4),
    Seg(3, 0, 300, 12, 8),
    Seg(150, 348, 1900, 37, 205),
    Seg(150, 356, 1900, 37, 264),
    Seg(150, 364, 1900, 37, 332),
    image=HUGGING,
)
_SUDDEN = make(
    "faq-matcher-2026-05-15-12-30-58-449",
    "ml.g4dn.2xlarge",
    day(15, 12),
    Seg(2, 0, 140, 24, 3),
    Seg(126, 83, 430, 49, 91),
    last=END,
    status="Failed",
    artifact=False,
    failure="AlgorithmError: RuntimeError: CUDA out of memory. Tried to allocate 3.66 GiB "
    "(GPU 0; 14.76 GiB total capacity; 12.91 GiB already allocated), exit code: 1",
)

MEMORY: tuple[Scenario, ...] = (
    _LEAK.scenario(
        "memory-leak-to-failure-g5-xlarge",
        "GPU memory grew by 10 % of the card an hour until an allocation failed after 5.7 hours.",
        verdict(
            _LEAK,
            _LEAK.share(0, 0.05),
            ("failed-spend", "gpu-memory-growth"),
            (*ALWAYS, "gpu-underused", "limit-hit", "gpu-too-big", "cheaper-type"),
            "A leak that ends in failure: tensors are kept across steps; no checkpoint either.",
            lost=_LEAK.share(0.95, 1),
            together=_LEAK.share(0.97, 1),
        ),
    ),
    healthy(
        _SLOPE,
        "memory-slow-slope-p4d",
        "Eight A100 grow from 50 % to 53 % of their memory in thirty hours.",
        "At this pace the memory would last for weeks; nothing to say.",
        but=("gpu-too-big", "cheaper-type", "max-runtime-loose"),
    ),
    healthy(
        _PLATEAU,
        "memory-allocator-plateau-g6e-2xlarge",
        "The caching allocator fills 86 % of the card in 24 minutes and stays there.",
        "An allocator that keeps what it got is no leak; nothing to say.",
        high=0.08,
        but=("gpu-too-big", "trainium-candidate"),
    ),
    healthy(
        _STEPS,
        "memory-steps-of-a-curriculum-g5-12xlarge",
        "Sequences get longer in three stages, memory goes 51, 66, 83 % and is flat in each.",
        "Steps by design, flat between them; nothing to say.",
        high=0.08,
        but=("gpu-too-big", "cheaper-type", "trainium-candidate"),
    ),
    _SUDDEN.scenario(
        "memory-one-long-batch-g4dn-2xlarge",
        "Memory was flat at 91 %; after two hours one long batch did not fit and the job failed.",
        verdict(
            _SUDDEN,
            _SUDDEN.share(0, 0.06),
            ("failed-spend",),
            (*ALWAYS, "gpu-underused", "limit-hit", "gpu-too-big", "cheaper-type"),
            "Out of GPU memory by one batch: cap the length, or a smaller batch; save before.",
            lost=_SUDDEN.share(0.94, 1),
            together=_SUDDEN.share(0.96, 1),
        ),
    ),
)
