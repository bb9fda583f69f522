from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, NotApplicable
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Metric, Missing
from tests.fakes.jobs import TYPES, flat, instance_type, market, phases, ran, series, usage
from tests.fakes.judging import card, found, outcome, priced, unknown, usd

RULE = "gpu-idle"
ONE = ran(3600, "ml.g4dn.xlarge")


def test_a_gpu_that_never_worked_is_not_needed() -> None:
    """The same hour on ml.m5.xlarge: 4 vCPU and 16 GiB as before, plus its volume."""
    finding = priced(RULE, ONE, flat(ONE, 60, gpu=0, cpu=50))
    what = finding.found
    assert what.summary == "The GPU did nothing for 1 h on 1 x ml.g4dn.xlarge."
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.InstanceType", "ml.g4dn.xlarge", "ml.m5.xlarge",
    )  # fmt: skip
    # 0.736 - 0.23 - 30 GB x 1 h / 744 h x 0.14
    assert usd(finding.saving_usd) == "0.500355"
    assert (what.confidence, what.bucket) == (Confidence.DERIVED, Bucket.AVOIDABLE)
    assert what.evidence["cpu_mean_cores"] == 2.0
    assert "correct that instead" in (what.caution or "")


def test_the_cheapest_cpu_type_that_holds_the_rest_is_named() -> None:
    """1 of 4 cores and 3.2 of 16 GiB with 20% fit 2 vCPUs and 8 GiB."""
    what = found(RULE, ONE, flat(ONE, 60, gpu=0, cpu=25, memory=20))
    assert [fix.new for fix in what.fix] == ["ml.m5.large"]


@pytest.mark.parametrize("run", [ONE, ran(3600, "ml.g4dn.12xlarge")])
def test_one_percent_of_one_gpu_is_nothing_and_more_in_one_minute_is_not(run: Job) -> None:
    """Of all GPUs of a host together: CloudWatch gives their sum."""
    for most, nothing in ((1.0, True), (1.1, False)):
        points = [0.0] * 59 + [most]
        of = usage(run, series(Metric.GPU, points), series(Metric.CPU, [200] * 60))
        assert ("did nothing" in found(RULE, run, of).summary) is nothing


def test_a_gpu_at_three_percent_did_almost_nothing() -> None:
    """It is told with its figure, and no CPU type is counted for it."""
    what = found(RULE, ONE, flat(ONE, 60, gpu=3, cpu=50))
    assert what.summary == ("The GPU averaged 3% over 1 h on 1 x ml.g4dn.xlarge: almost nothing.")
    assert (what.bucket, what.change) == (Bucket.NONE, None)
    assert "try a CPU type" in (what.caution or "")


def test_almost_nothing_is_of_one_gpu_not_of_all() -> None:
    """3% of each of four GPUs is 12% of one: little work, but work."""
    four = ran(3600, "ml.g4dn.12xlarge")
    assert outcome(RULE, four, flat(four, 60, gpu=3, cpu=50)) == Clear()
    what = found(RULE, four, flat(four, 60, gpu=0.5, cpu=50))
    assert "The 4 GPUs of a host together averaged 2% of one GPU over 1 h" in what.summary


@pytest.mark.parametrize(
    ("gpu", "told"),
    [
        ([4.9] * 60, True),
        ([5.0] * 60, False),
        ([0.5] * 60 + [1.2], True),
        ([2.0] * 54 + [12.0] * 6, False),
    ],
)
def test_the_limits_of_almost_nothing(gpu: list[float], told: bool) -> None:
    """A mean under 5% and a P95 of at most 10%: six minutes of an hour above it are work."""
    of = usage(ONE, series(Metric.GPU, gpu), series(Metric.CPU, [200] * len(gpu)))
    assert isinstance(outcome(RULE, ONE, of), Found) is told


def test_a_gpu_that_waits_for_a_cpu_at_its_limit_is_left_to_cpu_bottleneck() -> None:
    """4% is all that the cores could feed it."""
    of = flat(ONE, 60, gpu=4, cpu=97)
    assert outcome(RULE, ONE, of) == Clear()
    assert isinstance(outcome("cpu-bottleneck", ONE, of), Found)


def test_a_gpu_that_only_starts_late_is_another_story() -> None:
    """Half an hour of 0 and then work: idle-start tells it."""
    of = usage(ONE, series(Metric.GPU, [0] * 30 + [90] * 30), series(Metric.CPU, [200] * 60))
    assert outcome(RULE, ONE, of) == Clear()


def test_exactly_fifteen_minutes_are_enough() -> None:
    """Of the whole run, idle head and tail among them."""
    just = ran(900, "ml.g4dn.xlarge")
    assert isinstance(outcome(RULE, just, flat(just, 15, gpu=0, cpu=50)), Found)
    head = usage(just, series(Metric.GPU, [0] * 15), series(Metric.CPU, [0] * 5 + [200] * 10))
    assert isinstance(outcome(RULE, just, head), Found)


def test_the_policy_may_wait_longer() -> None:
    """As Job Defense Shield does: 120 minutes; an hour is clear then."""
    of = flat(ONE, 60, gpu=0, cpu=50)
    assert outcome(RULE, ONE, of, limits={"from_minutes": 61}) == Clear()
    assert isinstance(outcome(RULE, ONE, of, limits={"from_minutes": 60}), Found)


def test_late_points_leave_enough() -> None:
    """The first GPU points come 3 to 6 minutes late: 54 of 60 are judged."""
    late = usage(ONE, series(Metric.GPU, [None] * 6 + [0] * 54), series(Metric.CPU, [200] * 60))
    assert isinstance(outcome(RULE, ONE, late), Found)


def test_a_host_without_points_may_have_worked() -> None:
    """Three of four hosts are 75% of the points; the fourth is not known to be idle."""
    run = ran(3600, "ml.g4dn.xlarge", 4)
    assert unknown(RULE, run, flat(run, 60, hosts=3, gpu=0, cpu=50)) == "hosts_missing"
    assert isinstance(outcome(RULE, run, flat(run, 60, hosts=4, gpu=0, cpu=50)), Found)


def test_trainium_reports_no_such_metric() -> None:
    """Unknown, not free of waste."""
    types = TYPES | {
        "ml.trn1.2xlarge": instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron")
    }
    run = ran(3600, "ml.trn1.2xlarge")
    raw = [series(Metric.CPU, [100] * 60)]
    of = measure(run, raw, types, absent=Missing("metric_missing", "no points"))
    assert of.missing[Metric.GPU].code == "accelerator_unseen"
    assert unknown(RULE, run, of) == "accelerator_unseen"


def test_a_training_plan_gets_no_other_type() -> None:
    """It is prepaid for this one; that the GPU did nothing is said all the same."""
    run = replace(ONE, purchase=Purchase.TRAINING_PLAN)
    what = found(RULE, run, flat(run, 60, gpu=0, cpu=50))
    assert (what.fix, what.change, what.bucket) == ((), None, Bucket.NONE)
    assert "prepaid" in (what.caution or "")


def test_a_mixed_cluster_gets_no_other_type() -> None:
    """Two sizes with one GPU each: idle, and no host has a map to its type."""
    run = replace(
        ONE, groups=(InstanceGroup("ml.g4dn.xlarge", 1), InstanceGroup("ml.g5.2xlarge", 1))
    )
    of = usage(run, *(series(Metric.GPU, [0] * 60, host=f"train/algo-{n}") for n in (1, 2)))
    what = found(RULE, run, of)
    assert (what.fix, what.bucket) == ((), Bucket.NONE)
    assert "which host is in which" in (what.caution or "")


def test_cpu_use_that_no_cheaper_type_holds_gets_no_figure() -> None:
    """95% of 4 vCPUs with 20% fit today's 4, and not where only 2 are cheaper."""
    of = flat(ONE, 60, gpu=0, cpu=95, memory=10)
    assert [fix.new for fix in found(RULE, ONE, of).fix] == ["ml.m5.xlarge"]
    only = market(hourly_usd={"ml.g4dn.xlarge": "0.736", "ml.m5.large": "0.115"})
    what = found(RULE, ONE, of, on=only)
    assert what.fix == ()
    assert "ml.m5.large, does not fit (vCPU: 4.6 needed" in (what.caution or "")
    none = market(hourly_usd={"ml.g4dn.xlarge": "0.736"})
    assert "no type with a known price is cheaper by the hour" in (
        found(RULE, ONE, of, on=none).caution or ""
    )


def test_unrecorded_use_does_not_shrink() -> None:
    """Without a memory series the type has no less of it: 16 GiB, not 8."""
    what = found(RULE, ONE, flat(ONE, 60, gpu=0, cpu=5))
    assert [fix.new for fix in what.fix] == ["ml.m5.xlarge"]


@pytest.mark.parametrize(
    ("kind", "phase", "path"),
    [
        (JobKind.PROCESSING, "Processing", "ProcessingResources.ClusterConfig.InstanceType"),
        (JobKind.TRANSFORM, "Transform", "TransformResources.InstanceType"),
    ],
)
def test_processing_and_transform_jobs_are_judged_too(kind: JobKind, phase: str, path: str) -> None:
    """The path is that of their own Create request."""
    run = ran(3600, "ml.g4dn.xlarge", kind=kind, phases=phases((phase, 3600)), billable_s=None)
    of = usage(run, series(Metric.GPU, [0] * 60), series(Metric.CPU, [200] * 60))
    assert [fix.path for fix in found(RULE, run, of).fix] == [path]


def test_it_is_one_story() -> None:
    """The other rules of GPU use leave it to this one; what they still say is shown under it."""
    run = ran(3600, "ml.g4dn.12xlarge")
    of = flat(run, 60, gpu=0, gpu_memory=2, cpu=95, memory=5)
    for other in ("gpu-underused", "some-gpus-unused"):
        assert isinstance(outcome(other, run, of), NotApplicable), other
    assert outcome("gpu-starved", run, of) == Clear()
    assert isinstance(outcome("cpu-bottleneck", run, of), Found)
    assert "cpu-bottleneck" in card(RULE).name.subsumes


def test_the_advised_job_gets_no_advice_back() -> None:
    """On the CPU type the same work is well placed."""
    of = flat(ONE, 60, gpu=0, cpu=60, memory=50)
    [fix] = found(RULE, ONE, of).fix
    moved = ran(3600, str(fix.new))
    after = flat(moved, 60, cpu=60, memory=50)
    for other in (RULE, "gpu-underused", "cpu-bottleneck"):
        assert isinstance(outcome(other, moved, after), NotApplicable), other
    assert outcome("cpu-underused", moved, after) == Clear()


def test_several_hosts_all_move() -> None:
    """Two hours of instances: twice the saving of one."""
    run = ran(3600, "ml.g4dn.xlarge", 2)
    finding = priced(RULE, run, flat(run, 60, hosts=2, gpu=0, cpu=50))
    # 2 x (0.736 - 0.23 - 30 GB x 1 h / 744 h x 0.14)
    assert finding.saving_usd is not None
    assert round(finding.saving_usd, 6) == Decimal("1.000710")
