from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.finding import Clear
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.structs import replace
from tests.fakes.jobs import START, FixedPrices, by_point, even, ran
from tests.fakes.judging import answer, expect_detection, outcome
from tests.fakes.packaged_prices import packaged_market
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    finds,
    given_job,
    measured,
    one_host,
)

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


def market_with(**changed: str) -> Market:
    """The catalogue at the rates above; keywords, such as `m5_xlarge`, change one."""
    rates = USD | {f"ml.{name.replace('_', '.')}": usd for name, usd in changed.items()}
    return Market(packaged.instance_types(), FixedPrices(hourly_usd=rates))


def hour(instance: str, instances: int = 1, **changes: Any) -> Job:
    """An hour on it without a volume."""
    return ran(3600, instance, instances, volume_gb=0, **changes)


def market_without(*names: str) -> Market:
    """The same without the rates of these types."""
    rates = {name: usd for name, usd in USD.items() if name not in names}
    return Market(packaged.instance_types(), FixedPrices(hourly_usd=rates))


@given_job
def even_use(run: Job, gpu: float = 40, memory: float = 20) -> Measurements:
    """Even use, in percent of all there is; CPU and GPU memory at a quarter."""
    percents = {"cpu": 25, "memory": memory, "gpu": gpu, "gpu_memory": 25}
    return by_point(
        run, run.instance_count or 1, even(60, percents), types=packaged.instance_types()
    )


verdict = partial(answer, RULE, market=market_with())


def test_a_cpu_type_is_moved_to_its_successor() -> None:
    # $0.24 less $0.23, for the same hour; the dearer m7i is not named.
    assert verdict(hour("ml.m4.xlarge")) == finds(
        "It ran on 1 x ml.m4.xlarge, an old generation: "
        "ml.m5.xlarge costs $0.23 an hour instead of $0.24.",
        usd="0.010000",
        builder="derived",
        fix=[("ResourceConfig.InstanceType", "ml.m4.xlarge", "ml.m5.xlarge")],
    )


def test_other_kinds_of_job_have_their_own_path() -> None:
    """All three take the type."""
    result = verdict(hour("ml.m4.xlarge", kind=JobKind.PROCESSING))
    assert result == finds(paths=["ProcessingResources.ClusterConfig.InstanceType"])
    result = verdict(hour("ml.m4.xlarge", kind=JobKind.TRANSFORM))
    assert result == finds(paths=["TransformResources.InstanceType"])


def test_a_current_generation_is_clear() -> None:
    """So that the advised type gets no advice."""
    assert verdict(hour("ml.m5.xlarge")) == CLEAR
    assert verdict(hour("ml.g4dn.xlarge")) == CLEAR
    assert verdict(hour("ml.g5.2xlarge")) == CLEAR


def test_a_smaller_successor_is_passed_over() -> None:
    # c6i.8xlarge has 32 vCPUs, c4.8xlarge 36: the dearer c5.9xlarge has as many.
    # 1.909 - 1.836
    assert verdict(hour("ml.c4.8xlarge")) == finds(fix=["ml.c5.9xlarge"], usd="0.073000")


def test_without_both_prices_there_is_no_figure() -> None:
    """Neither today's nor the successor's may be guessed."""
    result = verdict(hour("ml.m4.xlarge"), market=market_without("ml.m4.xlarge", "ml.m7i.xlarge"))
    assert result == finds(usd=None, caution="…no price of ml.m4.xlarge is known…")
    result = verdict(hour("ml.m4.xlarge"), market=market_without("ml.m5.xlarge", "ml.m7i.xlarge"))
    assert result == finds(usd=None, caution="…no type with a known price costs less…")


def test_another_gpu_is_a_range_by_what_was_measured() -> None:
    # V100 to A10G: 1.6 times at most, at 40% busy 1 + 0.4 x 0.6 = 1.24 times.
    # 3.825 - 1.515 x 1.24, and 3.825 - 1.515
    assert verdict(hour("ml.p3.2xlarge"), even_use()) == finds(
        "It ran on 1 x ml.p3.2xlarge: ml.g5.2xlarge costs $1.515 an hour instead of $3.825. Its "
        "GPU is not faster: the saving assumes 1.24 times the run time.",
        fix=["ml.g5.2xlarge"],
        usd="1.946400",
        span=("1.946400", "2.310000"),
        caution="…A10G took 0.59 to 1.60 times as long as the V100…",
    )


def test_eight_gpus_on_nvlink_move_to_nvlink_only() -> None:
    # g5.48xlarge is cheaper, but joins its GPUs over PCIe: p4d.24xlarge it is, $2.902 less.
    assert verdict(hour("ml.p3.16xlarge"), even_use()) == finds(
        fix=["ml.p4d.24xlarge"], usd="2.902000"
    )
    assert verdict(hour("ml.p3.8xlarge"), even_use()) == finds(
        fix=[],
        change=None,
        caution="Nothing is counted: the nearest cheaper type, ml.g5.12xlarge, does not fit "
        "(its 4 V100 may exchange data over NVLink, which ml.g5.12xlarge lacks).",
    )


def test_several_gpu_instances_that_may_exchange_data_stay_where_they_are() -> None:
    # What the network between them (EFA above all) does on another type is not known.
    assert verdict(hour("ml.p3.2xlarge", 2), even_use()) == finds(
        fix=[], caution="…its instances may exchange data, as nothing splits it…"
    )
    result = verdict(hour("ml.p3.2xlarge", 2, hints=Hints(distribution="ddp")), even_use())
    assert result == finds(fix=[], caution="…its instances exchange data as they work (ddp)…")


def test_what_a_gpu_run_used_must_be_known() -> None:
    # Without metrics no type is advised; the cheaper one is mentioned.
    result = verdict(hour("ml.p3.2xlarge"), measured(types=packaged.instance_types()))
    assert result == finds(
        fix=[],
        builder="advice",
        caution="Nothing is counted: whether ml.g5.2xlarge fits is not known "
        "(the host memory used is not known (no points)). Its successors: ml.g5.2xlarge.",
    )


def test_where_no_type_can_be_advised_it_says_nothing() -> None:
    result = verdict(
        hour(
            "ml.m4.xlarge",
            groups=(InstanceGroup("ml.m4.xlarge", 1), InstanceGroup("ml.m5.xlarge", 1)),
        )
    )
    assert result == does_not_apply("…several types…")
    result = verdict(hour("ml.m4.xlarge", purchase=Purchase.TRAINING_PLAN))
    assert result == does_not_apply("…prepaid…")
    result = verdict(hour("ml.m4.xlarge", free="built-in Debugger rule"))
    assert result == does_not_apply("…Debugger…")
    result = verdict(
        hour(
            "ml.m4.xlarge",
            status="Failed",
            phases=(),
            started_at=None,
            training_s=None,
            billable_s=None,
        )
    )
    assert result == does_not_apply("…never started…")


def test_a_type_that_nobody_knows_is_unknown() -> None:
    """Its generation is not guessed from its name."""
    assert verdict(hour("ml.m4.xlarge", groups=())) == cannot_judge("type_unknown")
    result = verdict(hour("ml.m4.xlarge", groups=(InstanceGroup("ml.zz9.xlarge", 1),)))
    assert result == cannot_judge("type_unknown")


def test_a_run_without_region_times_or_points_does_not_raise() -> None:
    """It has no figure."""
    result = verdict(
        hour("ml.m4.xlarge", region=None, ended_at=START, training_s=None, billable_s=None)
    )
    assert result == FOUND
    assert verdict(hour("ml.p3.2xlarge", region=None), even_use()) == finds(caution="…region…")
    result = verdict(
        replace(
            hour("ml.p3.2xlarge", region=None),
            region="us-east-1",
            training_s=Decimal(0),
            billable_s=Decimal(0),
        )
    )
    assert result == FOUND


def test_host_memory_must_hold_on_the_successor() -> None:
    # p3.2xlarge has 61 GiB, g5.2xlarge 32: 43% with a fifth of headroom is 31.5, 44% is 32.2.
    assert verdict(hour("ml.p3.2xlarge"), even_use(memory=43)) == finds(fix=["ml.g5.2xlarge"])
    assert verdict(hour("ml.p3.2xlarge"), even_use(memory=44)) == finds(
        fix=[], caution="…host memory…"
    )


def test_signs_of_16_bits_on_a_v100_are_no_veto() -> None:
    """It has no bf16 itself, so it cannot be that."""
    result = verdict(hour("ml.p3.2xlarge", hints=Hints(mixed_precision=True)), even_use())
    assert result == finds(fix=["ml.g5.2xlarge"])


def test_a_cheaper_successor_is_taken_and_one_at_the_same_price_is_not_it_is_named() -> None:
    assert verdict(hour("ml.m4.xlarge"), market=market_with(m5_xlarge="0.239")) == finds(
        fix=["ml.m5.xlarge"]
    )
    result = verdict(hour("ml.m4.xlarge"), market=market_with(m5_xlarge="0.24"))
    assert result == finds(
        "It ran on 1 x ml.m4.xlarge, an old generation.",
        fix=[],
        change=None,
        bucket="none",
        caution="Nothing is counted: no type with a known price costs less per hour; without "
        "a price to compare: ml.m6i.xlarge, ml.m8i.xlarge, ml.r5.xlarge and 3 more. Its "
        "successors: ml.m5.xlarge or ml.m6i.xlarge (no price known here) or ml.m7i.xlarge.",
    )


def test_every_advised_type_is_clear_itself() -> None:
    """At the packaged prices, on every legacy CPU type."""
    legacy = [
        kind for kind in packaged.instance_types().values() if kind.is_legacy and not kind.gpus
    ]
    for kind in legacy:
        finding = expect_detection(RULE, hour(kind.name), market=packaged_market())
        for fix in finding.fix:
            assert outcome(RULE, hour(str(fix.new)), market=packaged_market()) == Clear()
    assert len(legacy) == 9


@pytest.mark.parametrize(
    "other",
    [{"is_legacy": True}, {"kinds": frozenset({JobKind.TRANSFORM})}, None],
    ids=["old itself", "not for this kind of job", "not in the catalogue"],
)
def test_a_successor_that_the_job_cannot_use_is_passed_over(other: dict[str, Any] | None) -> None:
    """However cheap it is: the advice ends at a current type that takes the kind of job."""
    types = packaged.instance_types()
    today, good = types["ml.m4.xlarge"], types["ml.m5.xlarge"]
    kinds = {**types, today.name: replace(today, successors=("ml.odd.xlarge", good.name))}
    if other is not None:
        kinds["ml.odd.xlarge"] = replace(good, name="ml.odd.xlarge", **other)
    cheap = Market(kinds, FixedPrices(hourly_usd={**USD, "ml.odd.xlarge": "0.1"}))
    assert verdict(hour("ml.m4.xlarge"), market=cheap) == finds(fix=["ml.m5.xlarge"])


def test_a_run_too_short_to_size_says_what_its_gpu_did() -> None:
    """Eight minutes of a GPU at 2%: the move that holds in any case is counted, and no more."""
    result = verdict(
        ran(480, "ml.p3.2xlarge", volume_gb=0),
        one_host(gpu=[2] * 8, cores=[2.0] * 8, types=packaged.instance_types()),
        market=market_with(g5_4xlarge="2.03"),
    )
    assert result == finds(
        fix=["ml.g5.4xlarge"],
        caution="…ow busy the GPU was is not known, so it is counted as always busy…active minutes "
        "the GPU averaged 2%: too few to choose a smaller type by.",
    )
