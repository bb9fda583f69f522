"""What holds of the idle capacity of any run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.audit.document import document
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.change import Change, CutPhase, DropRun, SetCount, SetPurchase, SetType
from sageaudit.domain.bill.counterfactual import Savings, Severities, allocate
from sageaudit.domain.bill.finding import Bucket, Confidence, Found, RuleName
from sageaudit.domain.bill.idle_capacity import IdleCapacity, idle_capacity
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.rules.card import Ruleset
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.jobs import START, job, market, phases, series, usage

pytestmark = pytest.mark.money

FAST = settings(max_examples=150, deadline=None, derandomize=True, database=None)
ALMOST_NOTHING = Decimal("1e-18")
"""Division has 28 digits: two ways to one sum may differ in the last ones."""
MARKET = market()
GPUS = {"ml.g4dn.xlarge": 1, "ml.g5.2xlarge": 1, "ml.g4dn.12xlarge": 4}
VCPUS = {"ml.m5.large": 2, "ml.m5.4xlarge": 16, "ml.unpriced.xlarge": 4}
MINUTES = 10

POINTS = st.lists(st.floats(0, 100), min_size=MINUTES, max_size=MINUTES)
SLOWER = st.decimals(1, 4, places=2)
GAPS = st.frozensets(st.integers(0, MINUTES - 1), max_size=3)
"""As many missing points as the gate lets pass."""

Hosts = list[list[float | None]]
"""The points of each host, 0..100 of all its devices."""


@st.composite
def runs(draw: st.DrawFn) -> tuple[Job, Hosts]:
    """A run of ten minutes of Training on one to three hosts, with enough points on each."""
    instance, count = draw(st.sampled_from([*GPUS, *VCPUS])), draw(st.integers(1, 3))
    down, up = draw(st.integers(0, 4000)), draw(st.integers(0, 4000))
    total = down + 60 * MINUTES + up
    spot, plan = draw(st.none() | st.integers(0, total)), draw(st.booleans())
    purchase = Purchase.TRAINING_PLAN if plan else Purchase.ON_DEMAND
    of = job(
        instance,
        count,
        phases=phases(("Training", 60 * MINUTES), ("Downloading", down), ("Uploading", up)),
        training_s=Decimal(total),
        billable_s=Decimal(total if spot is None else spot),
        purchase=purchase if spot is None else Purchase.SPOT,
    )
    hosts: Hosts = [list(draw(POINTS)) for _ in range(count)]
    for line in hosts:
        for gap in draw(GAPS):
            line[gap] = None
    return of, hosts


def changes() -> st.SearchStrategy[tuple[Bucket, Change]]:
    """Counted fixes of every kind that changes compute."""
    avoidable = st.one_of(
        st.builds(
            CutPhase,
            st.sampled_from(["Downloading", "Training", "Uploading"]),
            st.integers(0, 5000).map(Decimal),
        ),
        st.builds(SetType, st.sampled_from([*GPUS, *VCPUS]), SLOWER),
        st.builds(SetCount, st.integers(1, 4), SLOWER),
        st.builds(SetPurchase, st.decimals("0.05", 1, places=2)),
    )
    return st.one_of(
        st.tuples(st.just(Bucket.AVOIDABLE), avoidable),
        st.tuples(st.just(Bucket.LOST), st.just(DropRun())),
    )


def measured(of: Job, hosts: Hosts) -> Measurements:
    """GPU points of a GPU job, CPU points of any other."""
    instance = of.groups[0].instance_type
    metric = Metric.GPU if instance in GPUS else Metric.CPU
    each = (GPUS | VCPUS)[instance]
    return usage(
        of,
        *(
            series(metric, [None if v is None else v * each for v in line], host=f"train/algo-{n}")
            for n, line in enumerate(hosts, 1)
        ),
    )


def savings_of(of: Job, found: Sequence[tuple[Bucket, Change]]) -> Savings:
    """With these findings."""
    founds = [
        (RuleName(f"SA{n}", f"r{n}"), Found(Confidence.DERIVED, bucket, "", {}, change=change))
        for n, (bucket, change) in enumerate(found)
    ]
    return allocate(of, bill(of, MARKET), founds, MARKET, Severities(), {})


def known(of: Job, hosts: Hosts, found: Sequence[tuple[Bucket, Change]] = ()) -> IdleCapacity:
    """The idle capacity: the runs of this module have points enough."""
    savings = savings_of(of, found)
    figure = idle_capacity(of, measured(of, hosts), bill(of, MARKET), MARKET, savings)
    assert isinstance(figure, IdleCapacity)
    return figure


@FAST
@given(runs(), st.lists(changes(), max_size=4))
def test_what_was_paid_was_worked_or_idle(
    run: tuple[Job, Hosts], found: list[tuple[Bucket, Change]]
) -> None:
    """Nothing is negative, the value is at most the compute lines, and no more of it is counted."""
    figure = known(*run, found)
    assert abs(figure.idle + figure.worked - figure.paid) < ALMOST_NOTHING
    assert 0 <= figure.worked <= figure.paid
    assert figure.unit == ("gpu_hours" if run[0].groups[0].instance_type in GPUS else "vcpu_hours")
    if figure.list_usd is None or figure.counted_usd is None:
        assert figure.list_usd is figure.counted_usd is None
        return
    assert 0 <= figure.counted_usd <= figure.list_usd
    compute = bill(replace(run[0], purchase=Purchase.ON_DEMAND), MARKET).compute_usd
    assert compute is not None
    assert figure.list_usd <= compute + ALMOST_NOTHING
    savings = savings_of(run[0], found)
    if savings.avoidable_usd is not None and savings.lost_usd is not None:
        in_sums = savings.avoidable_usd + savings.lost_usd
        assert figure.counted_usd <= in_sums + ALMOST_NOTHING


@FAST
@given(runs(), st.data())
def test_more_idleness_never_finds_fewer_idle_hours(
    run: tuple[Job, Hosts], data: st.DataObject
) -> None:
    """Any point lowered; and a point that comes later takes no idle hour back."""
    of, hosts = run
    host = data.draw(st.integers(0, len(hosts) - 1))
    minute = data.draw(st.sampled_from([n for n, v in enumerate(hosts[host]) if v is not None]))
    lower = [list(line) for line in hosts]
    lower[host][minute] = data.draw(st.floats(0, hosts[host][minute] or 0))
    assert known(of, lower).idle >= known(of, hosts).idle
    filled: Hosts = [
        [data.draw(st.floats(0, 100)) if v is None else v for v in line] for line in hosts
    ]
    assert known(of, filled).idle >= known(of, hosts).idle


@FAST
@given(runs(), st.integers(1, 90_000))
def test_an_idle_end_that_is_longer_finds_more_idle_hours(
    run: tuple[Job, Hosts], more_s: int
) -> None:
    """So many seconds of an upload on top, all of them billed."""
    of, hosts = run
    total_s = (of.training_s or Decimal(0)) + more_s
    longer = replace(
        of,
        phases=(*of.phases, replace(of.phases[-1], seconds=Decimal(more_s))),
        training_s=total_s,
        billable_s=total_s,
        purchase=Purchase.ON_DEMAND,
    )
    before = replace(of, billable_s=of.training_s, purchase=Purchase.ON_DEMAND)
    after = known(longer, hosts)
    assert after.idle > known(before, hosts).idle
    assert abs(after.worked - known(before, hosts).worked) < ALMOST_NOTHING


@FAST
@given(runs())
def test_the_written_figure_adds_up_too(run: tuple[Job, Hosts]) -> None:
    """Rounded to 6 decimals, worked and idle are still exactly what was paid."""
    of, hosts = run
    audit = audit_job(of, measured(of, hosts), MARKET, Policy(), Ruleset((), "none"), now=START)
    written = document(audit)["idle_capacity"]
    assert written is not None
    assert written["worked"] + written["idle"] == written["paid"]
    assert written["worked"] >= 0
    assert written["idle"] >= 0
