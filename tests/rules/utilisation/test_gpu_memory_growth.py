from __future__ import annotations

from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import Points, ran, series, usage
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, lines, row

RULE = "gpu-memory-growth"
RUN = ran(7200, "ml.g4dn.xlarge")
OOM = "AlgorithmError: CUDA out of memory"


def memory(percent: Points, run: Job = RUN) -> Measurements:
    """GPU memory, minute by minute."""
    return usage(run, series(Metric.GPU_MEMORY, percent))


def leak(rate: float, minutes: int = 120, start: float = 10) -> list[float | None]:
    """So many points a minute, from `start`."""
    return [start + rate * minute for minute in range(minutes)]


def steps(*spells: tuple[int, float]) -> list[float | None]:
    """So many minutes at so many percent."""
    return [percent for minutes, percent in spells for _ in range(minutes)]


test_cases = cases(
    RULE,
    "Memory that grows all the time is found.",
    # 0.6 points a minute: 36 an hour, and 21 points are left, so another half an hour.
    row(finds("GPU memory grew steadily from 17% to 79% over 2 h on 1 x ml.g4dn.xlarge, about "
        "36 points an hour; at this pace it is full after another 40 min. It looks like " "a leak.",
        builder="advice", fix=[], usd=None, caution="…A leak costs nothing until…",
        evidence={"points_per_hour": 36.0, "hours_until_full": 0.6}), RUN, memory(leak(0.6))),
    "Even memory is clear. 80% from start to end.",
    row(CLEAR, RUN, even(120, gpu_memory=80)),
    "A rise of five points over the run is none.",
    # What noise and a cache do; a little more is judged by its slope.
    row(CLEAR, RUN, memory(leak(0.045, start=90))),
    row(FOUND, RUN, memory(leak(0.055, start=90))),
    "What is full only long after the run is no leak.",
    # The same slope: four hours from the limit are twice the run, five are more.
    row(FOUND, RUN, memory(leak(0.2, start=30))),
    row(CLEAR, RUN, memory(leak(0.2, start=15))),
    row(FOUND, RUN, memory(leak(0.2, start=15)), limits={"full_within_runs": 3}),
    "A plateau near full is no leak.",
    # An allocator keeps what it freed: a run that completed had enough.
    row(CLEAR, RUN, memory(leak(1.0, 80) + [91.0] * 40)),
    "A few steps are a plan. Longer sequences by plan; many even steps are a leak of each epoch.",
    row(CLEAR, RUN, memory(steps((50, 20), (50, 40), (20, 60)))),
    row(CLEAR, RUN, memory(steps((30, 20), (30, 40), (30, 60), (30, 80)))),
    row(FOUND, RUN, memory(steps(*((10, 20 + 6 * epoch) for epoch in range(12))))),
    "A cache that is full is no leak. Three steps in the first hour and none in the second.",
    row(CLEAR, RUN, memory(steps((15, 20), (15, 40), (15, 60), (75, 80)))),
    "What is given back is no leak. Up and down with each epoch.",
    row(CLEAR, RUN, memory(steps(*[(15, 20), (15, 60)] * 3, (30, 20)))),
    # A tenth of it at the end is enough: from 96% back to 83%.
    row(CLEAR, RUN, memory([*leak(0.8, 108), *[83.0] * 12])),
    "The start is left out. A model that is loaded in steps during the first 8 minutes.",
    row(CLEAR, RUN, memory([*[1.0, 12.0, 25.0, 40.0, 55.0, 70.0, 80.0, 85.0], *[90.0] * 112])),
    "A slow leak shows over hours. A tenth of a point a minute: 72 points in 12 hours.",
    row(FOUND, ran(12 * 3600, "ml.g4dn.xlarge"), memory(leak(0.1, 720), ran(12 * 3600,
        "ml.g4dn.xlarge"))),
    "The host that is full first speaks for all. One of two hosts leaks.",
    row(finds("…GPU memory of algo-2 grew…", evidence={"hosts": 2, "hosts_that_grew": 1}),
        ran(7200, "ml.g4dn.xlarge", 2), lines(series(Metric.GPU_MEMORY, [50] * 120),
        series(Metric.GPU_MEMORY, leak(0.6), host="train/algo-2"))),
    "Gaps do not hide it. Every fourth point is missing; where half a window is, it says nothing.",
    row(FOUND, RUN, memory([None if minute % 4 == 0 else value for minute,
        value in enumerate(leak(0.6))])),
    row(FOUND, RUN, memory([value if minute not in range(40, 76) else None for minute,
        value in enumerate(leak(0.6))])),
    "Coarser points are judged up to five minutes. The windows stay as long.",
    row(FOUND, RUN, lines(series(Metric.GPU_MEMORY, leak(0.6 * 300 / 60, 24), period_s=300))),
    row(FOUND, RUN, lines(series(Metric.GPU_MEMORY, leak(0.6 * 120 / 60, 60), period_s=120))),
    "Less than four windows are too few. 23 minutes; 24 are judged.",
    row("unknown: too_short", ran(23 * 60, "ml.g4dn.xlarge"), memory(leak(2, 23), ran(23 * 60,
        "ml.g4dn.xlarge"))),
    row(FOUND, ran(24 * 60, "ml.g4dn.xlarge"), memory(leak(2, 24), ran(24 * 60, "ml.g4dn.xlarge"))),
    "The policy may ask for more. More points of rise, and none of the patience.",
    row(CLEAR, RUN, memory(leak(0.6)), limits={"increase_over": 70}),
    row(FOUND, RUN, memory(leak(0.6)), limits={"patience_minutes": 0}),
    "What the limit ends before it is full is no leak.",
    # Full after another 40 minutes: MaxRuntime leaves half an hour, or an hour, or is not known.
    row(CLEAR, ran(7200, "ml.g4dn.xlarge", max_runtime_s=9000), memory(leak(0.6))),
    row(FOUND, ran(7200, "ml.g4dn.xlarge", max_runtime_s=10_800), memory(leak(0.6))),
    row(FOUND, ran(7200, "ml.g4dn.xlarge", max_runtime_s=None), memory(leak(0.6))),
    "A leak that ended the run is told whatever was left.",
    # It was full for the last ten minutes; the mean of several GPUs may end lower.
    row(finds("…then the run failed for lack of it…", lacks="hours_until_full"),
        ran(7200, "ml.g4dn.xlarge", status="Failed", failure=OOM),
        memory(leak(0.8, 110) + [97.0] * 10)),
    row(finds("…then the run failed for lack of it…", lacks="hours_until_full"),
        ran(7200, "ml.g4dn.xlarge", status="Failed", failure=OOM), memory(leak(0.2))),
    "More than 5 points from the first window of 4 minutes to the last, 28 minutes later.",
    row(FOUND, ran(2400, "ml.g4dn.xlarge"),
        memory([90 + 5.01 / 28 * minute for minute in range(40)], ran(2400, "ml.g4dn.xlarge"))),
    row(CLEAR, ran(2400, "ml.g4dn.xlarge"),
        memory([90 + 4.99 / 28 * minute for minute in range(40)], ran(2400, "ml.g4dn.xlarge"))),
    "A single step up is none: each start has one. Debugger fires at it.",
    row(CLEAR, ran(3600, "ml.g4dn.xlarge"), memory([20] * 30 + [80] * 30,
        ran(3600, "ml.g4dn.xlarge"))),
)  # fmt: skip
