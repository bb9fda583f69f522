"""GPU memory that grows: towards its limit, never near it, or as the design has it."""

from sageaudit.structs import replace
from tests.labelled.expert import HUGGING, MOVE_OK, expert, healthy, job
from tests.labelled.machine import Phase, Shown

ALWAYS = ("idle-start", "idle-middle", "idle-tail", "some-gpus-unused", "gpu-idle", *MOVE_OK)
OOM = (
    'AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "'
    'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB"'
)
END = (Phase("Uploading", 25, "Uploading generated training model"),)


def ramp(base: Shown, steps: int, to: float) -> tuple[Shown, ...]:
    """The GPU memory of a stretch grows to a value in so many equal steps."""
    each = base.minutes // steps
    rise = (to - base.gmem) / max(1, steps - 1)
    return tuple(replace(base, minutes=each, gmem=base.gmem + rise * i) for i in range(steps))


SCENARIOS = (
    expert(
        "memory-leak-to-failure-g5-xlarge",
        "GPU memory grew by 10 % of the card an hour until an allocation failed after 5.7 hours.",
        job("dialog-rl-2026-05-04-16-40-52-407", "ml.g5.xlarge", Shown(2, 0, 120, 35, 3),
            *ramp(Shown(340, 81, 240, 58, 42), 34, 99.2), last=END, status="Failed", artifact=False,
            failure=OOM),
        share=(0, 0.05), lost=(0.95, 1), together=(0.97, 1),
        must=("failed-spend",),
        must_not=(*ALWAYS, "gpu-underused", "limit-hit", "gpu-too-big", "cheaper-type"),
        says="A leak that ends in failure: tensors are kept across steps; no checkpoint either.",
    ),
    healthy(
        "memory-slow-slope-p4d",
        "Eight A100 grow from 50 % to 53 % of their memory in thirty hours.",
        job("protein-lm-2026-05-13-00-30-16-991", "ml.p4d.24xlarge", Shown(4, 0, 300, 6, 8),
            *ramp(Shown(1800, 748, 2200, 27, 400), 40, 424), image=HUGGING, max_runtime_h=48),
        but=("gpu-too-big", "cheaper-type", "max-runtime-loose"),
        says="At this pace the memory would last for weeks; nothing to say.",
    ),
    healthy(
        "memory-allocator-plateau-g6e-2xlarge",
        "The caching allocator fills 86 % of the card in 24 minutes and stays there.",
        job("depth-maps-2026-05-14-09-45-01-568", "ml.g6e.2xlarge", Shown(2, 0, 120, 14, 2),
            *ramp(Shown(24, 84, 560, 41, 31), 8, 86), Shown(380, 88, 560, 41, 86)),
        high=0.08, but=("gpu-too-big", "trainium-candidate"),
        says="An allocator that keeps what it got is no leak; nothing to say.",
    ),
    healthy(
        "memory-steps-of-a-curriculum-g5-12xlarge",
        "Sequences get longer in three stages, memory goes 51, 66, 83 % and is flat in each.",
        job("summary-curric-2026-05-15-04-10-37-233", "ml.g5.12xlarge", Shown(3, 0, 300, 12, 8),
            Shown(150, 348, 1900, 37, 205), Shown(150, 356, 1900, 37, 264),
            Shown(150, 364, 1900, 37, 332), image=HUGGING),
        high=0.08, but=("gpu-too-big", "cheaper-type", "trainium-candidate"),
        says="Steps by design, flat between them; nothing to say.",
    ),
    expert(
        "memory-one-long-batch-g4dn-2xlarge",
        "Memory was flat at 91 %; after two hours one long batch did not fit and the job failed.",
        job(
            "faq-matcher-2026-05-15-12-30-58-449", "ml.g4dn.2xlarge",
            Shown(2, 0, 140, 24, 3),
            Shown(126, 83, 430, 49, 91),
            last=END, status="Failed", artifact=False,
            failure="AlgorithmError: RuntimeError: CUDA out of memory. Tried to allocate 3.66 GiB "
                "(GPU 0; 14.76 GiB total capacity; 12.91 GiB already allocated), exit code: 1",
        ),
        share=(0, 0.06), lost=(0.94, 1), together=(0.96, 1), must=("failed-spend",),
        must_not=(*ALWAYS, "gpu-underused", "limit-hit", "gpu-too-big", "cheaper-type"),
        says="Out of GPU memory by one batch: cap the length, or a smaller batch; save before.",
    ),
)  # fmt: skip
