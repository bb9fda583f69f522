"""Jobs, series, families and tuning jobs as they should never be, by what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import cache

from sageaudit.adapters import packaged
from sageaudit.domain.job import (
    Batch,
    Channel,
    Direction,
    Hints,
    InstanceGroup,
    Job,
    Objective,
    Parent,
    ParentKind,
    Phase,
    Purchase,
    RuleEvaluation,
    Source,
    Tuning,
    Upload,
    WarmPool,
)
from sageaudit.domain.market import Market
from sageaudit.domain.measurements import (
    Curve,
    Measurements,
    Metric,
    Missing,
    RawSeries,
    measure,
)
from sageaudit.domain.ref import JobKind
from sageaudit.rules.card import FamilyCase
from tests.fakes import judging
from tests.fakes.jobs import START, job, phases, ran
from tests.fakes.sound import EVERY_RULE_ON

HOURS = 3
MINUTES = 60 * HOURS
NAN, INF = float("nan"), float("inf")
Values = Sequence[float | None]


@cache
def market() -> Market:
    """All types, at the packaged prices of the job's day."""
    return packaged.PackagedMarkets().market(job(), START)


def case(run: Job, of: Measurements | None = None, **more: object) -> FamilyCase:
    """A job as rules see it, every rule switched on."""
    seen = of if of is not None else at_work(run)
    more = {"policy": EVERY_RULE_ON, "earlier": ()} | more
    return judging.case(run, seen, on=market(), **more)  # type: ignore[arg-type]


def measured(run: Job, raw: Sequence[RawSeries], code: str = "metric_missing") -> Measurements:
    """What is left of such series."""
    return measure(run, raw, market().types, absent=Missing(code, "no points"))


def raw(
    metric: Metric,
    values: Values,
    host: str = "train/algo-1",
    period_s: int = 60,
    start_s: int = 0,
) -> RawSeries:
    """One series of `train`."""
    start = START + timedelta(seconds=start_s)
    return RawSeries(host, metric.value, start, period_s, tuple(values))


def at_work(run: Job) -> Measurements:
    """Every host does something through the whole run."""
    count = min(run.instance_count or 1, 4)
    return measured(run, [line for n in range(count) for line in host(f"{run.name}/algo-{n + 1}")])


def host(name: str, minutes: int = MINUTES, period_s: int = 60) -> list[RawSeries]:
    """All metrics of a host that wakes late, works by fits and starts and ends early."""
    points = minutes * 60 // period_s
    busy = [0.0 if n * 6 < points or n * 6 > 5 * points else 1.0 for n in range(points)]
    swing = [share * (0.2 + 0.8 * (n % 7 < 4)) for n, share in enumerate(busy)]
    return [
        raw(Metric.CPU, [110 * share + 2 for share in swing], name, period_s),
        raw(Metric.GPU, [60 * share for share in swing], name, period_s),
        raw(Metric.GPU_MEMORY, [25 * share for share in busy], name, period_s),
        raw(Metric.MEMORY, [12 + 20 * share for share in busy], name, period_s),
        raw(Metric.DISK, [1.5] * points, name, period_s),
    ]


def workers() -> Iterator[Job]:
    """A job on GPUs, an old one, one on CPUs, and several instances of them."""
    yield job("ml.g5.12xlarge")
    yield job("ml.p3.8xlarge", 2)
    yield job("ml.m5.4xlarge")
    yield job("ml.r5.2xlarge", 3)
    yield job("ml.trn1.2xlarge")


def other_kinds() -> Iterator[Job]:
    """A processing and a transform job, with what is theirs."""
    run = ran(3600 * HOURS, "ml.m5.4xlarge", 2)
    yield replace(
        run,
        kind=JobKind.PROCESSING,
        phases=phases(("Processing", 3600 * HOURS)),
        uploads=(Upload("out", "EndOfJob"),),
    )
    yield replace(
        run,
        kind=JobKind.TRANSFORM,
        phases=phases(("Transform", 3600 * HOURS)),
        batch=Batch("SingleRecord", 1, 6),
        max_runtime_s=None,
    )


def with_series(*lines: RawSeries) -> Iterator[FamilyCase]:
    """Each kind of worker with just these series."""
    for run in (*workers(), *other_kinds()):
        yield case(run, measured(run, lines))


def everywhere(change: Callable[[Values], Values]) -> Iterator[FamilyCase]:
    """Every worker with every series changed."""
    for run in (*workers(), *other_kinds()):
        lines = [replace(line, values=tuple(change(line.values))) for line in host("train/algo-1")]
        yield case(run, measured(run, lines))


def only(metric: Metric) -> Iterator[FamilyCase]:
    """One metric alone."""
    yield from with_series(*(line for line in host("train/algo-1") if line.metric == metric.value))


def altered(**changes: object) -> Iterator[FamilyCase]:
    """Every worker with the same fields changed, its series as they should be."""
    for run in (*workers(), *other_kinds()):
        strange = replace(run, **changes)  # type: ignore[arg-type]
        yield case(strange, at_work(run) if "groups" in changes else at_work(strange))


def with_curves(*curves: Values, step_s: int = 60) -> Iterator[FamilyCase]:
    """Every worker with the curves of a loss, of an accuracy and of what nobody knows."""
    for run in workers():
        of = at_work(run)
        for values in curves:
            curve = Curve(
                tuple(
                    (START + timedelta(seconds=1200 + n * step_s), value)
                    for n, value in enumerate(values)
                    if value is not None
                )
            )
            names = ("validation:loss", "validation:accuracy", "strange", "")
            tuned = Tuning("Bayesian", "Off", {}, Objective("strange", Direction.MAXIMIZE))
            known = replace(of, curves=dict.fromkeys(names, curve) if curve.points else {})
            yield case(run, known)
            yield case(replace(run, tuning=tuned), known)


def large(points: int, period_s: int, hosts: int = 64) -> Iterator[FamilyCase]:
    """A cluster over a long time. Its hosts differ, so that each has to be looked at."""
    seconds = points * period_s
    for run in (ran(seconds, "ml.g5.xlarge", hosts), ran(seconds, "ml.m5.4xlarge", hosts)):
        lines = [
            replace(line, values=tuple(None if v is None else v * (1 + n % 3) for v in line.values))
            for n in range(hosts)
            for line in host(f"train/algo-{n + 1}", seconds // 60, period_s)
        ]
        yield case(run, measured(run, lines))


def gaps(values: Values) -> Values:
    """Two thirds, and an hour, are not there."""
    return [None if n % 3 or 60 < n < 120 else value for n, value in enumerate(values)]


def nonsense(values: Values) -> Values:
    """Not a number, without end, below nothing, above all."""
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
    "series long before the job": lambda: with_series(raw(Metric.CPU, [5.0] * 60, start_s=-9e6)),
    "series long after the job": lambda: with_series(raw(Metric.CPU, [5.0] * 60, start_s=9e6)),
    "CPU alone": lambda: only(Metric.CPU),
    "GPU alone": lambda: only(Metric.GPU),
    "memory alone": lambda: only(Metric.MEMORY),
    "64 hosts, a day of minutes": lambda: large(1440, 60),
    "64 hosts, 28 days of hours": lambda: large(672, 3600),
}
"""What is wrong with the series."""

TIMES: Mapping[str, Callable[[], Iterator[FamilyCase]]] = {
    "ends before it starts": lambda: altered(
        ended_at=START - timedelta(hours=1), training_s=None, billable_s=None, phases=()
    ),
    "phases end before they start": lambda: altered(
        phases=tuple(Phase(n, START, None, True) for n in ("Downloading", "Training", "Uploading"))
    ),
    "zero seconds": lambda: altered(
        ended_at=START, training_s=Decimal(0), billable_s=Decimal(0), phases=phases(("Training", 0))
    ),
    "phases of zero seconds": lambda: altered(
        phases=phases(("Starting", 0), ("Downloading", 0), ("Training", 0), ("Uploading", 0))
    ),
    "no phases": lambda: altered(phases=()),
    "phases without a start": lambda: altered(
        phases=tuple(Phase(n, None, Decimal(60), True) for n in ("Downloading", "Training"))
    ),
    "phases nobody knows": lambda: altered(phases=phases(("", 600), ("Dreaming", 6000))),
    "the same phase five times": lambda: altered(phases=phases(*[("Training", 2000)] * 5)),
    "nothing but interruptions": lambda: altered(
        purchase=Purchase.SPOT, phases=phases(*[("Interrupted", 2000)] * 5)
    ),
    "no times": lambda: altered(
        created_at=None,
        started_at=None,
        ended_at=None,
        last_modified_at=None,
        training_s=None,
        billable_s=None,
        phases=(),
    ),
    "no start": lambda: altered(started_at=None, training_s=None),
    "no end": lambda: altered(ended_at=None, training_s=None),
    "asked for after its end": lambda: altered(created_at=START + timedelta(days=9)),
    "nothing billed": lambda: altered(billable_s=Decimal(0)),
    "billed for more than it took": lambda: altered(billable_s=Decimal(99999)),
    "nobody says what is billed": lambda: altered(billable_s=None),
    "a year long": lambda: altered(
        ended_at=START + timedelta(days=365),
        training_s=Decimal(365 * 86400),
        billable_s=Decimal(365 * 86400),
        phases=phases(("Training", 365 * 86400)),
    ),
    "a fraction of a second": lambda: altered(
        training_s=Decimal("0.001"), billable_s=Decimal("0.001")
    ),
}
"""What is wrong with the times."""

_MIXED = (InstanceGroup("ml.g5.2xlarge", 1, "a"), InstanceGroup("ml.m5.xlarge", 2, "b"))
WHAT: Mapping[str, Callable[[], Iterator[FamilyCase]]] = {
    "no type": lambda: altered(groups=()),
    "a type nobody knows": lambda: altered(groups=(InstanceGroup("ml.next.96xlarge", 2),)),
    "a type without a dot": lambda: altered(groups=(InstanceGroup("local", 1),)),
    "no count": lambda: altered(groups=(InstanceGroup("ml.g5.xlarge", 0),)),
    "ten thousand hosts": lambda: altered(groups=(InstanceGroup("ml.g5.xlarge", 10_000),)),
    "two types": lambda: altered(groups=_MIXED),
    "one type in two groups": lambda: altered(groups=(_MIXED[0], _MIXED[0])),
    "a group nobody understands": lambda: altered(groups=(), groups_unknown=("group a has none",)),
    "no region": lambda: altered(region=None),
    "a region without prices": lambda: altered(region="mars-north-1"),
    "no account, no ARN": lambda: altered(account=None, arn=None),
    "no image": lambda: altered(image=None, entry_point=None),
    "an image that is none": lambda: altered(image=":::///@@", entry_point=""),
    "no volume": lambda: altered(volume_gb=None),
    "a volume of nothing": lambda: altered(volume_gb=0),
    "the largest volume": lambda: altered(volume_gb=16_384),
    "no limit": lambda: altered(max_runtime_s=None, max_wait_s=None),
    "a limit of nothing": lambda: altered(max_runtime_s=0, max_wait_s=0),
    "the longest limit": lambda: altered(max_runtime_s=2_419_200, max_wait_s=2_419_200),
    "channels of nothing": lambda: altered(
        channels=(Channel("", Source.S3, None, None), Channel("train", Source.OTHER, "?", "?"))
    ),
    "the same channel twice": lambda: altered(
        channels=(Channel("train", Source.S3, "File", "FullyReplicated"),) * 2
    ),
    "no channels": lambda: altered(channels=()),
    "every hint, and odd ones": lambda: altered(
        hints=Hints(True, True, True, True, True, True, "?", -1, "?")
    ),
    "hints of nothing": lambda: altered(hints=Hints(loader_workers=0, distribution="", schedule="")),
    "workers without number": lambda: altered(hints=Hints(True, loader_workers=10**9)),
    "an odd pool": lambda: altered(warm_pool=WarmPool("Odd", -1, Decimal(0))),
    "a pool of nothing": lambda: altered(warm_pool=WarmPool(None, None, None)),
    "a pool for a year": lambda: altered(
        warm_pool=WarmPool("Terminated", 10**9, Decimal(365 * 86400))
    ),
    "evaluations of nothing": lambda: altered(
        evaluations=(RuleEvaluation("r", "Odd", None), RuleEvaluation("s", "IssuesFound", None)),
        custom_rules=("", "mine"),
    ),
    "uploads of nothing": lambda: altered(uploads=(Upload("", None), Upload("x", "EndOfJob"))),
    "no batch": lambda: altered(batch=None),
    "a batch of nothing": lambda: altered(batch=Batch(None, 0, 0)),
    "an odd batch": lambda: altered(batch=Batch("Odd", -1, -1)),
    "metrics that are none": lambda: altered(
        final_metrics={"loss": Decimal("NaN"), "": Decimal("Infinity")}, metric_names=("", "x")
    ),
    "odd tags": lambda: altered(tags={"": "", "sageaudit:ignore": ",,"}),
    "failed without a reason": lambda: altered(status="Failed", failure=None, left_artifact=None),
    "failed with one": lambda: altered(status="Failed", failure="{}%s None", left_artifact=False),
    "stopped by nobody": lambda: altered(status="Stopped", secondary_status=None),
    "ended by a limit": lambda: altered(status="Stopped", secondary_status="MaxRuntimeExceeded"),
    "waited too long": lambda: altered(
        status="Stopped", secondary_status="MaxWaitTimeExceeded", purchase=Purchase.SPOT
    ),
    "never started": lambda: altered(
        status="Failed", started_at=None, training_s=None, billable_s=None, phases=()
    ),
    "free": lambda: altered(free="built-in Debugger rule"),
}
"""What is wrong with what ran."""

CURVES: Mapping[str, Callable[[], Iterator[FamilyCase]]] = {
    "no point": lambda: with_curves([]),
    "one point": lambda: with_curves([0.5]),
    "all equal": lambda: with_curves([0.5] * 120),
    "all zero": lambda: with_curves([0.0] * 120),
    "NaN and without end": lambda: with_curves(
        [NAN] * 120, [INF] * 120, [-INF, *[0.5] * 60, NAN, *[0.4] * 60]
    ),
    "times that run backwards": lambda: with_curves([0.9**n for n in range(120)], step_s=-60),
    "all at one time": lambda: with_curves([0.9**n for n in range(120)], step_s=0),
    "beyond the run": lambda: with_curves([0.9**n for n in range(120)], step_s=86_400),
    "enormous and tiny": lambda: with_curves([1e300, *[1e-300] * 100], [-1e308, *[1e308] * 100]),
    "best at once, then flat": lambda: with_curves([1.0, *[0.2] * 150], [0.0, *[0.9] * 150]),
}
"""What is wrong with the curves."""


def every_status() -> Iterator[FamilyCase]:
    """AWS's own words, and one of none."""
    words = "Completed Failed Stopped InProgress Stopping Pending DeleteFailed Odd"
    for status in words.split():
        for secondary in (None, status, "Odd"):
            yield from altered(status=status, secondary_status=secondary)


def every_kind() -> Iterator[FamilyCase]:
    """A job that says to be another kind than it looks."""
    for kind in JobKind:
        yield from altered(kind=kind)


def every_purchase() -> Iterator[FamilyCase]:
    """On demand, spot, training plan, serverless: with and without a plan's name."""
    for purchase in Purchase:
        yield from altered(purchase=purchase, training_plan_arn=None)
        yield from altered(purchase=purchase, groups=(), max_wait_s=10**9, checkpointed=True)


def every_parent() -> Iterator[FamilyCase]:
    """Whatever started it."""
    for kind in ParentKind:
        yield from altered(parent=Parent(kind, "arn:aws:odd"), pipeline_step="")


def every_threshold(value: float) -> Iterator[FamilyCase]:
    """A policy that sets all thresholds to one number, or as near as their units allow."""
    from sageaudit.rules import catalogue

    limits = {
        rule.name.name: {
            one.key: min(value, 100.0) if one.unit.startswith("percent of ") else value
            for one in rule.thresholds
        }
        for rule in catalogue.load()
    }
    policy = replace(EVERY_RULE_ON, thresholds=limits)
    for run in (*workers(), *other_kinds()):
        yield case(run, policy=policy)
        yield case(run, measured(run, host("train/algo-1")[:2]), policy=policy)
    curve = [math.exp(-n) for n in range(150)]
    yield from (replace(one, policy=policy) for one in with_curves(curve))
