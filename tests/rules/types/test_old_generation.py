from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import START, FixedPrices, ran, series
from tests.fakes.judging import found, not_applicable, outcome, priced, usd

RULE = "old-generation"
USD = {
    "ml.m4.xlarge": "0.24",
    "ml.m5.xlarge": "0.23",
    "ml.m7i.xlarge": "0.242",
    "ml.m4.10xlarge": "2.4",
    "ml.m5.12xlarge": "2.765",
    "ml.c4.8xlarge": "1.909",
    "ml.c6i.8xlarge": "1.632",
    "ml.c5.9xlarge": "1.836",
    "ml.p3.2xlarge": "3.825",
    "ml.g5.2xlarge": "1.515",
    "ml.p3.8xlarge": "14.688",
    "ml.g5.12xlarge": "7.09",
    "ml.p3.16xlarge": "28.152",
    "ml.g5.48xlarge": "20.36",
    "ml.p4d.24xlarge": "25.25",
}


def on(**changed: str) -> Market:
    """The catalogue at the rates above; keywords, such as `m5_xlarge`, change one."""
    rates = USD | {f"ml.{name.replace('_', '.')}": usd for name, usd in changed.items()}
    return Market(packaged.types(), FixedPrices(hourly_usd=rates))


def hour(instance: str, instances: int = 1, **changes: Any) -> Job:
    """An hour on it without a volume."""
    return ran(3600, instance, instances, volume_gb=0, **changes)


def used(run: Job, gpu: float = 40, memory: float = 20) -> Measurements:
    """Even use, in percent of all there is; CPU and GPU memory at a quarter."""
    kind = packaged.types()[run.groups[0].instance_type]
    points = {
        Metric.CPU: 25 * kind.vcpu,
        Metric.MEMORY: memory,
        Metric.GPU: gpu * kind.gpus,
        Metric.GPU_MEMORY: 25 * kind.gpus,
    }
    raw = [
        series(metric, [value] * 60, host=f"train/algo-{n}")
        for metric, value in points.items()
        for n in range(1, run.groups[0].count + 1)
    ]
    absent = Missing("metric_missing", "no points")
    return measure(run, raw, packaged.types(), absent=absent)


def test_a_cpu_type_is_moved_to_its_successor() -> None:
    """$0.24 less $0.23, for the same hour; the dearer m7i is not named."""
    finding = priced(RULE, hour("ml.m4.xlarge"), on=on())
    assert finding.found.summary == (
        "It ran on 1 x ml.m4.xlarge, an old generation: "
        "ml.m5.xlarge costs $0.230 instead of $0.240 an hour."
    )
    assert usd(finding.saving_usd) == "0.010000"
    [fix] = finding.found.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.InstanceType", "ml.m4.xlarge", "ml.m5.xlarge",
    )  # fmt: skip
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.DERIVED,
        Bucket.AVOIDABLE,
    )


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (JobKind.PROCESSING, "ProcessingResources.ClusterConfig.InstanceType"),
        (JobKind.TRANSFORM, "TransformResources.InstanceType"),
    ],
)
def test_other_kinds_of_job_have_their_own_path(kind: JobKind, path: str) -> None:
    """All three take the type."""
    [fix] = found(RULE, hour("ml.m4.xlarge", kind=kind), on=on()).fix
    assert fix.path == path


@pytest.mark.parametrize("instance", ["ml.m5.xlarge", "ml.g4dn.xlarge", "ml.g5.2xlarge"])
def test_a_current_generation_is_clear(instance: str) -> None:
    """So that the advised type gets no advice."""
    assert outcome(RULE, hour(instance), on=on()) == Clear()


def test_every_advised_type_is_clear_itself() -> None:
    """At the packaged prices, on every legacy CPU type."""
    legacy = [kind for kind in packaged.types().values() if kind.legacy and not kind.gpus]
    for kind in legacy:
        what = found(RULE, hour(kind.name), on=packaged.market())
        for fix in what.fix:
            assert outcome(RULE, hour(str(fix.new)), on=packaged.market()) == Clear()
    assert len(legacy) == 9


def test_a_cheaper_successor_is_taken_and_one_at_the_same_price_is_not() -> None:
    """A thousandth less than $0.24 is a saving; exactly $0.24 is none, and the type is named."""
    less = found(RULE, hour("ml.m4.xlarge"), on=on(m5_xlarge="0.239"))
    assert [fix.new for fix in less.fix] == ["ml.m5.xlarge"]
    dearer = found(RULE, hour("ml.m4.xlarge"), on=on(m5_xlarge="0.24"))
    assert (dearer.fix, dearer.change, dearer.bucket) == ((), None, Bucket.NONE)
    assert dearer.caution == (
        "Nothing is counted: no type with a known price is cheaper by the hour; without a price "
        "to compare: ml.m6i.xlarge, ml.m8i.xlarge, ml.r5.xlarge and 3 more. "
        "Its successors: ml.m5.xlarge or ml.m6i.xlarge (no price known here) or ml.m7i.xlarge."
    )
    assert dearer.summary == "It ran on 1 x ml.m4.xlarge, an old generation."


def test_a_smaller_successor_is_passed_over() -> None:
    """c6i.8xlarge has 32 vCPUs, c4.8xlarge 36: the dearer c5.9xlarge has as many."""
    finding = priced(RULE, hour("ml.c4.8xlarge"), on=on())
    assert [fix.new for fix in finding.found.fix] == ["ml.c5.9xlarge"]
    # 1.909 - 1.836
    assert usd(finding.saving_usd) == "0.073000"


@pytest.mark.parametrize(
    "other",
    [{"legacy": True}, {"kinds": frozenset({JobKind.TRANSFORM})}, None],
    ids=["old itself", "not for this kind of job", "not in the catalogue"],
)
def test_a_successor_that_the_job_cannot_use_is_passed_over(other: dict[str, Any] | None) -> None:
    """However cheap it is: the advice ends at a current type that takes the kind of job."""
    types = packaged.types()
    today, good = types["ml.m4.xlarge"], types["ml.m5.xlarge"]
    kinds = {**types, today.name: replace(today, successors=("ml.odd.xlarge", good.name))}
    if other is not None:
        kinds["ml.odd.xlarge"] = replace(good, name="ml.odd.xlarge", **other)
    cheap = Market(kinds, FixedPrices(hourly_usd={**USD, "ml.odd.xlarge": "0.1"}))
    finding = found(RULE, hour("ml.m4.xlarge"), on=cheap)
    assert [fix.new for fix in finding.fix] == ["ml.m5.xlarge"]


def test_without_both_prices_there_is_no_figure() -> None:
    """Neither today's nor the successor's may be guessed."""
    for lacking, why in (
        ("ml.m4.xlarge", "no price of ml.m4.xlarge is known"),
        ("ml.m5.xlarge", "no type with a known price is cheaper"),
    ):
        rates = {name: rate for name, rate in USD.items() if name not in {lacking, "ml.m7i.xlarge"}}
        market = Market(packaged.types(), FixedPrices(hourly_usd=rates))
        finding = priced(RULE, hour("ml.m4.xlarge"), on=market)
        assert finding.saving_usd is None
        assert why in (finding.found.caution or "")


def test_another_gpu_is_a_range_by_what_was_measured() -> None:
    """V100 to A10G: 1.6 times at most, at 40% busy 1 + 0.4 x 0.6 = 1.24 times."""
    run = hour("ml.p3.2xlarge")
    finding = priced(RULE, run, used(run), on=on())
    assert [fix.new for fix in finding.found.fix] == ["ml.g5.2xlarge"]
    # 3.825 - 1.515 x 1.24, and 3.825 - 1.515
    assert usd(finding.saving_usd) == "1.946400"
    assert finding.range_usd is not None
    assert [usd(end) for end in finding.range_usd] == ["1.946400", "2.310000"]
    assert "A10G took 0.59 to 1.60 times as long as V100" in (finding.found.caution or "")


def test_host_memory_must_hold_on_the_successor() -> None:
    """p3.2xlarge has 61 GiB, g5.2xlarge 32: 43% with a fifth of headroom is 31.5, 44% is 32.2."""
    run = hour("ml.p3.2xlarge")
    assert found(RULE, run, used(run, memory=43), on=on()).fix
    more = found(RULE, run, used(run, memory=44), on=on())
    assert more.fix == ()
    assert "host memory" in (more.caution or "")


def test_eight_gpus_on_nvlink_move_to_nvlink_only() -> None:
    """g5.48xlarge is cheaper, but joins its GPUs over PCIe: p4d.24xlarge it is, $2.902 less."""
    run = hour("ml.p3.16xlarge")
    finding = priced(RULE, run, used(run), on=on())
    assert [fix.new for fix in finding.found.fix] == ["ml.p4d.24xlarge"]
    assert usd(finding.saving_usd) == "2.902000"
    four = hour("ml.p3.8xlarge")
    vetoed = found(RULE, four, used(four), on=on())
    assert (vetoed.fix, vetoed.change) == ((), None)
    assert vetoed.caution == (
        "Nothing is counted: the nearest cheaper type, ml.g5.12xlarge, does not fit "
        "(its 4 V100 may exchange data over NVLink, which ml.g5.12xlarge lacks)."
    )


def test_several_gpu_instances_stay_where_they_are() -> None:
    """What the network between them (EFA above all) does on another type is not known."""
    run = hour("ml.p3.2xlarge", 2)
    vetoed = found(RULE, run, used(run), on=on())
    assert vetoed.fix == ()
    assert "with several instances the network" in (vetoed.caution or "")


def test_what_a_gpu_run_used_must_be_known() -> None:
    """Without metrics no type is advised; the cheaper one is mentioned."""
    run = hour("ml.p3.2xlarge")
    nothing = measure(run, (), packaged.types(), absent=Missing("metric_missing", "no points"))
    what = found(RULE, run, nothing, on=on())
    assert (what.fix, what.bucket, what.confidence) == ((), Bucket.NONE, Confidence.HEURISTIC)
    assert what.caution == (
        "Nothing is counted: whether ml.g5.2xlarge fits is not known "
        "(the host memory used is not known (no points)). Its successors: ml.g5.2xlarge."
    )


def test_a_run_too_short_to_size_says_what_its_gpu_did() -> None:
    """Eight minutes of a GPU at 2%: the move that holds in any case is counted, and no more."""
    run = ran(480, "ml.p3.2xlarge", 1, volume_gb=0)
    raw = [series(Metric.GPU, [2] * 8), series(Metric.CPU, [200] * 8)]
    absent = Missing("metric_missing", "no points")
    short = measure(run, raw, packaged.types(), absent=absent)
    what = found(RULE, run, short, on=on(g5_4xlarge="2.03"))
    assert [fix.new for fix in what.fix] == ["ml.g5.4xlarge"]
    caution = what.caution or ""
    assert "how busy it was is not known, so it is counted as always busy" in caution
    assert caution.endswith(
        "active minutes the GPU averaged 2%: too few of them to choose a smaller type by."
    )


def test_signs_of_16_bits_on_a_v100_are_no_veto() -> None:
    """It has no bf16 itself, so it cannot be that."""
    run = hour("ml.p3.2xlarge", hints=Hints(mixed_precision=True))
    assert found(RULE, run, used(run), on=on()).fix


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"groups": (InstanceGroup("ml.m4.xlarge", 1), InstanceGroup("ml.m5.xlarge", 1))},
            "several types",
        ),
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
        ({"free": "built-in Debugger rule"}, "Debugger"),
        (
            {
                "status": "Failed", "phases": (), "started_at": None, "training_s": None,
                "billable_s": None,
            },
            "never started",
        ),
    ],
)  # fmt: skip
def test_where_no_type_can_be_advised_it_says_nothing(changes: dict[str, Any], why: str) -> None:
    """And why."""
    assert why in not_applicable(RULE, hour("ml.m4.xlarge", **changes))


@pytest.mark.parametrize("groups", [(), (InstanceGroup("ml.zz9.xlarge", 1),)])
def test_a_type_that_nobody_knows_is_unknown(groups: tuple[InstanceGroup, ...]) -> None:
    """Its generation is not guessed from its name."""
    answer = outcome(RULE, hour("ml.m4.xlarge", groups=groups))
    assert isinstance(answer, Unknown)
    assert answer.code == "type_unknown"


def test_a_run_without_region_times_or_points_does_not_raise() -> None:
    """It has no figure."""
    broken = hour("ml.m4.xlarge", region=None, ended_at=START, training_s=None, billable_s=None)
    assert isinstance(outcome(RULE, broken, on=on()), Found)
    gpu = hour("ml.p3.2xlarge", region=None)
    assert "region" in (found(RULE, gpu, used(gpu), on=on()).caution or "")
    one = replace(gpu, region="us-east-1", training_s=Decimal(0), billable_s=Decimal(0))
    assert isinstance(outcome(RULE, one, on=on()), Found)
