"""Runs of one family in their order: the last one is judged."""

from datetime import timedelta

from sageaudit.structs import replace
from tests.labelled.machine import Doing, identical_hosts, one_host
from tests.labelled.made_up_job import Plot, channel
from tests.labelled.story import BUSY_A10G, falling_loss, family


def _busy(minutes: int) -> Doing:
    return replace(BUSY_A10G, minutes=minutes)


USUAL = Plot(instance="ml.g5.xlarge", hosts=one_host(_busy(minutes=100)))
CRASH = Plot(
    instance="ml.g5.xlarge",
    hosts=one_host(_busy(minutes=30)),
    status="Failed",
    uploading_s=0,
    failure="AlgorithmError: ExecuteUserScriptError: exit code: 1",
)
PINNED = replace(USUAL, channels=(channel(uri="s3://bucket/data/v=2026-04-30/"),))
ON_FOUR_HOSTS = replace(
    PINNED, hosts=identical_hosts(4, replace(BUSY_A10G, minutes=80, gpus=(0.6,)))
)
FOUR_MINUTES_ON_FOUR_GPUS = Doing(minutes=4, cores=5, gpus=(0.3,) * 4, gib=20, gpu_gib=(5.0,) * 4)


def _tries(count: int) -> list[Plot]:
    """Returns runs with different learning rates; each learns all in its first tenth."""
    return [
        replace(
            USUAL,
            hosts=one_host(_busy(minutes=150)),
            hyperparameters={"lr": f'"{0.001 * (number + 1)}"'},
            curves={"validation:loss": falling_loss(points=150, still=138)},
        )
        for number in range(count)
    ]


def _ten_minutes(gpu: float, gpu_gib: float = 1.5) -> Plot:
    """Returns ten minutes on one T4; only the GPU's use differs."""
    doing = Doing(minutes=10, cores=1.9, gpus=(gpu,), gib=5, gpu_gib=(gpu_gib,))
    return Plot(instance="ml.g4dn.xlarge", hosts=one_host(doing))


WITHOUT_GPU = _ten_minutes(gpu=0.0)
WITH_LITTLE_GPU = _ten_minutes(gpu=0.06)
WITH_BUSY_GPU = _ten_minutes(gpu=0.93, gpu_gib=13.0)


STORIES = (
    family(
        "twelve-learning-rates-on-all-of-the-data",
        _tries(count=12),
        must_find=("metric-plateau",),
        every=timedelta(hours=5),
    ),
    family("the-same-each-night", [USUAL] * 7),
    family(
        "a-merge-that-doubled-the-night",
        [USUAL] * 7 + [replace(USUAL, hosts=one_host(_busy(minutes=230)))],
        must_find=("cost-regression",),
    ),
    family(
        "a-retry-loop-overnight",
        [CRASH] * 6,
        must_find=("retry-storm", "failed-spend"),
        every=timedelta(hours=1),
    ),
    family(
        "four-hosts-hardly-faster-than-one",
        [PINNED] * 3 + [ON_FOUR_HOSTS] * 3,
        must_find=("poor-scaling",),
        may_find=("duplicate-run", "cost-regression", "gpu-underused"),
    ),
    family("one-bad-night", [USUAL] * 5 + [CRASH], must_find=("failed-spend",)),
    family("the-same-run-twice", [PINNED] * 2, must_find=("duplicate-run",)),
    family(
        "debugging-on-a-dear-machine",
        [Plot(instance="ml.g5.12xlarge", hosts=one_host(FOUR_MINUTES_ON_FOUR_GPUS))] * 10,
        may_find=("image-pull-heavy",),
        every=timedelta(minutes=40),
    ),
    family(
        "ten-minute-runs-that-leave-the-gpu-alone",
        [WITHOUT_GPU] * 6,
        must_find=("gpu-idle",),
        may_find=("cpu-bottleneck",),
    ),
    family(
        "ten-minute-runs-that-hardly-use-the-gpu",
        [WITH_LITTLE_GPU] * 6,
        must_find=("gpu-underused",),
        may_find=("cpu-bottleneck",),
    ),
    family("ten-minute-runs-that-work", [WITH_BUSY_GPU] * 6),
    family(
        "one-ten-minute-run-that-works-after-five-that-do-not",
        [WITHOUT_GPU] * 5 + [WITH_BUSY_GPU],
    ),
)
