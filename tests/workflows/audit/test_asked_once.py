"""One audit works nothing out twice: counted, since seconds differ by machine.

`make bench PART=core` measures them.
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from typing import ClassVar

import pytest
from msgspec import field

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.bill import billed_job
from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.finding import Detection
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market, Rate
from sageaudit.domain.resize import resize as resize_module
from sageaudit.domain.resize.resize import Resize, ResizeCache, resize
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.series import Series
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit import judge
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.jobs import TYPES, FixedPrices, flat, market, not_none, ran

LARGE = ran(7200, "ml.g4dn.12xlarge")
LITTLE_USED = flat(LARGE, 120, cpu=4, memory=4, gpu=5, gpu_memory=5)
HEADROOM = Decimal(20)


class CountedPrices(FixedPrices, frozen=True):
    """Counts how often each type's rate is asked for."""

    asked: Counter[str] = field(default_factory=Counter)

    def hourly_rate(self, region: str, component: Component, instance_type: str) -> Rate | None:
        self.asked[instance_type] += 1
        return super().hourly_rate(region, component, instance_type)


@pytest.fixture
def resizes(monkeypatch: pytest.MonkeyPatch) -> list[Decimal]:
    """The headroom of each resize that is really worked out."""
    headrooms: list[Decimal] = []

    def counted(
        job: Job, whole: Measurements, on: Market, *, headroom_percent: Decimal, **more: object
    ) -> Resize:
        headrooms.append(headroom_percent)
        return resize(job, whole, on, headroom_percent=headroom_percent, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(resize_module, "resize", counted)
    return headrooms


def audited(policy: Policy | None = None, on: Market | None = None) -> Audit:
    """A job that several rules resize."""
    return audit_job(
        LARGE,
        LITTLE_USED,
        on or market(),
        policy or Policy(),
        catalogue.ruleset(),
        now=LARGE.ended_at or LARGE.created_at,  # type: ignore[arg-type]
    )


def test_rules_that_ask_the_same_share_one_resize(resizes: list[Decimal]) -> None:
    """Several rules name a type here, of which one is counted."""
    named = [
        name.name
        for name, outcome in audited().outcomes
        if isinstance(outcome, Detection)
        and outcome.change
        and "type" in str(outcome.change).lower()
    ]
    assert len(named) > 1
    assert resizes == [HEADROOM]


def test_each_headroom_is_tried_once(resizes: list[Decimal]) -> None:
    """A rule whose policy asks for another headroom gets its own answer."""
    audited(Policy(thresholds={"cheaper-type": {"headroom_percent": 50.0}}))
    assert sorted(resizes) == [HEADROOM, Decimal(50)]


def test_the_next_audit_tries_again(resizes: list[Decimal]) -> None:
    """No answer outlives its audit."""
    audited()
    audited()
    assert resizes == [HEADROOM, HEADROOM]


def test_each_rate_is_asked_for_once() -> None:
    """By bills, resizes and rules together; the audit makes one market of the given one."""
    prices = CountedPrices()
    audited(on=Market(TYPES, prices))
    assert set(prices.asked) == set(TYPES)
    assert set(prices.asked.values()) == {1}


def test_the_next_audit_of_its_type_asks_for_no_rate() -> None:
    """Nor is any type looked at again that no such run can move to."""
    prices = CountedPrices()
    on = Market(TYPES, prices)
    audited(on=on)
    prices.asked.clear()
    audited(on=on)
    assert not prices.asked


def test_a_market_is_kept_for_the_newest_types_only() -> None:
    """So that a process that sees every type does not keep them all."""
    on = market()
    names = [f"ml.m5.{size}xlarge" for size in range(20)]
    relative_markets = [on.relative_to(ran(60, name)) for name in names]
    assert on.relative_to(ran(60, names[-1])) is relative_markets[-1]
    assert on.relative_to(ran(60, names[0])) is not relative_markets[0]


def test_an_audit_builds_few_bills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own, and one for each change of a finding at most; a move to a type needs none."""
    built: list[Job] = []

    def counted(job: Job, on: Market) -> Bill:
        built.append(job)
        return bill(job, on)

    for module in (billed_job, resize_module, judge):
        monkeypatch.setattr(module, "bill", counted)
    findings = audited().savings.findings
    changes = [finding.detection.change for finding in findings if finding.detection.change]
    assert len(changes) > 1
    assert len(built) <= 1 + len(changes)


class CountedSeries(Series, frozen=True, dict=True):
    """Counts how often the points that are there are picked."""

    picked: ClassVar[list[int]] = []

    @cached_property
    def present(self) -> Sequence[float]:
        self.picked.append(id(self))
        return [value for value in self.values if value is not None]


def test_the_points_of_a_host_are_picked_once() -> None:
    """Whatever number of rules asks for them."""
    series = {
        metric: {host: CountedSeries(line.values) for host, line in hosts.items()}
        for metric, hosts in LITTLE_USED.series.items()
    }
    CountedSeries.picked.clear()
    usage = replace(LITTLE_USED, series=series)
    audit_job(LARGE, usage, market(), Policy(), catalogue.ruleset(), now=not_none(LARGE.ended_at))
    assert set(Counter(CountedSeries.picked).values()) == {1}


def test_other_minutes_are_another_question() -> None:
    """Also where the job, its market and the headroom are the same."""
    cache, gpu_market = ResizeCache(), market()
    busy = flat(LARGE, 120, cpu=90, memory=90, gpu=95, gpu_memory=90)
    little = cache.resize(LARGE, LITTLE_USED, gpu_market, HEADROOM)
    assert cache.resize(LARGE, busy, gpu_market, HEADROOM).demand != little.demand
    assert cache.resize(LARGE, replace(LITTLE_USED), gpu_market, HEADROOM) is little


@pytest.mark.parametrize("name", sorted(TYPES))
@pytest.mark.parametrize("percent", [1, 30, 95])
def test_types_that_are_left_out_are_never_named(name: str, percent: int) -> None:
    """What rules read of a resize is the same with all types in it."""
    run = ran(7200, name)
    used = flat(run, 120, cpu=percent, memory=percent, gpu=percent, gpu_memory=percent)
    on = market(estimated=frozenset({"ml.g4dn.xlarge"}))
    fewer = ResizeCache().resize(run, used, on, HEADROOM)
    every = resize(run, used, on, headroom_percent=HEADROOM)
    assert (list(fewer.certain_savings), list(fewer.possible_savings)) == (
        list(every.certain_savings),
        list(every.possible_savings),
    )
    assert list(fewer.unrecorded_refusals) == list(every.unrecorded_refusals)
    assert fewer.feasible_unpriced_by_size == every.feasible_unpriced_by_size
    cheaper = [candidate for candidate in every.candidates if every.is_cheaper_per_hour(candidate)]
    assert [
        candidate for candidate in fewer.candidates if fewer.is_cheaper_per_hour(candidate)
    ] == cheaper
