"""Memory that runs out, and memory that is only full, minute by minute."""

from collections.abc import Callable

from sageaudit.structs import replace
from tests.labelled.machine import Doing
from tests.labelled.made_up_job import Plot
from tests.labelled.story import LONG_T4, story

T4_GIB = 15.8
"""How much of a T4's 16 GiB a process can use."""
STEP_MIN = 3
"""Memory use is constant for this long."""
OUT_OF_GPU_MEMORY = (
    'AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "torch.cuda.'
    'OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"'
)
KILLED = "AlgorithmError: , exit code: 137"
LIMIT_OF_A_DAY = {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}}


def on_a_t4(*doings: Doing) -> Plot:
    """Returns a run on one T4 that completes."""
    return Plot(instance="ml.g4dn.xlarge", hosts=(doings,), describe=LIMIT_OF_A_DAY)


def failed(plot: Plot, reason: str) -> Plot:
    """Returns the same run, failed at its end."""
    describe = {**plot.describe, "FailureReason": reason}
    return replace(plot, status="Failed", uploading_s=0, describe=describe)


def with_gpu_memory(minutes: int, gib_at: Callable[[int], float]) -> tuple[Doing, ...]:
    """Returns a busy T4 whose memory use is a function of the minute, within its limits."""
    return tuple(
        replace(LONG_T4, minutes=STEP_MIN, gpu_gib=(min(max(gib_at(minute), 0.2), T4_GIB),))
        for minute in range(0, minutes, STEP_MIN)
    )


def steady(gib: float) -> Callable[[int], float]:
    """Returns a constant amount of memory."""
    return lambda _: gib


def leak(base_gib: float, gib_per_hour: float) -> Callable[[int], float]:
    """Returns growing memory, as if a tensor is kept at every step."""
    return lambda minute: base_gib + gib_per_hour * minute / 60


def with_filling_host_memory(minutes: int) -> tuple[Doing, ...]:
    """Returns a loader that keeps all files in the host's 16 GiB until the kernel kills it."""
    return tuple(
        replace(LONG_T4, minutes=STEP_MIN, gib=min(4.0 + 11.6 * minute / minutes, 15.6))
        for minute in range(0, minutes, STEP_MIN)
    )


STORIES = (
    story(
        "all-of-the-memory-at-once",
        on_a_t4(*with_gpu_memory(minutes=300, gib_at=steady(14.9))),
    ),
    story(
        "a-leak-too-slow-to-matter",
        on_a_t4(*with_gpu_memory(minutes=480, gib_at=leak(base_gib=7.0, gib_per_hour=0.08))),
    ),
    story(
        "a-leak-to-the-end",
        failed(
            on_a_t4(*with_gpu_memory(minutes=420, gib_at=leak(base_gib=4.0, gib_per_hour=1.8))),
            reason=OUT_OF_GPU_MEMORY,
        ),
        must_find=("failed-spend",),
    ),
    story(
        "the-longest-batch-of-all",
        failed(
            on_a_t4(*with_gpu_memory(minutes=420, gib_at=steady(14.6))),
            reason=OUT_OF_GPU_MEMORY,
        ),
        must_find=("failed-spend",),
    ),
    story(
        "a-loader-that-keeps-every-file",
        failed(on_a_t4(*with_filling_host_memory(minutes=240)), reason=KILLED),
        must_find=("failed-spend",),
    ),
)
