"""Memory that runs out, and memory that is only full: told by what each minute needs."""

from collections.abc import Callable
from typing import Any

from sageaudit.structs import replace
from tests.labelled.machine import Doing, Plot
from tests.labelled.story import LONG_T4, Story, story

T4_GIB = 15.8
"""What a process can get of a T4's 16 GiB."""
_EACH_MIN = 3
_DAY = {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}}
_FAILED: dict[str, Any] = {"status": "Failed", "uploading_s": 0}
CUDA = 'AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage "torch.cuda.'
CUDA += 'OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"'
KILLED = "AlgorithmError: , exit code: 137"


def doings(minutes: int, gpu_gib: Callable[[int], float], **more: Any) -> tuple[Doing, ...]:
    """A busy T4 whose memory follows a function of the minute, within what the device has."""
    return tuple(
        replace(
            LONG_T4, minutes=_EACH_MIN, gpu_gib=(min(max(gpu_gib(minute), 0.2), T4_GIB),), **more
        )
        for minute in range(0, minutes, _EACH_MIN)
    )


def run(
    name: str, minutes: int, gpu_gib: Callable[[int], float], *wasteful: str, **plot: Any
) -> Story:
    """A run on one T4."""
    return story(
        name,
        Plot("ml.g4dn.xlarge", (doings(minutes, gpu_gib),), **{"describe": _DAY, **plot}),
        *wasteful,
    )


def leak(gib_an_hour: float, base_gib: float = 4.0) -> Callable[[int], float]:
    """A tensor kept alive at every step."""
    return lambda minute: base_gib + gib_an_hour * minute / 60


def starved(minutes: int) -> tuple[Doing, ...]:
    """A loader that keeps every file it read in the host's 16 GiB until the kernel kills it."""
    return tuple(
        replace(LONG_T4, minutes=_EACH_MIN, gib=min(4.0 + 11.6 * minute / minutes, 15.6))
        for minute in range(0, minutes, _EACH_MIN)
    )


STORIES = (
    run("all-of-the-memory-at-once", 300, lambda _: 14.9),
    run("a-leak-too-slow-to-matter", 480, leak(0.08, 7.0)),
    run("a-leak-to-the-end", 420, leak(1.8), "failed-spend",
        **_FAILED | {"describe": _DAY | {"FailureReason": CUDA}}),
    run("the-longest-batch-of-all", 420, lambda _: 14.6, "failed-spend",
        **_FAILED | {"describe": _DAY | {"FailureReason": CUDA}}),
    story("a-loader-that-keeps-every-file",
        Plot("ml.g4dn.xlarge", (starved(240),), **_FAILED,
            describe=_DAY | {"FailureReason": KILLED}), "failed-spend"),
)  # fmt: skip
