"""Malformed series, curves, jobs and policies, as cases with every rule enabled."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from sageaudit.adapters.prices import sources
from sageaudit.domain.job.job import Job, Parent, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Direction, Objective, ProcessingOutput, TransformBatching
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Metric, RawSeries
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase
from sageaudit.structs import replace
from tests.fakes import judging
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, Points, batch_job, host_series, job, phases, ran, usage
from tests.fakes.sound import EVERY_RULE_ON

HOURS = 3
MINUTES = 60 * HOURS
NAN, INF = float("nan"), float("inf")
_AT_WORK: dict[object, Measurements] = {}
"""Measurements by the parts of a job that they depend on: measured once."""


@cache
def market() -> Market:
    """Returns all types, at the packaged prices of the job's day."""
    return sources.offline_markets().market(job(), START)


def case(run: Job, use: Measurements | None = None, **more: Any) -> FamilyCase:
    """Returns the job as a case with every rule enabled."""
    plain: dict[str, Any] = {"policy": EVERY_RULE_ON, "earlier": ()}
    return judging.case(run, use or at_work(run), market=market(), **plain | more)


def measured(run: Job, raw: Sequence[RawSeries]) -> Measurements:
    """Returns what is measured from these series."""
    return usage(run, *raw, types=market().types)


def at_work(run: Job) -> Measurements:
    """Returns the measurements of one or two hosts that work through the whole run."""
    key = (run.name, run.groups, run.groups_unknown, run.phases)
    if key not in _AT_WORK:
        names = [f"{run.name}/algo-{n + 1}" for n in range(min(run.instance_count or 1, 2))]
        _AT_WORK[key] = measured(run, [line for name in names for line in host(name)])
    return _AT_WORK[key]


def host(name: str, minutes: int = MINUTES, period_s: int = 60) -> list[RawSeries]:
    """Returns all series of a host with late start, bursts of work, and early end."""
    points = minutes * 60 // period_s
    busy = [0.0 if n * 6 < points or n * 6 > 5 * points else 1.0 for n in range(points)]
    swing = [share * (0.2 + 0.8 * (n % 7 < 4)) for n, share in enumerate(busy)]
    points_of = {
        "cores": [1.1 * share + 0.02 for share in swing],
        "gpu": [60 * share for share in swing],
        "gpu_memory": [25 * share for share in busy],
        "memory": [12 + 20 * share for share in busy],
        "disk": [1.5] * points,
    }
    return host_series(name, points_of, period_s=period_s)


def workers() -> Iterator[Job]:
    """Yields training jobs on GPU, old GPU, CPU and Trainium types, some on several instances."""
    yield job("ml.g5.12xlarge")
    yield job("ml.p3.8xlarge", 2)
    yield job("ml.m5.4xlarge")
    yield job("ml.r5.2xlarge", 3)
    yield job("ml.trn1.2xlarge")


def other_kinds() -> Iterator[Job]:
    """Yields a processing and a transform job with the settings of their kinds."""
    seconds = 3600 * HOURS
    uploads = (ProcessingOutput("out", "EndOfJob"),)
    yield batch_job(JobKind.PROCESSING, seconds, "ml.m5.4xlarge", 2, uploads=uploads)
    batch = TransformBatching("SingleRecord", 1, 6)
    yield batch_job(JobKind.TRANSFORM, seconds, "ml.m5.4xlarge", 2, batch=batch, max_runtime_s=None)


def every_worker() -> Iterator[Job]:
    """Yields the jobs of `workers` and `other_kinds`."""
    yield from workers()
    yield from other_kinds()


def with_series(*lines: RawSeries) -> Iterator[FamilyCase]:
    """Yields each of `every_worker` with just these series."""
    for run in every_worker():
        yield case(run, measured(run, lines))


def everywhere(change: Callable[[Points], Points]) -> Iterator[FamilyCase]:
    """Yields each of `every_worker` with all its series changed."""
    for run in every_worker():
        lines = [replace(line, values=tuple(change(line.values))) for line in host("train/algo-1")]
        yield case(run, measured(run, lines))


def only(metric: Metric) -> Iterator[FamilyCase]:
    """Yields each of `every_worker` with the series of one metric."""
    yield from with_series(*(line for line in host("train/algo-1") if line.metric == metric.value))


def with_curves(*curves: Points, period_s: int = 60, start_s: int = 1200) -> Iterator[FamilyCase]:
    """Yields each of `workers` with curves of a loss, an accuracy and unknown metrics."""
    tuned = Objective("strange", Direction.MAXIMIZE)
    for run in workers():
        for values in curves:
            start = START + timedelta(seconds=start_s)
            curve_series = [
                RawSeries(run.name, name, start, period_s, tuple(values))
                for name in ("validation:loss", "validation:accuracy", "strange", "")
            ]
            use = measured(run, [*host(f"{run.name}/algo-1"), *curve_series])
            yield case(run, use)
            yield case(replace(run, objective=tuned), use)


def large(points: int, period_s: int, hosts: int = 64) -> Iterator[FamilyCase]:
    """Yields jobs on many hosts over a long time.

    The hosts differ, so that each must be checked.
    """
    seconds = points * period_s
    for run in (ran(seconds, "ml.g5.xlarge", hosts), ran(seconds, "ml.m5.4xlarge", hosts)):
        lines = [
            replace(line, values=tuple(None if v is None else v * (1 + n % 3) for v in line.values))
            for n in range(hosts)
            for line in host(f"train/algo-{n + 1}", seconds // 60, period_s)
        ]
        yield case(run, measured(run, lines))


def one_point(start_s: int) -> list[RawSeries]:
    """Returns one CPU point this many seconds after the job's start."""
    return host_series("train/algo-1", {"cores": [0.05]}, start=START + timedelta(seconds=start_s))


def gaps(values: Points) -> Points:
    """Removes two thirds of the values, and one whole hour."""
    return [None if n % 3 or 60 < n < 120 else value for n, value in enumerate(values)]


def nonsense(values: Points) -> Points:
    """Replaces every fifth value by NaN, an infinity, a negative or huge number, or None."""
    odd = (NAN, INF, -INF, -5.0, 1e300, None)
    return [odd[n % 6] if n % 5 == 0 else value for n, value in enumerate(values)]


SERIES: Mapping[str, Callable[[], Iterator[FamilyCase]]] = {
    "gaps": lambda: everywhere(gaps),
    "nonsense": lambda: everywhere(nonsense),
    "nothing but NaN": lambda: everywhere(lambda values: [NAN] * len(values)),
    "nothing but zero": lambda: everywhere(lambda values: [0.0] * len(values)),
    "nothing but all of it": lambda: everywhere(lambda values: [100.0] * len(values)),
    "one point": lambda: everywhere(lambda values: values[90:91]),
    "the first point": lambda: everywhere(lambda values: [5.0, *[None] * (len(values) - 1)]),
    "the last point": lambda: everywhere(lambda values: [*[None] * (len(values) - 1), 5.0]),
    "points in the idle head alone": lambda: with_series(
        *host("train/algo-1")[:2],
        *(replace(line, values=line.values[:26]) for line in host("train/algo-1")[2:]),
    ),
    "empty series": lambda: everywhere(lambda values: ()),
    "no series": with_series,
    "hosts of another job": lambda: with_series(*host("other/algo-1"), *host("train/algo-77")),
    "hosts without a name": lambda: with_series(*host(""), *host("/"), *host("train/")),
    "more hosts than instances": lambda: with_series(
        *(line for n in range(9) for line in host(f"train/algo-{n}"))
    ),
    "the same host twice": lambda: with_series(*host("train/algo-1"), *host("train/algo-1")),
    "each metric on a host of its own": lambda: with_series(
        *(replace(line, host=f"train/algo-{n}") for n, line in enumerate(host("train/algo-1")))
    ),
    "each metric at a period of its own": lambda: with_series(
        *(
            replace(line, period_s=period_s)
            for line, period_s in zip(host("a"), (60, 300, 3600, 1, 17), strict=True)
        )
    ),
    "series long before the job": lambda: with_series(*one_point(-9_000_000)),
    "series long after the job": lambda: with_series(*one_point(9_000_000)),
    "CPU alone": lambda: only(Metric.CPU),
    "GPU alone": lambda: only(Metric.GPU),
    "memory alone": lambda: only(Metric.MEMORY),
    "64 hosts, a day of minutes": lambda: large(1440, 60),
    "64 hosts, 28 days of hours": lambda: large(672, 3600),
}
"""Cases by what is wrong with their series."""

CURVES: Mapping[str, Callable[[], Iterator[FamilyCase]]] = {
    "no point": lambda: with_curves([]),
    "one point": lambda: with_curves([0.5]),
    "two points": lambda: with_curves([0.5, 0.4]),
    "all equal": lambda: with_curves([0.5] * 120),
    "all zero": lambda: with_curves([0.0] * 120),
    "NaN and without end": lambda: with_curves(
        [NAN] * 120, [INF] * 120, [-INF, *[0.5] * 60, NAN, *[0.4] * 60]
    ),
    "all in one second": lambda: with_curves([0.9**n for n in range(120)], period_s=0),
    "before the run": lambda: with_curves([0.9**n for n in range(120)], start_s=-86_400),
    "beyond the run": lambda: with_curves([0.9**n for n in range(120)], period_s=86_400),
    "enormous and tiny": lambda: with_curves(
        [1.7e308, *[1e-300] * 100], [-1.7e308, *[1.7e308] * 100], [-1.7e308] * 100
    ),
    "below nothing": lambda: with_curves([-1.0 - n for n in range(30)] + [-31.0] * 120),
    "best at once, then flat": lambda: with_curves([1.0, *[0.2] * 150], [0.0, *[0.9] * 150]),
}
"""Cases by what is wrong with their curves."""


def altered(**changes: object) -> Iterator[FamilyCase]:
    """Yields each of `every_worker` with these fields changed; its hosts work."""
    for run in every_worker():
        yield case(replace(run, **changes))  # type: ignore[arg-type]


def every_status() -> Iterator[FamilyCase]:
    """Yields cases with each status of AWS, and with an unknown one."""
    words = "Completed Failed Stopped InProgress Stopping Pending DeleteFailed Odd"
    for status in words.split():
        for secondary in (None, status, "Odd"):
            yield from altered(status=status, secondary_status=secondary)


def every_kind() -> Iterator[FamilyCase]:
    """Yields cases whose kind contradicts their other fields."""
    for kind in JobKind:
        yield from altered(kind=kind)


def every_purchase() -> Iterator[FamilyCase]:
    """Yields cases with each kind of purchase, with and without instances."""
    for purchase in Purchase:
        yield from altered(purchase=purchase)
        yield from altered(purchase=purchase, groups=(), max_wait_s=10**9, checkpointed=True)


def every_parent() -> Iterator[FamilyCase]:
    """Yields cases with a parent of each kind."""
    for kind in JobKind:
        yield from altered(parent=Parent(kind.spec.rollup, "arn:aws:odd"), pipeline_step="")


def every_threshold(value: float) -> Iterator[FamilyCase]:
    """Yields cases whose policy sets all thresholds to `value`, percents to at most 100."""
    limits = {
        rule.info.name: {
            threshold.key: min(value, 100.0) if threshold.unit.startswith("percent of ") else value
            for threshold in rule.thresholds
        }
        for rule in catalogue.load()
    }
    policy = replace(EVERY_RULE_ON, thresholds=limits)
    earlier = [earlier_run(n, fingerprint="f", reason="unknown") for n in range(1, 20)]
    earlier += [earlier_run(n, status="Failed") for n in range(1, 20)]
    for run in every_worker():
        yield case(run, policy=policy, earlier=earlier)
        yield case(run, measured(run, host("train/algo-1")[:2]), policy=policy)
        unmeasured = measured(run, ())
        for changes in (
            {"status": "Failed", "has_artifact": False},
            {"purchase": Purchase.SPOT, "checkpointed": True},
            {"phases": phases(("Starting", -300), ("Training", 60)), "training_s": Decimal(60)},
            {"fingerprint": "f", "is_data_pinned": True},
        ):
            strange = replace(run, **changes)  # type: ignore[arg-type]
            yield case(strange, unmeasured, policy=policy, earlier=earlier)
    curve = [math.exp(-n) for n in range(150)]
    yield from (replace(case, policy=policy) for case in with_curves(curve))
