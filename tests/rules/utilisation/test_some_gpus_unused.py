from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, NotApplicable
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import FixedPrices, flat, gpu_type, phases, ran, series, usage
from tests.fakes.judging import card, found, not_applicable, outcome, priced, usd

RULE = "some-gpus-unused"
FOUR = ran(3600, "ml.g4dn.12xlarge")
EIGHT = gpu_type("ml.p4d.24xlarge", 96, 1152, 8, "A100")
EIGHT = replace(EIGHT, gpu_memory_gib=Decimal(40), family="p4d")
HALF = replace(EIGHT, name="ml.p4d.12xlarge", vcpu=48, memory_gib=Decimal(576), gpus=4)
P4 = ran(3600, EIGHT.name)


def p4(*types: object) -> Market:
    """Eight A100 for $32.77 an hour; the smaller size is made up, for $16.39."""
    usd_by_name = {EIGHT.name: "32.77", HALF.name: "16.39"}
    return Market({kind.name: kind for kind in (EIGHT, *types)}, FixedPrices(usd_by_name))  # type: ignore[attr-defined, misc]


def used(run: Job, **percent: float) -> Measurements:
    """Even use of eight GPUs and 96 vCPUs, 0..100 of all."""
    of = {"GPU": 8, "GPU_MEMORY": 8, "CPU": 96, "MEMORY": 1}
    raw = [
        series(Metric[word.upper()], [value * of[word.upper()]] * 60)
        for word, value in percent.items()
    ]
    absent = Missing("metric_missing", "no points")
    return measure(run, raw, {EIGHT.name: EIGHT}, absent=absent)


def test_the_work_of_four_gpus_that_fits_on_one_is_found() -> None:
    """20% of 4 T4 are 0.8 of one; 4.89 less 1 + 0.2 x 3 times 0.736, for an hour."""
    finding = priced(RULE, FOUR, flat(FOUR, 60, gpu=20, gpu_memory=5, cpu=5, memory=5))
    what = finding.found
    assert what.summary == (
        "The work of the 4 GPUs over 1 h on 1 x ml.g4dn.12xlarge fits on one of them "
        "(at its peak 0.8 GPUs and 3.2 GiB of GPU memory)."
    )
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.InstanceType", "ml.g4dn.12xlarge", "ml.g4dn.xlarge",
    )  # fmt: skip
    assert usd(finding.saving_usd) == "3.712400"
    assert finding.range_usd is not None
    assert [usd(end) for end in finding.range_usd] == ["3.712400", "4.154000"]
    assert (what.confidence, what.bucket) == (Confidence.DERIVED, Bucket.AVOIDABLE)
    assert "only the sum" in (what.caution or "")


@pytest.mark.parametrize(
    ("gpu", "memory", "says"),
    [
        # 50% of 4 = 2.0; 50.2% = 2.008
        (50, 5, True),
        (50.2, 5, False),
        # of 64 GiB: 32.0, then 32.1
        (5, 50, True),
        (5, 50.2, False),
    ],
)
def test_half_of_the_gpus_is_the_line(gpu: float, memory: float, says: bool) -> None:
    """At the peak, GPU work and GPU memory both; three of four may be four at work."""
    of = flat(FOUR, 60, gpu=gpu, gpu_memory=memory, cpu=5, memory=5)
    assert isinstance(outcome(RULE, FOUR, of), Found) is says


def test_the_policy_may_draw_the_line_elsewhere() -> None:
    """At a quarter, work for two of four is clear."""
    of = flat(FOUR, 60, gpu=40, gpu_memory=5, cpu=5, memory=5)
    assert outcome(RULE, FOUR, of, limits={"fits_on_at_most": 25}) == Clear()


def test_work_on_all_gpus_is_clear() -> None:
    """90% of each."""
    of = flat(FOUR, 60, gpu=90, gpu_memory=80, cpu=30, memory=30)
    assert outcome(RULE, FOUR, of) == Clear()


def test_the_peak_of_the_busiest_host_decides() -> None:
    """One of two hosts at 90%."""
    run = ran(3600, "ml.g4dn.12xlarge", 2)
    hosts = ((1, 20), (2, 90))
    raw = [
        series(metric, [4 * value] * 60, host=f"train/algo-{n}")
        for n, gpu in hosts
        for metric, value in ((Metric.GPU, gpu), (Metric.GPU_MEMORY, 5))
    ]
    assert outcome(RULE, run, usage(run, *raw)) == Clear()


def test_without_a_size_that_holds_it_there_is_no_figure() -> None:
    """30% of 48 vCPUs with 20% are 17.3, and one T4 comes with 16 at most."""
    what = found(RULE, FOUR, flat(FOUR, 60, gpu=20, gpu_memory=5, cpu=30, memory=5))
    assert (what.change, what.bucket, what.confidence) == (
        None, Bucket.NONE, Confidence.HEURISTIC,
    )  # fmt: skip
    assert "ml.g4dn.4xlarge, does not fit (vCPU: 17.3 needed" in (what.caution or "")
    assert [fix.path for fix in what.fix] == ["HyperParameters.sagemaker_torch_distributed_enabled"]


def test_work_may_be_distributed_instead() -> None:
    """With PyTorch DDP, where the image is PyTorch and no sign says that it is distributed."""
    of = flat(FOUR, 60, gpu=20, gpu_memory=5, cpu=5, memory=5)
    [[size], [ddp]] = found(RULE, FOUR, of).alternatives
    assert size.new == "ml.g4dn.2xlarge"
    assert (ddp.path, ddp.old, ddp.new) == (
        "HyperParameters.sagemaker_torch_distributed_enabled", None, "true",
    )  # fmt: skip
    distributed = replace(FOUR, hints=Hints(distribution="ddp"))
    other_image = replace(FOUR, image="683313688378.dkr.ecr.us-east-1.amazonaws.com/own:1")
    processing = replace(
        FOUR, kind=JobKind.PROCESSING, phases=phases(("Processing", 3600)), billable_s=None
    )
    for run in (distributed, other_image):
        assert found(RULE, run, of).alternatives == ((size,),)
    raw = [series(metric, [80] * 60) for metric in (Metric.GPU, Metric.GPU_MEMORY)]
    assert found(RULE, processing, usage(processing, *raw)).fix == ()


def test_p4_types_take_amazons_own_library() -> None:
    """SMDDP, whose switch goes with the type; no smaller size of a p4d can be bought."""
    what = found(RULE, P4, used(P4, gpu=10, gpu_memory=10, cpu=5, memory=5), on=p4())
    assert [(fix.path, fix.new) for fix in what.fix] == [
        ("HyperParameters.sagemaker_distributed_dataparallel_enabled", "true"),
        ("HyperParameters.sagemaker_instance_type", "ml.p4d.24xlarge"),
    ]
    assert "no GPU type with a known price is cheaper by the hour" in (what.caution or "")


def test_a_smaller_size_may_have_more_gpus_than_needed() -> None:
    """One GPU's work on the made-up half of a p4d: still the smaller size."""
    of = used(P4, gpu=10, gpu_memory=10, cpu=5, memory=5)
    what = found(RULE, P4, of, on=p4(HALF))
    assert [fix.new for fix in what.fix] == [HALF.name]


def test_one_gpu_is_not_its_concern() -> None:
    """There are no fewer."""
    one = ran(3600, "ml.g4dn.xlarge")
    assert "one GPU" in not_applicable(RULE, one, flat(one, 60, gpu=5, gpu_memory=5))
    mixed = replace(FOUR, groups=(*FOUR.groups, InstanceGroup("ml.g4dn.xlarge", 1)))
    assert "several groups" in not_applicable(RULE, mixed)


def test_gpus_that_did_nothing_are_left_to_gpu_idle() -> None:
    """That is another story."""
    answer = outcome(RULE, FOUR, flat(FOUR, 60, gpu=0, gpu_memory=1, cpu=50))
    assert isinstance(answer, NotApplicable)
    assert "gpu-idle" in answer.reason


def test_a_catalogue_without_the_gpus_memory_says_nothing() -> None:
    """How many GPUs hold it cannot be said."""
    bare = replace(EIGHT, gpu_memory_gib=None)
    on = Market({bare.name: bare}, FixedPrices({bare.name: "32.77"}))
    answer = outcome(RULE, P4, used(P4, gpu=10, gpu_memory=10), on=on)
    assert getattr(answer, "code", None) == "not_recorded"


def test_a_training_plan_gets_no_other_size() -> None:
    """It is prepaid for this one; to distribute the work is free."""
    run = replace(FOUR, purchase=Purchase.TRAINING_PLAN)
    what = found(RULE, run, flat(run, 60, gpu=20, gpu_memory=5, cpu=5, memory=5))
    assert (what.change, what.bucket) == (None, Bucket.NONE)
    assert "prepaid" in (what.caution or "")


def test_it_tells_gpu_underuseds_story() -> None:
    """The mean over four GPUs is low because of it; on the advised size nothing is said again."""
    assert "gpu-underused" in card(RULE).name.subsumes
    moved = ran(3600, "ml.g4dn.xlarge")
    after = flat(moved, 60, gpu=80, gpu_memory=20, cpu=60, memory=60)
    assert isinstance(outcome(RULE, moved, after), NotApplicable)
    assert outcome("gpu-underused", moved, after) == Clear()
