"""Families: runs of four to twelve active minutes, each alone too short to be judged."""

from datetime import datetime, timedelta
from typing import Any

from sageaudit.structs import replace
from tests.labelled.expert import (
    CPU_OK,
    GPU_OK,
    LOSS_OK,
    MOVE_OK,
    NAGS,
    SKLEARN,
    TYPE_OK,
    Job,
    Range,
    Scenario,
    cents,
    day,
    expert,
    job,
    rate,
)
from tests.labelled.experts.purchase import pool
from tests.labelled.machine import Shown, longest

ENDS = ("idle-start", "idle-middle", "idle-tail", "uneven-hosts")
NOT = (*ENDS, *LOSS_OK, *MOVE_OK, "trainium-candidate", "spot-not-used", "max-runtime-loose")
SILENT = (*GPU_OK, *LOSS_OK, *MOVE_OK, *NAGS, *TYPE_OK, "spot-not-used")
LITTLE = frozenset({"gpu-idle", "gpu-underused", "gpu-too-big", "cheaper-type"})
ENOUGH = 15
"""Active minutes that make a judgement."""


def run(stem: str, instance: str, began: datetime, *load: Shown, **more: Any) -> Job:
    """A short run, named by its moment as the SDK does it."""
    name = f"{stem}-{began:%Y-%m-%d-%H-%M-%S}-{began.minute * 13 % 1000:03d}"
    return job(name, instance, *load, began=began, down=100, up=15, mode="File", **more)


def every(
    stem: str, instance: str, first: datetime, gap: int, *works: Shown, **more: Any
) -> list[Job]:
    """Runs so many minutes apart, each one minute of start-up and then its stretch."""
    out: list[Job] = []
    for number, work in enumerate(works):
        began = first + timedelta(minutes=gap * number)
        warm = replace(work, minutes=1, gpu=0.0, cpu=min(work.cpu, 120.0), gmem=min(work.gmem, 2.0))
        out.append(run(stem, instance, began, warm, work, **more))
    return out


def of(work: Shown, *minutes: int) -> tuple[Shown, ...]:
    """The same stretch in several lengths."""
    return tuple(replace(work, minutes=m) for m in minutes)


def summed(wasteful: list[Job], low: float, high: float) -> Range:
    """The family's waste: low from the run on with which enough evidence is together."""
    active = 0
    least = most = 0.0
    for one in wasteful:
        active += longest(one.plot.hosts)
        most += float(one.cost()) * high
        least += float(one.cost()) * low if active >= ENOUGH else 0.0
    return cents(least, most)


def family(
    name: str,
    story: str,
    runs: list[Job],
    *,
    share: tuple[float, float] | None = (0, 0.3),
    summed_usd: Range | None = None,
    must_not: tuple[str, ...] = SILENT,
    **verdict: Any,
) -> Scenario:
    """A family with the verdict on its last run; by default nothing is said of it.

    High: its head and its ends wished away.
    """
    last = expert(name, story, runs[-1], share=share, must_not=must_not, **verdict)
    return replace(
        last,
        build=lambda: [one.recording() for one in runs],
        summed_usd=summed_usd or summed(runs, *(share or (0, 0))),
    )


_DEBUG = every(
    "notes-tagger",
    "ml.g5.xlarge",
    day(18, 9),
    25,
    *of(Shown(1, 1.6, 107, 27, 6, wobble=0.3), 6, 8, 5, 7, 9, 6, 8),
)
_GOOD = every(
    "mini-detector",
    "ml.g6.xlarge",
    day(18, 10),
    30,
    *of(Shown(1, 84, 240, 60, 74), 5, 9, 7, 10, 6, 8, 9, 7),
)
_BAD_THEN_GOOD = every(
    "pair-ranker",
    "ml.g4dn.xlarge",
    day(19, 8),
    40,
    *of(Shown(1, 2.0, 390, 52, 5, wobble=0.3), 9, 8, 10, 9),
    *of(Shown(1, 81, 250, 55, 73), 5, 6, 5, 6),
)
_GOOD_THEN_BAD = every(
    "mask-refiner",
    "ml.g5.2xlarge",
    day(19, 9),
    45,
    *of(Shown(1, 82, 430, 57, 70), 7, 8, 7, 6),
    *of(Shown(1, 3.4, 101, 55, 70, wobble=0.2), 9, 8, 10, 9),
)
_ONE_OF_FOUR = every(
    "poster-gen",
    "ml.g5.12xlarge",
    day(20, 8),
    35,
    *of(Shown(1, 88, 410, 15, 82, top=100.0), 9, 10, 8, 11, 9, 10),
)
_CORE = every(
    "shift-plan",
    "ml.m5.4xlarge",
    day(20, 9),
    30,
    *of(Shown(1, 0, 100.8, 9, 0), 8, 10, 7, 9, 11, 8),
    image=SKLEARN,
    volume_gb=30,
)
_TWO = every(
    "first-tries", "ml.g5.2xlarge", day(21, 9), 30, *of(Shown(1, 0.5, 104, 21, 3, wobble=0.3), 3, 4)
)


def pooled() -> list[Job]:
    """Runs that take over each other's pool after long waits; nobody takes over the last one."""
    out: list[Job] = []
    began = day(21, 8)
    waits = (1380, 1500, 1260, 1440, 1620, 1800)
    for number, wait in enumerate(waits):
        work, warm = Shown(5 + number % 3, 80, 430, 55, 68), Shown(1, 0, 120, 20, 2)
        span_s = run("prompt-lab", "ml.g5.2xlarge", began, warm, work).plot.span_s
        after = began + timedelta(seconds=200 + span_s + wait)
        then = f"prompt-lab-{after:%Y-%m-%d-%H-%M-%S}-{after.minute * 13 % 1000:03d}"
        last = number + 1 == len(waits)
        kept = pool("Terminated", wait, 1800) if last else pool("Reused", wait, 1800, then)
        out.append(run("prompt-lab", "ml.g5.2xlarge", began, warm, work, **kept))
        began = after
    return out


_POOLED = pooled()
_RETAINED_S = sum(one.retained for one in _POOLED)
_WAIT_USD = float(rate("ml.g5.2xlarge")) / 3600

SCENARIOS = (
    family("family-all-idle-g5-xlarge",
        "Seven tries of six to ten minutes at a script that never moves its model to the GPU.",
        _DEBUG, share=(0.4, 0.97), must=(LITTLE,),
        must_not=(*NOT, "cpu-bottleneck", "some-gpus-unused"),
        says="Each alone too short, seven in a row are not: develop on a CPU or the smallest GPU."),
    family("family-all-healthy-g6-xlarge", "Eight short runs at 84 % of an L4.", _GOOD,
        says="Short and well used; nothing to say."),
    family("family-mended-g4dn-xlarge",
        "Four runs with the model on the CPU, then four with it on the GPU, twice as fast.",
        _BAD_THEN_GOOD, summed_usd=summed(_BAD_THEN_GOOD[:4], 0.3, 0.97),
        says="Mended four runs ago: the last run is healthy."),
    family(
        "family-broken-g5-2xlarge",
        "Four healthy runs, then a change of the loader leaves the GPU at 3 %.",
        _GOOD_THEN_BAD,
        # low: half the time, as before the change
        share=(0.3, 0.95), summed_usd=summed(_GOOD_THEN_BAD[4:], 0.3, 0.95),
        must=(LITTLE | {"gpu-starved", "cost-regression"},), must_not=(*NOT, "some-gpus-unused"),
        says="The last four runs do in ten minutes on one core what the GPU should: look there.",
    ),
    family(
        "family-one-gpu-of-four-g5-12xlarge", "Six short runs use one of four A10G.", _ONE_OF_FOUR,
        # low: g5.4xlarge holds its 29 GB and its cores; high: g5.2xlarge does
        share=(0.6, 0.9),
        must=(frozenset({"some-gpus-unused", "gpu-too-big", "cheaper-type", "gpu-underused"}),),
        must_not=(*NOT, "gpu-idle", "cpu-bottleneck"),
        says="Three GPUs were never touched: a single-GPU machine costs a quarter.",
    ),
    family("family-one-core-of-16-m5-4xlarge", "Six short plans run on one core of sixteen.", _CORE,
        share=(0.65, 0.95),
        must=(frozenset({"serial-code", "cpu-underused", "memory-oversized", "cheaper-type"}),),
        must_not=(*NOT, "gpu-idle", "gpu-underused"),
        says="A quarter of the machine (m5.xlarge) takes as long."),
    family("family-of-two-too-few-g5-2xlarge", "Two first tries of four and five minutes.", _TWO,
        share=(0, 0.97), summed_usd=cents(0, sum(float(one.cost()) for one in _TWO)),
        must_not=(*SILENT, *CPU_OK),
        says="Nine minutes in all prove nothing yet; wait for more runs.", judged="no"),
    family(
        "family-pool-dearer-than-its-starts-g5-2xlarge",
        "Six runs of six to eight minutes hand a pool on after 21 to 30 paid minutes each.",
        _POOLED, share=None, wasted=cents(1800 * _WAIT_USD * 0.97, 1800 * _WAIT_USD + 0.1),
        summed_usd=cents(
            # low: each hand-over saved a start of five minutes
            (_RETAINED_S - 5 * 300) * _WAIT_USD * 0.95, _RETAINED_S * _WAIT_USD + 0.4,
        ),
        must=("warm-pool-idle",),
        must_not=(*GPU_OK, *MOVE_OK, "failed-spend", "spot-not-used"),
        says="Nearly four dollars of waiting to save five starts of five minutes: keep alive less.",
    ),
)  # fmt: skip
