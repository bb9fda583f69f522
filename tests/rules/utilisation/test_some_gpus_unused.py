from decimal import Decimal
from functools import partial

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from tests.fakes.jobs import FixedPrices, batch_job, by_point, even, gpu_type, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    even_use,
    finds,
    given_job,
    hosts,
    one_host,
)

RULE = "some-gpus-unused"
FOUR_T4 = ran(3600, "ml.g4dn.12xlarge")
"""An hour on 4 T4 of 16 GiB, 48 vCPUs and 192 GiB at $4.89. One T4 on ml.g4dn.xlarge is $0.736."""
FITS_ONE_T4 = even_use(minutes=60, gpu=20, gpu_memory=5, cpu=5, memory=5)
"""Of 4 T4 together 80% of one."""
DDP = ("HyperParameters.sagemaker_torch_distributed_enabled", None, "true")
P4D = gpu_type("ml.p4d.24xlarge", 96, 1152, 8, "A100")
P4D = replace(P4D, gpu_memory_gib=Decimal(40), family="p4d")
HALF_A_P4D = replace(P4D, name="ml.p4d.12xlarge", vcpu=48, memory_gib=Decimal(576), gpus=4)
EIGHT_A100 = ran(3600, P4D.name)


def p4_market(*types: object) -> Market:
    """Eight A100 for $32.77 an hour; the smaller size is made up, for $16.39."""
    usd_by_name = {P4D.name: "32.77", HALF_A_P4D.name: "16.39"}
    return Market({kind.name: kind for kind in (P4D, *types)}, FixedPrices(usd_by_name))  # type: ignore[attr-defined, misc]


@given_job
def host_use(run: Job, **percent: float) -> Measurements:
    """Even use of eight GPUs and 96 vCPUs, 0..100 of all."""
    return by_point(run, 1, even(60, percent), types={P4D.name: P4D})


verdict = partial(answer, RULE)


def test_the_work_of_four_gpus_that_fits_on_one_is_found() -> None:
    # 20% of 4 T4 are 0.8 of one; 4.89 less 1 + 0.2 x 3 times 0.736, for an hour.
    assert verdict(FOUR_T4, FITS_ONE_T4) == finds(
        "One of the 4 GPUs is enough for 1 h on 1 x ml.g4dn.12xlarge: at its peak the work used "
        "0.8 GPUs and 3.2 GiB of GPU memory.",
        usd="3.712400",
        span=("3.712400", "4.154000"),
        builder="derived",
        caution="…only the sum…",
        fix=[("ResourceConfig.InstanceType", "ml.g4dn.12xlarge", "ml.g4dn.xlarge")],
    )


def test_one_gpu_did_the_work_only_where_no_distribution_is_known() -> None:
    # 4.89 less 0.736 once, and less 1 + 0.24 x 3 times; stages that take turns look like one GPU
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=24, gpu_memory=5, cpu=5, memory=5))
    assert result == finds(usd="4.154000", builder="derived", caution="…one of them did the work…")
    result = verdict(
        replace(FOUR_T4, hints=Hints(distribution="parameter_server")),
        even_use(minutes=60, gpu=24, gpu_memory=5, cpu=5, memory=5),
    )
    assert result == finds(
        usd="3.624080", builder="derived", caution="…one GPU does the work of 4 in turn…"
    )
    for word in ("smp", "xla", "accelerate"):
        result = verdict(
            replace(FOUR_T4, hints=Hints(distribution=word)),
            even_use(minutes=60, gpu=24, gpu_memory=5, cpu=5, memory=5),
        )
        assert result == finds(bucket="possible", caution=f"…does a part of the work ({word})…")


def test_work_for_2_of_4_gpus_is_found_and_for_2_008_it_is_not() -> None:
    # At the peak, of GPU work: 50% of 4 are 2.0, 50.2% are 2.008. Of 64 GiB GPU memory: 32.0, 32.1.
    assert verdict(FOUR_T4, even_use(minutes=60, gpu=50, gpu_memory=5, cpu=5, memory=5)) == FOUND
    assert verdict(FOUR_T4, even_use(minutes=60, gpu=50.2, gpu_memory=5, cpu=5, memory=5)) == CLEAR
    assert verdict(FOUR_T4, even_use(minutes=60, gpu=5, gpu_memory=50, cpu=5, memory=5)) == FOUND
    assert verdict(FOUR_T4, even_use(minutes=60, gpu=5, gpu_memory=50.2, cpu=5, memory=5)) == CLEAR


def test_if_the_policy_sets_25_percent_work_for_2_of_4_gpus_is_clear() -> None:
    result = verdict(
        FOUR_T4,
        even_use(minutes=60, gpu=40, gpu_memory=5, cpu=5, memory=5),
        limits={"max_gpu_share_percent": 25},
    )
    assert result == CLEAR


def test_4_gpus_at_90_percent_are_clear() -> None:
    assert verdict(FOUR_T4, even_use(minutes=60, gpu=90, gpu_memory=80, cpu=30, memory=30)) == CLEAR


def test_one_of_two_hosts_at_90_percent_keeps_all_gpus() -> None:
    little, busy = ({"gpu": [4 * gpu] * 60, "gpu_memory": [4 * 5] * 60} for gpu in (20, 90))
    result = verdict(ran(3600, "ml.g4dn.12xlarge", 2), hosts(little, busy))
    assert result == CLEAR


def test_without_a_size_that_holds_it_there_is_no_figure() -> None:
    # 30% of 48 vCPUs with 20% are 17.3, and one T4 comes with 16 at most.
    result = verdict(FOUR_T4, even_use(minutes=60, gpu=20, gpu_memory=5, cpu=30, memory=5))
    assert result == finds(
        change=None,
        builder="advice",
        caution="…ml.g4dn.4xlarge, does not fit (vCPU: 17.3 needed…",
        paths=["HyperParameters.sagemaker_torch_distributed_enabled"],
    )


def test_without_a_type_the_work_is_spread_or_there_is_more_of_it() -> None:
    result = verdict(
        replace(FOUR_T4, image=None), even_use(minutes=60, gpu=20, gpu_memory=5, cpu=30, memory=5)
    )
    assert result == finds(fix=[], caution="…does not fit…Spread the work over all GPUs instead.")
    # spread already
    result = verdict(
        replace(FOUR_T4, hints=Hints(distribution="ddp")),
        even_use(minutes=60, gpu=20, gpu_memory=5, cpu=30, memory=5),
    )
    assert result == finds(
        fix=[], caution=("…Use a larger batch instead, so that each GPU has more work.")
    )


def test_p4_types_take_amazons_own_library() -> None:
    # SMDDP, whose switch goes with the type; no smaller size of a p4d can be bought.
    result = verdict(
        EIGHT_A100, host_use(gpu=10, gpu_memory=10, cpu=5, memory=5), market=p4_market()
    )
    assert result == finds(
        fix=[
            ("HyperParameters.sagemaker_distributed_dataparallel_enabled", "true"),
            ("HyperParameters.sagemaker_instance_type", "ml.p4d.24xlarge"),
        ],
        caution="…no GPU type with a known price costs less per hour…",
    )


def test_a_smaller_size_may_have_more_gpus_than_needed() -> None:
    # One GPU's work on the made-up half of a p4d: still the smaller size.
    result = verdict(
        EIGHT_A100, host_use(gpu=10, gpu_memory=10, cpu=5, memory=5), market=p4_market(HALF_A_P4D)
    )
    assert result == finds(fix=[HALF_A_P4D.name])


def test_one_gpu_is_not_judged() -> None:
    """There are no fewer."""
    result = verdict(ran(3600, "ml.g4dn.xlarge"), even_use(minutes=60, gpu=5, gpu_memory=5))
    assert result == does_not_apply("…one GPU…")
    result = verdict(replace(FOUR_T4, groups=(*FOUR_T4.groups, InstanceGroup("ml.g4dn.xlarge", 1))))
    assert result == does_not_apply("…several groups…")


def test_gpus_that_did_nothing_are_left_to_gpu_idle() -> None:
    """gpu-idle reports them."""
    assert verdict(FOUR_T4, even_use(minutes=60, gpu=0, gpu_memory=1, cpu=50)) == does_not_apply(
        "…gpu-idle…"
    )


def test_a_catalogue_without_the_gpus_memory_says_nothing() -> None:
    """How many GPUs hold it cannot be said."""
    unsized = replace(P4D, gpu_memory_gib=None)
    market = Market({unsized.name: unsized}, FixedPrices({unsized.name: "32.77"}))
    result = verdict(EIGHT_A100, host_use(gpu=10, gpu_memory=10), market=market)
    assert result == cannot_judge("not_recorded")


def test_a_training_plan_gets_no_other_size() -> None:
    # It is prepaid for this one; to distribute the work is free.
    result = verdict(
        replace(FOUR_T4, purchase=Purchase.TRAINING_PLAN),
        FITS_ONE_T4,
    )
    assert result == finds(change=None, bucket="none", caution="…prepaid…")


def test_work_may_be_distributed_instead() -> None:
    """Work may be distributed instead, if the image is PyTorch and nothing shows that it is."""
    assert verdict(FOUR_T4, FITS_ONE_T4) == finds(ways=[["ml.g4dn.2xlarge"], [DDP]])
    # Four processes may wait one after the other on one GPU: its saving is possible at most.
    result = verdict(replace(FOUR_T4, hints=Hints(distribution="ddp")), FITS_ONE_T4)
    assert result == finds(ways=[["ml.g4dn.2xlarge"]], bucket="possible")
    result = verdict(
        replace(FOUR_T4, image="683313688378.dkr.ecr.us-east-1.amazonaws.com/own:1"), FITS_ONE_T4
    )
    assert result == finds(ways=[["ml.g4dn.2xlarge"]])
    processing = batch_job(JobKind.PROCESSING, 3600, "ml.g4dn.12xlarge")
    result = verdict(processing, one_host(gpu=[80] * 60, gpu_memory=[80] * 60))
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
    """It is shown if no type is recommended, with the reason why none fits."""
    [rule] = [item for item in catalogue.load() if item.info.name == RULE]
    assert (rule.info.first_step or "").startswith("Spread the work over all GPUs")
