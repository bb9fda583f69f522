from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, NotApplicable
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.families import earlier_run
from tests.fakes.jobs import flat, phases, ran, series, usage
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "poor-scaling"
FOUR = ran(3600, "ml.m5.4xlarge", 4)
GPUS = ran(3600, "ml.g4dn.2xlarge", 4)
TWINS = ran(3600, "ml.m5.xlarge", 4, volume_gb=None, fingerprint="same", data_pinned=True)
"""Four ml.m5.xlarge for an hour: $0.92."""


def busy(run: Job = TWINS, **use: float) -> Measurements:
    """Hosts that are used well, unless said otherwise."""
    return flat(run, 60, hosts=run.instance_count or 0, **(use or {"cpu": 90.0}))


def family(*runs: tuple[int, int, str], **facts: Any) -> list[EarlierRun]:
    """Runs as (instances, seconds, dollars) of the same work."""
    return [
        earlier_run(
            day,
            total_usd=Decimal(usd),
            **{
                "instance_count": count,
                "elapsed_s": Decimal(seconds),
                "fingerprint": "same",
                "data_pinned": True,
                **facts,
            },
        )
        for day, (count, seconds, usd) in enumerate(runs, start=1)
    ]


CHEAPER_ON_ONE = ((4, 3600, "0.92"), (1, 7200, "0.46"), (1, 9000, "0.575"))


def told(runs: Sequence[EarlierRun], run: Job = TWINS) -> bool:
    """Does the family's history make it speak? The hosts are used well."""
    answer = outcome(RULE, run, busy(run), earlier=runs)
    assert isinstance(answer, Found | Clear), answer
    return isinstance(answer, Found)


def test_a_family_that_paid_less_on_fewer_is_told() -> None:
    """As slow as its slowest run on one: 2.5 h x $0.23; the range goes to the median, 2.25 h."""
    finding = priced(RULE, TWINS, busy(), earlier=family(*CHEAPER_ON_ONE))
    assert finding.found.summary == (
        "The same job costs $0.92 on 4 x ml.m5.xlarge and $0.52 on 1 (medians of 2 and 2 runs)."
    )
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.DERIVED, Bucket.AVOIDABLE,
    )  # fmt: skip
    assert [(fix.path, fix.old, fix.new) for fix in finding.found.fix] == [
        ("ResourceConfig.InstanceCount", 4, 1)
    ]
    # $0.92 - 2.5 h x $0.23, and $0.92 - 2.25 h x $0.23
    assert usd(finding.saving_usd) == "0.345000"
    assert [usd(end) for end in finding.range_usd or ()] == ["0.345000", "0.402500"]
    assert finding.found.evidence["runs_on_fewer"] == 2


def test_data_that_may_have_changed_are_not_counted() -> None:
    """Fewer hosts may have had less to do."""
    run = replace(TWINS, data_pinned=False)
    finding = priced(RULE, run, busy(), earlier=family(*CHEAPER_ON_ONE))
    assert finding.saving_usd == 0
    assert [usd(end) for end in finding.range_usd or ()] == ["0.000000", "0.402500"]
    assert "may have changed" in (finding.found.caution or "")


def test_ten_percent_dearer_are_told_and_less_is_not() -> None:
    """Of medians: $0.92 against $0.836363."""
    just = ((4, 3600, "0.92"), (2, 6000, "0.836"), (2, 6000, "0.836"))
    less = ((4, 3600, "0.92"), (2, 6000, "0.837"), (2, 6000, "0.837"))
    assert told(family(*just))
    assert not told(family(*less))


def test_one_run_of_a_count_is_an_accident() -> None:
    """Two are needed of each; this run is one of its own."""
    assert not told(family((4, 3600, "0.92"), (1, 7200, "0.46")))
    assert not told(family((1, 7200, "0.46"), (1, 7200, "0.46")))
    assert told(family(*CHEAPER_ON_ONE))


def test_the_cheapest_smaller_count_is_advised() -> None:
    """Of one and two; a larger one is no advice to save by."""
    runs = family(*CHEAPER_ON_ONE, (2, 3600, "0.46"), (2, 3600, "0.46"), (8, 60, "0.1"))
    [fix] = found(RULE, TWINS, busy(), earlier=runs).fix
    assert fix.new == 2
    assert not told(family((4, 3600, "0.92"), (8, 60, "0.03"), (8, 60, "0.03")))


@pytest.mark.parametrize(
    "other",
    [
        {"fingerprint": "other"},
        {"fingerprint": None},
        {"instance_type": "ml.m5.4xlarge"},
        {"purchase": Purchase.SPOT},
        {"status": "Stopped"},
        {"elapsed_s": None},
        {"instance_count": None},
    ],
)
def test_only_the_same_work_is_compared(other: dict[str, Any]) -> None:
    """Same code and inputs, type and purchase; completed, with known figures."""
    assert not told(family(*CHEAPER_ON_ONE, **other))


def test_a_run_that_failed_is_not_compared() -> None:
    """What it cost is not what the work costs."""
    assert not told(family(*CHEAPER_ON_ONE), replace(TWINS, status="Failed"))


def test_little_used_gpus_are_a_range_from_nothing() -> None:
    """Four at 20% are two at 40%: between nothing and half of 4 x $0.94."""
    of = flat(GPUS, 60, hosts=4, cpu=20, memory=10, gpu=20)
    finding = priced(RULE, GPUS, of)
    assert finding.found.summary == (
        "The GPU of each of 4 hosts averaged 20% or less over 1 h on "
        "4 x ml.g4dn.2xlarge: 2 could do the work."
    )
    assert [fix.new for fix in finding.found.fix] == [2]
    assert finding.saving_usd == 0
    assert [usd(end) for end in finding.range_usd or ()] == ["0.000000", "1.880000"]
    assert finding.found.confidence is Confidence.DERIVED


@pytest.mark.parametrize(("use", "judged"), [(24.9, True), (25, False)])
def test_a_quarter_of_the_gpus_is_used(use: float, judged: bool) -> None:
    """Jobstats' amber ends there."""
    answer = outcome(RULE, GPUS, flat(GPUS, 60, hosts=4, cpu=20, gpu=use))
    assert isinstance(answer, Found) is judged


@pytest.mark.parametrize(("use", "judged"), [(39.9, True), (40, False)])
def test_forty_percent_of_the_cpus_are_used(use: float, judged: bool) -> None:
    """On a CPU job."""
    answer = outcome(RULE, FOUR, flat(FOUR, 60, hosts=4, cpu=use))
    assert isinstance(answer, Found) is judged


def test_all_the_memory_must_fit() -> None:
    """5% of CPU fit on one host; 4 x 50% of memory plus 20% fill 2.4."""
    [alone] = found(RULE, FOUR, flat(FOUR, 60, hosts=4, cpu=5, memory=10)).fix
    assert alone.new == 1
    [held] = found(RULE, FOUR, flat(FOUR, 60, hosts=4, cpu=5, memory=50)).fix
    assert held.new == 3
    assert outcome(RULE, FOUR, flat(FOUR, 60, hosts=4, cpu=5, memory=80)) == Clear()


def test_a_host_whose_memory_is_not_known_is_taken_for_the_others() -> None:
    """One of four says 50%: the four fill 2.4 hosts, not 0.6."""
    cpu = [series(Metric.CPU, [80] * 60, host=f"train/algo-{n}") for n in range(1, 5)]
    [held] = found(RULE, FOUR, usage(FOUR, *cpu, series(Metric.MEMORY, [50] * 60))).fix
    assert held.new == 3


def test_one_well_used_host_keeps_all() -> None:
    """Every one must be little used."""
    run = ran(3600, "ml.m5.4xlarge", 2)
    of = usage(
        run,
        series(Metric.CPU, [80] * 60),
        series(Metric.CPU, [800] * 60, host="train/algo-2"),
    )
    assert outcome(RULE, run, of) == Clear()


def test_the_advised_count_gets_no_advice_back() -> None:
    """The same work on two hosts: 40% of each."""
    run = ran(3600, "ml.g4dn.2xlarge", 2)
    assert outcome(RULE, run, flat(run, 60, hosts=2, cpu=20, gpu=40)) == Clear()
    three = ran(3600, "ml.m5.4xlarge", 3)
    assert outcome(RULE, three, flat(three, 60, hosts=3, cpu=6.7, memory=66.7)) == Clear()


@pytest.mark.parametrize(("before", "silent"), [(8, True), (4, False), (None, False)])
def test_use_says_nothing_twice(before: int | None, silent: bool) -> None:
    """On 8 hosts it said fewer; on 4 they are as little used: that is not their number."""
    heeded = [earlier_run(1, instance_count=before, found=(RULE,), fingerprint="other")]
    answer = outcome(RULE, FOUR, busy(FOUR, cpu=20.0), earlier=heeded)
    assert isinstance(answer, Clear) is silent


def test_hosts_that_did_nothing_are_other_rules_stories() -> None:
    """Idle GPUs, and an idle run."""
    assert outcome(RULE, GPUS, flat(GPUS, 60, hosts=4, cpu=20, gpu=1)) == Clear()
    assert outcome(RULE, FOUR, flat(FOUR, 60, hosts=4, cpu=0)) == Clear()


@pytest.mark.parametrize(
    ("kind", "phase", "path"),
    [
        (JobKind.PROCESSING, "Processing", "ProcessingResources.ClusterConfig.InstanceCount"),
        (JobKind.TRANSFORM, "Transform", "TransformResources.InstanceCount"),
    ],
)
def test_each_kind_has_its_own_parameter(kind: JobKind, phase: str, path: str) -> None:
    """The same rule for three kinds."""
    run = replace(FOUR, kind=kind, phases=phases((phase, 3600)))
    of = usage(run, *(series(Metric.CPU, [80] * 60, host=f"train/algo-{n}") for n in range(1, 5)))
    assert [fix.path for fix in found(RULE, run, of).fix] == [path]


def test_one_instance_and_mixed_clusters_are_not_its_concern() -> None:
    """There is nothing to take away, or no count of one type."""
    one = ran(3600, "ml.m5.4xlarge")
    assert not_applicable(RULE, one, flat(one, 60, cpu=5)) == "it ran on one instance"
    groups = (InstanceGroup("ml.m5.4xlarge", 1), InstanceGroup("ml.m5.xlarge", 1))
    answer = outcome(RULE, ran(3600, groups=groups))
    assert answer == NotApplicable("its instances are in several groups")


def test_without_the_gpu_of_a_gpu_job_or_a_host_it_does_not_know() -> None:
    """Its card asks for CPU alone, which CPU jobs have too."""
    assert unknown(RULE, GPUS, flat(GPUS, 60, hosts=4, cpu=5)) == "metric_missing"
    assert unknown(RULE, FOUR, flat(FOUR, 60, hosts=3, cpu=5)) == "hosts_missing"


def test_late_gpu_points_are_too_few_to_judge() -> None:
    """Two thirds of them."""
    lines = [series(Metric.CPU, [160] * 60, host=f"train/algo-{n}") for n in range(1, 5)]
    lines += [
        series(Metric.GPU, [None] * 20 + [10] * 40, host=f"train/algo-{n}") for n in range(1, 5)
    ]
    assert unknown(RULE, GPUS, usage(GPUS, *lines)) == "coverage_low"
