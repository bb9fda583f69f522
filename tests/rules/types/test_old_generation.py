from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.finding import Clear
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.jobs import START, FixedPrices, even_use, ran, series, usage
from tests.fakes.judging import found, outcome
from tests.fakes.packaged_prices import packaged_market
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, lines, row

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


@later
def used(run: Job, gpu: float = 40, memory: float = 20) -> Measurements:
    """Even use, in percent of all there is; CPU and GPU memory at a quarter."""
    of = {"cpu": 25, "memory": memory, "gpu": gpu, "gpu_memory": 25}
    return even_use(run, (60, 60), run.instance_count or 1, of, packaged.types())


test_cases = cases(
    RULE,
    "A CPU type is moved to its successor.",
    # $0.24 less $0.23, for the same hour; the dearer m7i is not named.
    row(finds("It ran on 1 x ml.m4.xlarge, an old generation: "
        "ml.m5.xlarge costs $0.230 instead of $0.240 an hour.", usd="0.010000", builder="derived",
        fix=[("ResourceConfig.InstanceType", "ml.m4.xlarge", "ml.m5.xlarge")]),
        hour("ml.m4.xlarge")),
    "Other kinds of job have their own path. All three take the type.",
    row(finds(paths=["ProcessingResources.ClusterConfig.InstanceType"]), hour("ml.m4.xlarge",
        kind=JobKind.PROCESSING)),
    row(finds(paths=["TransformResources.InstanceType"]), hour("ml.m4.xlarge",
        kind=JobKind.TRANSFORM)),
    "A current generation is clear. So that the advised type gets no advice.",
    row(CLEAR, hour("ml.m5.xlarge")),
    row(CLEAR, hour("ml.g4dn.xlarge")),
    row(CLEAR, hour("ml.g5.2xlarge")),
    "A smaller successor is passed over.",
    # c6i.8xlarge has 32 vCPUs, c4.8xlarge 36: the dearer c5.9xlarge has as many.
    # 1.909 - 1.836
    row(finds(fix=["ml.c5.9xlarge"], usd="0.073000"), hour("ml.c4.8xlarge")),
    "Without both prices there is no figure. Neither today's nor the successor's may be guessed.",
    row(finds(usd=None, caution="…no price of ml.m4.xlarge is known…"), hour("ml.m4.xlarge"),
        on=Market(packaged.types(), FixedPrices(hourly_usd={name: rate for name,
        rate in USD.items() if name not in {"ml.m4.xlarge", "ml.m7i.xlarge"}}))),
    row(finds(usd=None, caution="…no type with a known price is cheaper…"), hour("ml.m4.xlarge"),
        on=Market(packaged.types(), FixedPrices(hourly_usd={name: rate for name,
        rate in USD.items() if name not in {"ml.m5.xlarge", "ml.m7i.xlarge"}}))),
    "Another GPU is a range by what was measured.",
    # V100 to A10G: 1.6 times at most, at 40% busy 1 + 0.4 x 0.6 = 1.24 times.
    # 3.825 - 1.515 x 1.24, and 3.825 - 1.515
    row(finds("It ran on 1 x ml.p3.2xlarge: ml.g5.2xlarge has a cheaper GPU, not a faster one "
        "(counted as 1.24 times as long), at $1.515 instead of $3.825 an hour.",
        fix=["ml.g5.2xlarge"], usd="1.946400", span=("1.946400", "2.310000"),
        caution="…A10G took 0.59 to 1.60 times as long as V100…"), hour("ml.p3.2xlarge"), used()),
    "Eight GPUs on NVLink move to NVLink only.",
    # g5.48xlarge is cheaper, but joins its GPUs over PCIe: p4d.24xlarge it is, $2.902 less.
    row(finds(fix=["ml.p4d.24xlarge"], usd="2.902000"), hour("ml.p3.16xlarge"), used()),
    row(finds(fix=[], change=None,
        caution="Nothing is counted: the nearest cheaper type, ml.g5.12xlarge, does not fit "
        "(its 4 V100 may exchange data over NVLink, which ml.g5.12xlarge lacks)."),
        hour("ml.p3.8xlarge"), used()),
    "Several GPU instances that may exchange data stay where they are.",
    # What the network between them (EFA above all) does on another type is not known.
    row(finds(fix=[], caution="…its instances may exchange data, as nothing splits it…"),
        hour("ml.p3.2xlarge", 2), used()),
    row(finds(fix=[], caution="…its instances exchange data as they work (ddp)…"),
        hour("ml.p3.2xlarge", 2, hints=Hints(distribution="ddp")), used()),
    "What a GPU run used must be known.",
    # Without metrics no type is advised; the cheaper one is mentioned.
    row(finds(fix=[], builder="advice",
        caution="Nothing is counted: whether ml.g5.2xlarge fits is not known "
        "(the host memory used is not known (no points)). Its successors: ml.g5.2xlarge."),
        hour("ml.p3.2xlarge"), lines(types=packaged.types())),
    "Where no type can be advised it says nothing.",
    row("not applicable: …several types…", hour("ml.m4.xlarge",
        groups=(InstanceGroup("ml.m4.xlarge", 1), InstanceGroup("ml.m5.xlarge", 1)))),
    row("not applicable: …prepaid…", hour("ml.m4.xlarge", purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: …Debugger…", hour("ml.m4.xlarge", free="built-in Debugger rule")),
    row("not applicable: …never started…", hour("ml.m4.xlarge", status="Failed", phases=(),
        started_at=None, training_s=None, billable_s=None)),
    "A type that nobody knows is unknown. Its generation is not guessed from its name.",
    row("unknown: type_unknown", hour("ml.m4.xlarge", groups=())),
    row("unknown: type_unknown", hour("ml.m4.xlarge", groups=(InstanceGroup("ml.zz9.xlarge", 1),))),
    "A run without region times or points does not raise. It has no figure.",
    row(FOUND, hour("ml.m4.xlarge", region=None, ended_at=START, training_s=None, billable_s=None)),
    row(finds(caution="…region…"), hour("ml.p3.2xlarge", region=None), used()),
    row(FOUND, replace(hour("ml.p3.2xlarge", region=None), region="us-east-1",
        training_s=Decimal(0), billable_s=Decimal(0))),
    "Host memory must hold on the successor.",
    # p3.2xlarge has 61 GiB, g5.2xlarge 32: 43% with a fifth of headroom is 31.5, 44% is 32.2.
    row(finds(fix=["ml.g5.2xlarge"]), hour("ml.p3.2xlarge"), used(memory=43)),
    row(finds(fix=[], caution="…host memory…"), hour("ml.p3.2xlarge"), used(memory=44)),
    "Signs of 16 bits on a V100 are no veto. It has no bf16 itself, so it cannot be that.",
    row(finds(fix=["ml.g5.2xlarge"]), hour("ml.p3.2xlarge", hints=Hints(mixed_precision=True)),
        used()),
    "A cheaper successor is taken and one at the same price is not; it is named.",
    row(finds(fix=["ml.m5.xlarge"]), hour("ml.m4.xlarge"), on=on(m5_xlarge="0.239")),
    row(finds("It ran on 1 x ml.m4.xlarge, an old generation.", fix=[], change=None, bucket="none",
        caution="Nothing is counted: no type with a known price is cheaper by the hour; without "
        "a price to compare: ml.m6i.xlarge, ml.m8i.xlarge, ml.r5.xlarge and 3 more. Its "
        "successors: ml.m5.xlarge or ml.m6i.xlarge (no price known here) or ml.m7i.xlarge."),
        hour("ml.m4.xlarge"), on=on(m5_xlarge="0.24")),
    on=on(),
)  # fmt: skip


def test_every_advised_type_is_clear_itself() -> None:
    """At the packaged prices, on every legacy CPU type."""
    legacy = [kind for kind in packaged.types().values() if kind.legacy and not kind.gpus]
    for kind in legacy:
        what = found(RULE, hour(kind.name), on=packaged_market())
        for fix in what.fix:
            assert outcome(RULE, hour(str(fix.new)), on=packaged_market()) == Clear()
    assert len(legacy) == 9


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


def test_a_run_too_short_to_size_says_what_its_gpu_did() -> None:
    """Eight minutes of a GPU at 2%: the move that holds in any case is counted, and no more."""
    run = ran(480, "ml.p3.2xlarge", 1, volume_gb=0)
    raw = [series(Metric.GPU, [2] * 8), series(Metric.CPU, [200] * 8)]
    short = usage(run, *raw, types=packaged.types())
    what = found(RULE, run, short, on=on(g5_4xlarge="2.03"))
    assert [fix.new for fix in what.fix] == ["ml.g5.4xlarge"]
    caution = what.caution or ""
    assert "how busy it was is not known, so it is counted as always busy" in caution
    assert caution.endswith(
        "active minutes the GPU averaged 2%: too few of them to choose a smaller type by."
    )
