"""Families: runs of four to twelve active minutes, each alone too short to be judged."""

from datetime import datetime, timedelta
from typing import Any

from .form import (
    CPU_OK,
    GPU_OK,
    LOSS_OK,
    MOVE_OK,
    NAGS,
    SKLEARN,
    TYPE_OK,
    Expert,
    Family,
    Job,
    Range,
    Seg,
    day,
    make,
    replace,
    verdict,
)
from .machines import cents, rate

ENDS = ("idle-start", "idle-middle", "idle-tail", "gpu-memory-growth", "uneven-hosts")
NOT = (*ENDS, *LOSS_OK, *MOVE_OK, "trainium-candidate", "spot-not-used", "max-runtime-loose")
SILENT = (*GPU_OK, *LOSS_OK, *MOVE_OK, *NAGS, *TYPE_OK, "spot-not-used")
LITTLE = frozenset({"gpu-idle", "gpu-underused", "gpu-too-big", "cheaper-type"})
ENOUGH = 15  # active minutes that make a judgement


def run(stem: str, kind: str, began: datetime, *load: Seg, **more: Any) -> Job:
    """A short run, named by its moment as the SDK does it."""
    name = f"{stem}-{began:%Y-%m-%d-%H-%M-%S}-{began.minute * 13 % 1000:03d}"
    return make(name, kind, began, *load, down=100, up=15, mode="File", **more)


def every(stem: str, kind: str, first: datetime, gap: int, *segs: Seg, **more: Any) -> list[Job]:
    """Runs so many minutes apart, each one minute of start-up and then its stretch."""
    out: list[Job] = []
    for number, seg in enumerate(segs):
        began = first + timedelta(minutes=gap * number)
        warm = replace(seg, minutes=1, gpu=0.0, cpu=min(seg.cpu, 120.0), gmem=min(seg.gmem, 2.0))
        out.append(run(stem, kind, began, warm, seg, **more))
    return out


def active(job: Job) -> int:
    """Minutes of training."""
    return sum(seg.minutes for seg in job.hosts[0])


def summed(wasteful: list[Job], low: float, high: float) -> Range:
    """The family's waste: low from the run on with which enough evidence is together."""
    seen = 0
    least = most = 0.0
    for job in wasteful:
        seen += active(job)
        most += float(job.cost()) * high
        least += float(job.cost()) * low if seen >= ENOUGH else 0.0
    return cents(least, most)


def of(seg: Seg, *minutes: int) -> tuple[Seg, ...]:
    """The same stretch in several lengths."""
    return tuple(replace(seg, minutes=m) for m in minutes)


_DEBUG = every(
    "notes-tagger",
    "ml.g5.xlarge",
    day(18, 9),
    25,
    *of(Seg(1, 1.6, 107, 27, 6, wobble=0.3), 6, 8, 5, 7, 9, 6, 8),
)
_GOOD = every(
    "mini-detector",
    "ml.g6.xlarge",
    day(18, 10),
    30,
    *of(Seg(1, 84, 240, 60, 74), 5, 9, 7, 10, 6, 8, 9, 7),
)
_BAD_THEN_GOOD = every(
    "pair-ranker",
    "ml.g4dn.xlarge",
    day(19, 8),
    40,
    *of(Seg(1, 2.0, 390, 52, 5, wobble=0.3), 9, 8, 10, 9),
    *of(Seg(1, 81, 250, 55, 73), 5, 6, 5, 6),
)
_GOOD_THEN_BAD = every(
    "mask-refiner",
    "ml.g5.2xlarge",
    day(19, 9),
    45,
    *of(Seg(1, 82, 430, 57, 70), 7, 8, 7, 6),
    *of(Seg(1, 3.4, 101, 55, 70, wobble=0.2), 9, 8, 10, 9),
)
_ONE_OF_FOUR = every(
    "poster-gen",
    "ml.g5.12xlarge",
    day(20, 8),
    35,
    *of(Seg(1, 88, 410, 15, 82, top=100.0), 9, 10, 8, 11, 9, 10),
)
_CORE = every(
    "shift-plan",
    "ml.m5.4xlarge",
    day(20, 9),
    30,
    *of(Seg(1, 0, 100.8, 9, 0), 8, 10, 7, 9, 11, 8),
    image=SKLEARN,
    volume_gb=30,
)
_TWO = every(
    "first-tries",
    "ml.g5.2xlarge",
    day(21, 9),
    30,
    *of(Seg(1, 0.5, 104, 21, 3, wobble=0.3), 3, 4),
)


def pooled() -> list[Job]:
    """Runs that take over each other's pool after long waits; nobody takes over the last one."""
    out: list[Job] = []
    began = day(21, 8)
    waits = (1380, 1500, 1260, 1440, 1620, 1800)
    for number, wait in enumerate(waits):
        seg = Seg(5 + number % 3, 80, 430, 55, 68)
        warm = Seg(1, 0, 120, 20, 2)
        job = run("prompt-lab", "ml.g5.2xlarge", began, warm, seg)
        after = began + timedelta(seconds=200 + job.span() + wait)
        last = number + 1 == len(waits)
        status = {
            "Status": "Terminated" if last else "Reused",
            "ResourceRetainedBillableTimeInSeconds": wait,
        }
        if not last:
            then = f"{after:%Y-%m-%d-%H-%M-%S}-{after.minute * 13 % 1000:03d}"
            status["ReusedByJob"] = f"prompt-lab-{then}"
        out.append(
            replace(
                job,
                retained=wait,
                resources={"KeepAlivePeriodInSeconds": 1800},
                describe={"WarmPoolStatus": status},
            )
        )
        began = after
    return out


_POOLED = pooled()
_WAIT_USD = float(rate("ml.g5.2xlarge")) / 3600


def silent(job: Job, says: str, also: tuple[str, ...] = ()) -> Expert:
    """The verdict on a run of which nothing is said; high: its head and its ends wished away."""
    return verdict(job, job.share(0, 0.3), (), (*SILENT, *also), says)


FAMILIES: tuple[Family, ...] = (
    Family(
        "family-all-idle-g5-xlarge",
        "Seven tries of six to ten minutes at a script that never moves its model to the GPU.",
        tuple(_DEBUG),
        verdict(
            _DEBUG[-1],
            _DEBUG[-1].share(0.4, 0.97),
            (LITTLE,),
            (*NOT, "cpu-bottleneck", "some-gpus-unused"),
            "Each alone too short, seven in a row are not: develop on a CPU or the smallest GPU.",
        ),
        summed(_DEBUG, 0.4, 0.97),
    ),
    Family(
        "family-all-healthy-g6-xlarge",
        "Eight short runs at 84 % of an L4.",
        tuple(_GOOD),
        silent(_GOOD[-1], "Short and well used; nothing to say."),
        summed(_GOOD, 0, 0.3),
    ),
    Family(
        "family-mended-g4dn-xlarge",
        "Four runs with the model on the CPU, then four with it on the GPU, twice as fast.",
        tuple(_BAD_THEN_GOOD),
        silent(_BAD_THEN_GOOD[-1], "Mended four runs ago: the last run is healthy."),
        summed(_BAD_THEN_GOOD[:4], 0.3, 0.97),
    ),
    Family(
        "family-broken-g5-2xlarge",
        "Four healthy runs, then a change of the loader leaves the GPU at 3 %.",
        tuple(_GOOD_THEN_BAD),
        verdict(
            _GOOD_THEN_BAD[-1],
            # low: half the time, as before the change
            _GOOD_THEN_BAD[-1].share(0.3, 0.95),
            (LITTLE | {"gpu-starved", "cost-regression"},),
            (*NOT, "some-gpus-unused"),
            "The last four runs do in ten minutes on one core what the GPU should: look there.",
        ),
        summed(_GOOD_THEN_BAD[4:], 0.3, 0.95),
    ),
    Family(
        "family-one-gpu-of-four-g5-12xlarge",
        "Six short runs use one of four A10G.",
        tuple(_ONE_OF_FOUR),
        verdict(
            _ONE_OF_FOUR[-1],
            # low: g5.4xlarge holds its 29 GB and its cores; high: g5.2xlarge does
            _ONE_OF_FOUR[-1].share(0.6, 0.9),
            (frozenset({"some-gpus-unused", "gpu-too-big", "cheaper-type", "gpu-underused"}),),
            (*NOT, "gpu-idle", "cpu-bottleneck"),
            "Three GPUs were never touched: a single-GPU machine costs a quarter.",
        ),
        summed(_ONE_OF_FOUR, 0.6, 0.9),
    ),
    Family(
        "family-one-core-of-16-m5-4xlarge",
        "Six short plans run on one core of sixteen.",
        tuple(_CORE),
        verdict(
            _CORE[-1],
            _CORE[-1].share(0.65, 0.95),
            (frozenset({"serial-code", "cpu-underused", "memory-oversized", "cheaper-type"}),),
            (*NOT, "gpu-idle", "gpu-underused"),
            "A quarter of the machine (m5.xlarge) takes as long.",
        ),
        summed(_CORE, 0.65, 0.95),
    ),
    Family(
        "family-of-two-too-few-g5-2xlarge",
        "Two first tries of four and five minutes.",
        tuple(_TWO),
        verdict(
            _TWO[-1],
            _TWO[-1].share(0, 0.97),
            (),
            (*SILENT, *CPU_OK),
            "Nine minutes in all prove nothing yet; wait for more runs.",
            judged="no",
        ),
        cents(0, sum(float(job.cost()) for job in _TWO)),
    ),
    Family(
        "family-pool-dearer-than-its-starts-g5-2xlarge",
        "Six runs of six to eight minutes hand a pool on after 21 to 30 paid minutes each.",
        tuple(_POOLED),
        verdict(
            _POOLED[-1],
            cents(1800 * _WAIT_USD * 0.97, 1800 * _WAIT_USD + 0.1),
            ("warm-pool-idle",),
            (*GPU_OK, *MOVE_OK, "failed-spend", "spot-not-used", "short-experiment"),
            "Nearly four dollars of waiting to save five starts of five minutes: keep alive less.",
        ),
        cents(
            # low: each hand-over saved a start of five minutes
            (sum(job.retained for job in _POOLED) - 5 * 300) * _WAIT_USD * 0.95,
            sum(job.retained for job in _POOLED) * _WAIT_USD + 0.4,
        ),
    ),
)
