"""Memory that grows, that only seems to, and that runs out: told by what the allocator does.

A device has so many GiB. A caching allocator keeps what it once asked for; a batch asks for what
its longest sequence needs; a leak keeps a little of every step. Each minute's memory follows from
these, and the truth from whether the device would be full while the job may run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

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


def cache(full_gib: float, tau_min: float, base_gib: float = 3.0) -> Callable[[int], float]:
    """An allocator that fills up to a level and stays there."""
    return lambda minute: base_gib + (full_gib - base_gib) * (1 - math.exp(-minute / tau_min))


def longest_so_far(seed: int) -> Callable[[int], float]:
    """What the longest batch until then needed: lengths are drawn alike all the time."""
    dice = random.Random(seed)
    lengths = [dice.lognormvariate(0, 0.35) for _ in range(1000)]
    return lambda minute: 3.0 + 2.5 * max(lengths[: 1 + minute // 4])


def leak(gib_an_hour: float, base_gib: float = 4.0) -> Callable[[int], float]:
    """A tensor kept alive at every step."""
    return lambda minute: base_gib + gib_an_hour * minute / 60


def each_epoch(gib: float, epoch_min: int, base_gib: float = 4.0) -> Callable[[int], float]:
    """A list of predictions kept alive after every epoch."""
    return lambda minute: base_gib + gib * (minute // epoch_min)


def planned(*gib: float, minutes: int) -> Callable[[int], float]:
    """A plan of equal parts: longer sequences in each."""
    return lambda minute: gib[min(minute * len(gib) // minutes, len(gib) - 1)]


def evaluated(minute: int) -> float:
    """Every hour five minutes of evaluation with larger batches, given back after it."""
    return 11.0 if minute % 60 < 5 and minute >= 60 else 7.0


def starved(minutes: int) -> tuple[Doing, ...]:
    """A loader that keeps every file it read in the host's 16 GiB until the kernel kills it."""
    return tuple(
        replace(LONG_T4, minutes=_EACH_MIN, gib=min(4.0 + 11.6 * minute / minutes, 15.6))
        for minute in range(0, minutes, _EACH_MIN)
    )


STORIES = (
    run("an-allocator-fills-its-cache", 300, cache(13.0, 25)),
    run("an-allocator-fills-it-slowly", 360, cache(15.0, 75)),
    run("all-of-the-memory-at-once", 300, lambda _: 14.9),
    run("longer-batches-by-chance", 420, longest_so_far(1)),
    run("longer-batches-by-chance-again", 420, longest_so_far(8)),
    run("twice-the-length-twice", 360, planned(3.5, 6.5, 13.0, minutes=360)),
    run("evaluation-takes-and-gives", 420, evaluated),
    run("a-leak-too-slow-to-matter", 480, leak(0.08, 7.0)),
    run("a-leak-that-the-limit-outruns", 360, leak(0.45),
        describe={"StoppingCondition": {"MaxRuntimeInSeconds": 9 * 3600}}),
    run("a-tensor-of-every-step", 360, leak(1.3), "gpu-memory-growth"),
    run("a-list-of-every-epoch", 420, each_epoch(0.5, 24), "gpu-memory-growth"),
    run("a-leak-to-the-end", 420, leak(1.8), "gpu-memory-growth", "failed-spend",
        **_FAILED | {"describe": _DAY | {"FailureReason": CUDA}}),
    run("the-longest-batch-of-all", 420, lambda _: 14.6, "failed-spend",
        **_FAILED | {"describe": _DAY | {"FailureReason": CUDA}}),
    story("a-loader-that-keeps-every-file",
        Plot("ml.g4dn.xlarge", (starved(240),), **_FAILED,
            describe=_DAY | {"FailureReason": KILLED}), "failed-spend"),
)  # fmt: skip
