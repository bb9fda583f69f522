"""Runs of one family in their order: the last one is judged."""

from datetime import timedelta

from sageaudit.structs import replace
from tests.labelled.machine import Doing, Plot, alike, channel
from tests.labelled.story import BUSY_A10G, falling, family


def _busy(minutes: int, gpus: int = 1) -> tuple[Doing, ...]:
    return (replace(BUSY_A10G, minutes=minutes, gpus=(0.92,) * gpus),)


USUAL = Plot("ml.g5.xlarge", alike(1, *_busy(100)))
CRASH = Plot(
    "ml.g5.xlarge",
    alike(1, *_busy(30)),
    status="Failed",
    uploading_s=0,
    failure="AlgorithmError: ExecuteUserScriptError: exit code: 1",
)
PINNED = replace(USUAL, channels=(channel(uri="s3://bucket/data/v=2026-04-30/"),))
ON_FOUR_HOSTS = replace(PINNED, hosts=alike(4, replace(BUSY_A10G, minutes=80, gpus=(0.6,))))
A_FEW_MINUTES = Doing(4, cores=5, gpus=(0.3,) * 4, gib=20, gpu_gib=(5.0,) * 4)


def _tries(count: int) -> list[Plot]:
    """Another learning rate each time, on all of the data; each learns all in its first tenth."""
    return [
        replace(
            USUAL,
            hosts=alike(1, *_busy(150)),
            hyperparameters={"lr": f'"{0.001 * (number + 1)}"'},
            curves={"validation:loss": falling(150, 138)},
        )
        for number in range(count)
    ]


def _short(gpu: float) -> Plot:
    """Ten minutes on one T4; what its GPU does is all that differs."""
    doing = Doing(10, cores=1.9, gpus=(gpu,), gib=5, gpu_gib=(13.0 if gpu > 0.5 else 1.5,))
    return Plot("ml.g4dn.xlarge", alike(1, doing))


STORIES = (
    family("twelve-learning-rates-on-all-of-the-data", _tries(12), "metric-plateau",
        every=timedelta(hours=5)),
    family("the-same-each-night", [USUAL] * 7),
    family("a-merge-that-doubled-the-night",
        [USUAL] * 7 + [replace(USUAL, hosts=alike(1, *_busy(230)))], "cost-regression"),
    family("a-retry-loop-overnight", [CRASH] * 6, "retry-storm", "failed-spend",
        every=timedelta(hours=1)),
    family("four-hosts-hardly-faster-than-one", [PINNED] * 3 + [ON_FOUR_HOSTS] * 3, "poor-scaling",
        either=("duplicate-run", "cost-regression", "gpu-underused")),
    family("one-bad-night", [USUAL] * 5 + [CRASH], "failed-spend"),
    family("the-same-run-twice", [PINNED] * 2, "duplicate-run"),
    family("debugging-on-a-dear-machine", [Plot("ml.g5.12xlarge", alike(1, A_FEW_MINUTES))] * 10,
        either=("image-pull-heavy",), every=timedelta(minutes=40)),
    family("ten-minute-runs-that-leave-the-gpu-alone", [_short(gpu=0.0)] * 6, "gpu-idle",
        either=("cpu-bottleneck",)),
    family("ten-minute-runs-that-hardly-use-the-gpu", [_short(gpu=0.06)] * 6, "gpu-underused",
        either=("cpu-bottleneck",)),
    family("ten-minute-runs-that-work", [_short(gpu=0.93)] * 6),
    family("one-ten-minute-run-that-works-after-five-that-do-not",
        [_short(gpu=0.0)] * 5 + [_short(gpu=0.93)]),
)  # fmt: skip
