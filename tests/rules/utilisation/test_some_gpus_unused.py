from decimal import Decimal
from functools import partial

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from tests.fakes.jobs import FixedPrices, flat, gpu_type, phases, ran, series
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    even_use,
    finds,
    given_job,
    measured,
    one_host,
)

RULE = "some-gpus-unused"
FOUR = ran(3600, "ml.g4dn.12xlarge")
LITTLE = even_use(minutes=60, gpu=20, gpu_memory=5, cpu=5, memory=5)
DDP = ("HyperParameters.sagemaker_torch_distributed_enabled", None, "true")
EIGHT = gpu_type("ml.p4d.24xlarge", 96, 1152, 8, "A100")
EIGHT = replace(EIGHT, gpu_memory_gib=Decimal(40), family="p4d")
HALF = replace(EIGHT, name="ml.p4d.12xlarge", vcpu=48, memory_gib=Decimal(576), gpus=4)
P4 = ran(3600, EIGHT.name)


def p4(*types: object) -> Market:
    """Eight A100 for $32.77 an hour; the smaller size is made up, for $16.39."""
    usd_by_name = {EIGHT.name: "32.77", HALF.name: "16.39"}
    return Market({kind.name: kind for kind in (EIGHT, *types)}, FixedPrices(usd_by_name))  # type: ignore[attr-defined, misc]


@given_job
def used(run: Job, **percent: float) -> Measurements:
    """Even use of eight GPUs and 96 vCPUs, 0..100 of all."""
    return flat(run, 60, types={EIGHT.name: EIGHT}, **percent)


verdict = partial(answer, RULE)


def test_the_work_of_four_gpus_that_fits_on_one_is_found() -> None:
    # 20% of 4 T4 are 0.8 of one; 4.89 less 1 + 0.2 x 3 times 0.736, for an hour.
    assert verdict(FOUR, LITTLE) == finds(
        "The work of the 4 GPUs over 1 h on 1 x ml.g4dn.12xlarge fits on one of them "
        "(at its peak 0.8 GPUs and 3.2 GiB of GPU memory).",
        usd="3.712400",
        span=("3.712400", "4.154000"),
        builder="derived",
        caution="…only the sum…",
        fix=[("ResourceConfig.InstanceType", "ml.g4dn.12xlarge", "ml.g4dn.xlarge")],
    )


def test_one_gpu_did_the_work_only_where_no_distribution_is_known() -> None:
    # 4.89 less 0.736 once, and less 1 + 0.24 x 3 times; stages that take turns look like one GPU
    result = verdict(FOUR, even_use(minutes=60, gpu=24, gpu_memory=5, cpu=5, memory=5))
    assert result == finds(usd="4.154000", builder="derived", caution="…one of them did the work…")
    result = verdict(
        replace(FOUR, hints=Hints(distribution="parameter_server")),
        even_use(minutes=60, gpu=24, gpu_memory=5, cpu=5, memory=5),
    )
    assert result == finds(
        usd="3.624080", builder="derived", caution="…of 4 GPUs takes turns on one…"
    )
    for word in ("smp", "xla", "accelerate"):
        result = verdict(
            replace(FOUR, hints=Hints(distribution=word)),
            even_use(minutes=60, gpu=24, gpu_memory=5, cpu=5, memory=5),
        )
        assert result == finds(bucket="possible", caution=f"…does a part of the work ({word})…")


def test_half_of_the_gpus_is_the_line() -> None:
    # At the peak, GPU work and GPU memory both; three of four may be four at work.
    # 50% of 4 = 2.0; 50.2% = 2.008
    # of 64 GiB: 32.0, then 32.1
    assert verdict(FOUR, even_use(minutes=60, gpu=50, gpu_memory=5, cpu=5, memory=5)) == FOUND
    assert verdict(FOUR, even_use(minutes=60, gpu=50.2, gpu_memory=5, cpu=5, memory=5)) == CLEAR
    assert verdict(FOUR, even_use(minutes=60, gpu=5, gpu_memory=50, cpu=5, memory=5)) == FOUND
    assert verdict(FOUR, even_use(minutes=60, gpu=5, gpu_memory=50.2, cpu=5, memory=5)) == CLEAR


def test_the_policy_may_draw_the_line_elsewhere() -> None:
    """At a quarter, work for two of four is clear."""
    result = verdict(
        FOUR,
        even_use(minutes=60, gpu=40, gpu_memory=5, cpu=5, memory=5),
        limits={"fits_on_at_most": 25},
    )
    assert result == CLEAR


def test_work_on_all_gpus_is_clear() -> None:
    """90% of each."""
    assert verdict(FOUR, even_use(minutes=60, gpu=90, gpu_memory=80, cpu=30, memory=30)) == CLEAR


def test_the_peak_of_the_busiest_host_decides() -> None:
    """One of two hosts at 90%."""
    result = verdict(
        ran(3600, "ml.g4dn.12xlarge", 2),
        measured(
            *[
                series(metric, [4 * value] * 60, host=f"train/algo-{n}")
                for n, gpu in ((1, 20), (2, 90))
                for metric, value in ((Metric.GPU, gpu), (Metric.GPU_MEMORY, 5))
            ]
        ),
    )
    assert result == CLEAR


def test_without_a_size_that_holds_it_there_is_no_figure() -> None:
    # 30% of 48 vCPUs with 20% are 17.3, and one T4 comes with 16 at most.
    result = verdict(FOUR, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=30, memory=5))
    assert result == finds(
        change=None,
        builder="advice",
        caution="…ml.g4dn.4xlarge, does not fit (vCPU: 17.3 needed…",
        paths=["HyperParameters.sagemaker_torch_distributed_enabled"],
    )


def test_without_a_type_the_work_is_spread_or_there_is_more_of_it() -> None:
    result = verdict(
        replace(FOUR, image=None), even_use(minutes=60, gpu=20, gpu_memory=5, cpu=30, memory=5)
    )
    assert result == finds(fix=[], caution="…does not fit…Spread the work over all GPUs instead.")
    # spread already
    result = verdict(
        replace(FOUR, hints=Hints(distribution="ddp")),
        even_use(minutes=60, gpu=20, gpu_memory=5, cpu=30, memory=5),
    )
    assert result == finds(fix=[], caution="…Give each GPU more work instead: a larger batch.")


def test_p4_types_take_amazons_own_library() -> None:
    # SMDDP, whose switch goes with the type; no smaller size of a p4d can be bought.
    result = verdict(P4, used(gpu=10, gpu_memory=10, cpu=5, memory=5), market=p4())
    assert result == finds(
        fix=[
            ("HyperParameters.sagemaker_distributed_dataparallel_enabled", "true"),
            ("HyperParameters.sagemaker_instance_type", "ml.p4d.24xlarge"),
        ],
        caution="…no GPU type with a known price is cheaper by the hour…",
    )


def test_a_smaller_size_may_have_more_gpus_than_needed() -> None:
    # One GPU's work on the made-up half of a p4d: still the smaller size.
    result = verdict(P4, used(gpu=10, gpu_memory=10, cpu=5, memory=5), market=p4(HALF))
    assert result == finds(fix=[HALF.name])


def test_one_gpu_is_not_its_concern() -> None:
    """There are no fewer."""
    result = verdict(ran(3600, "ml.g4dn.xlarge"), even_use(minutes=60, gpu=5, gpu_memory=5))
    assert result == does_not_apply("…one GPU…")
    result = verdict(replace(FOUR, groups=(*FOUR.groups, InstanceGroup("ml.g4dn.xlarge", 1))))
    assert result == does_not_apply("…several groups…")


def test_gpus_that_did_nothing_are_left_to_gpu_idle() -> None:
    """That is another story."""
    assert verdict(FOUR, even_use(minutes=60, gpu=0, gpu_memory=1, cpu=50)) == does_not_apply(
        "…gpu-idle…"
    )


def test_a_catalogue_without_the_gpus_memory_says_nothing() -> None:
    """How many GPUs hold it cannot be said."""
    result = verdict(
        P4,
        used(gpu=10, gpu_memory=10),
        market=Market(
            {replace(EIGHT, gpu_memory_gib=None).name: replace(EIGHT, gpu_memory_gib=None)},
            FixedPrices({replace(EIGHT, gpu_memory_gib=None).name: "32.77"}),
        ),
    )
    assert result == cannot_judge("not_recorded")


def test_a_training_plan_gets_no_other_size() -> None:
    # It is prepaid for this one; to distribute the work is free.
    result = verdict(
        replace(FOUR, purchase=Purchase.TRAINING_PLAN),
        even_use(minutes=60, gpu=20, gpu_memory=5, cpu=5, memory=5),
    )
    assert result == finds(change=None, bucket="none", caution="…prepaid…")


def test_work_may_be_distributed_instead() -> None:
    """Work may be distributed instead, where the image is PyTorch and no sign says that it is."""
    assert verdict(FOUR, LITTLE) == finds(ways=[["ml.g4dn.2xlarge"], [DDP]])
    # Four processes may wait one after the other on one GPU: its saving is possible at most.
    result = verdict(replace(FOUR, hints=Hints(distribution="ddp")), LITTLE)
    assert result == finds(ways=[["ml.g4dn.2xlarge"]], bucket="possible")
    result = verdict(
        replace(FOUR, image="683313688378.dkr.ecr.us-east-1.amazonaws.com/own:1"), LITTLE
    )
    assert result == finds(ways=[["ml.g4dn.2xlarge"]])
    result = verdict(
        replace(
            FOUR, kind=JobKind.PROCESSING, phases=phases(("Processing", 3600)), billable_s=None
        ),
        one_host(gpu=[80] * 60, gpu_memory=[80] * 60),
    )
    assert result == finds(fix=[])


def test_it_tells_gpu_underuseds_story_on_the_advised_size_nothing_is_said_again() -> None:
    result = verdict(
        ran(3600, "ml.g4dn.xlarge"), even_use(minutes=60, gpu=80, gpu_memory=20, cpu=60, memory=60)
    )
    assert result == does_not_apply("…")
    result = answer(
        "gpu-underused",
        ran(3600, "ml.g4dn.xlarge"),
        even_use(minutes=60, gpu=80, gpu_memory=20, cpu=60, memory=60),
    )
    assert result == CLEAR


def test_its_first_step_needs_no_type() -> None:
    """It is shown where no type is advised, beside the reason why none fits."""
    [rule] = [one for one in catalogue.load() if one.name.name == RULE]
    assert (rule.name.first_step or "").startswith("Spread the work over all GPUs")
