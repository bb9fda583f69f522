from decimal import Decimal
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import Detection
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import TRAINIUM, FixedPrices, Points, batch_job, ran
from tests.fakes.judging import answer, outcome
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    Measured,
    cannot_judge,
    even_use,
    finds,
    hosts,
    one_host,
)

RULE = "idle-start"
ON_CPU = ran(7200, "ml.m5.4xlarge")
"""Two hours on 16 vCPUs at $0.92 an hour."""
ON_GPU = ran(7200, "ml.g4dn.2xlarge")
"""Two hours on one T4 and 8 vCPUs at $0.94 an hour."""


def on_gpu(cores: Points, gpu: Points, memory: Points | None = None) -> Measured:
    """Busy cores, GPU and host memory in percent, minute by minute.

    Host memory is even at 20% unless it is given; GPU memory is at 9%.
    """
    host_memory = [20.0] * len(cores) if memory is None else memory
    return one_host(cores=cores, gpu=gpu, memory=host_memory, gpu_memory=[9.0] * 120)


verdict = partial(answer, RULE)


def test_24_idle_minutes_of_120_are_a_fifth_of_the_bill() -> None:
    # A fifth of 2 h x $0.92, and of a volume of 30 GB x $0.14 x 2 h / 744 h.
    assert verdict(ON_CPU, one_host(cores=[0.05] * 24 + [9.0] * 96)) == finds(
        "All hosts were idle for 24 min of 2 h on 1 x ml.m5.4xlarge, before work began.",
        builder="measured",
        usd="0.370258",
        span=None,
        evidence={"idle_s": 1440},
    )


def test_a_job_on_a_cpu_type_is_not_advised_to_move_to_one() -> None:
    # What to do is to find what it waits for; a training job without channels gets one.
    waits = one_host(cores=[0.05] * 24 + [9.0] * 96)
    for run in (ON_CPU, batch_job(JobKind.PROCESSING, 7200, "ml.m5.4xlarge")):
        assert verdict(run, waits) == finds(
            fix=[], first_step="Look in the job's log for what it waited for…", without="CPU"
        )
    result = verdict(
        ran(7200, "ml.m5.4xlarge", channels=()), one_host(cores=[0.05] * 24 + [9.0] * 96)
    )
    assert result == finds(fix=["S3Prefix", "s3://<bucket>/<prefix>", "FastFile"])


def test_10_idle_minutes_are_found_and_9_are_not() -> None:
    """Imports and late points take up to 6."""
    assert verdict(ON_CPU, one_host(cores=[0] * 10 + [9.0] * 110)) == FOUND
    assert verdict(ON_CPU, one_host(cores=[0] * 9 + [9.0] * 111)) == CLEAR


def test_10_idle_minutes_of_500_are_2_percent_and_found_and_of_501_they_are_not() -> None:
    result = verdict(
        ran(60 * 500, "ml.m5.4xlarge"),
        one_host(cores=[0] * 10 + [9.0] * (500 - 10)),
    )
    assert result == FOUND
    result = verdict(
        ran(60 * 501, "ml.m5.4xlarge"),
        one_host(cores=[0] * 10 + [9.0] * (501 - 10)),
    )
    assert result == CLEAR


def test_2_minutes_of_imports_do_not_hide_the_20_idle_ones_after_them() -> None:
    result = verdict(ON_CPU, one_host(cores=[1, 1] + [0.05] * 20 + [9.0] * 98))
    assert result == finds(evidence={"idle_s": 1200})


def test_a_pause_after_8_busy_minutes_or_2_of_the_gpu_is_no_start() -> None:
    assert verdict(ON_CPU, one_host(cores=[9.0] * 8 + [0] * 20 + [9.0] * 92)) == CLEAR
    result = verdict(
        ON_GPU, on_gpu(cores=[2] * 2 + [0] * 20 + [2] * 98, gpu=[90] * 2 + [0] * 20 + [90] * 98)
    )
    assert result == CLEAR


def test_late_points_are_not_idle_ones() -> None:
    # Only the known minutes count: 12 of 16 on CPU, and a gap ends them.
    result = verdict(ON_CPU, one_host(cores=[None] * 4 + [0] * 12 + [9.0] * 104))
    assert result == finds(evidence={"idle_s": 720})
    assert verdict(ON_CPU, one_host(cores=[0] * 6 + [None] * 6 + [0] * 6 + [9.0] * 102)) == CLEAR
    assert verdict(ON_CPU, one_host(cores=[None] * 20 + [0] * 12 + [9.0] * 88)) == CLEAR


def test_an_idle_gpu_job_is_measured_although_its_gpu_points_come_late() -> None:
    # From the first GPU point to the first work 26 minutes, of which 20 are granted.
    result = verdict(
        ON_GPU, on_gpu(cores=[0.05] * 30 + [2] * 90, gpu=[None] * 4 + [0] * 26 + [90] * 90)
    )
    assert result == finds(confidence="measured", usd="0.094000")


def test_a_download_by_hand_is_counted_beyond_20_minutes_less_a_small_cpu_type() -> None:
    # One core for 30 minutes before the GPU's first work: 10 min x ($0.94 - $0.115) an hour.
    result = verdict(
        ran(7200, "ml.g4dn.2xlarge", channels=()),
        on_gpu(cores=[1.0] * 30 + [2] * 90, gpu=[0] * 30 + [90] * 90),
    )
    assert result == finds(
        "No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge; after 20 min, "
        "at most 1.25 of 8 cores were busy for 10 min.",
        confidence="derived",
        usd="0.137344",
        span=None,
        evidence={"one_core_busy_s": 600},
        fix=[
            ("InputDataConfig[train].DataSource.S3DataSource.S3DataType", None, "S3Prefix"),
            (
                "InputDataConfig[train].DataSource.S3DataSource.S3Uri",
                None,
                "s3://<bucket>/<prefix>",
            ),
            ("InputDataConfig[train].InputMode", None, "FastFile"),
        ],
    )
    assert verdict(ON_GPU, on_gpu(cores=[1.0] * 20 + [2] * 100, gpu=[0] * 20 + [90] * 100)) == CLEAR


def test_a_job_with_a_channel_gets_no_first_channel() -> None:
    """Something else than its data came late."""
    assert verdict(ON_GPU, on_gpu(cores=[1.0] * 30 + [2] * 90, gpu=[0] * 30 + [90] * 90)) == finds(
        fix=[]
    )


def test_the_first_20_minutes_are_granted_whatever_happened_in_them() -> None:
    result = verdict(
        ON_GPU, on_gpu(cores=[6.0] * 20 + [0.05] * 10 + [2] * 90, gpu=[0] * 30 + [90] * 90)
    )
    assert result == finds(
        "No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge; after 20 min, at "
        "most 1.25 of 8 cores were busy for 10 min.",
        builder="measured",
        usd="0.156667",
    )
    assert (
        verdict(ON_GPU, on_gpu(cores=[0.05] * 20 + [2] * 100, gpu=[0] * 20 + [90] * 100)) == CLEAR
    )


def test_idle_minutes_count_whole_calm_ones_less_a_cpu_type() -> None:
    result = verdict(
        ON_GPU, on_gpu(cores=[0.05] * 30 + [1.0] * 15 + [2] * 75, gpu=[0] * 45 + [90] * 75)
    )
    assert result == finds(
        builder="derived", evidence={"idle_s": 600, "one_core_busy_s": 900}, usd="0.362683"
    )


def test_missing_gpu_points_take_none_of_the_granted_minutes_away() -> None:
    result = verdict(
        ON_GPU, on_gpu(cores=[0.05] * 30 + [2] * 90, gpu=[0] * 25 + [None] * 4 + [0] + [90] * 90)
    )
    assert result == finds(usd="0.078333")


def test_3_minutes_of_imports_on_6_cores_do_not_hide_40_idle_ones() -> None:
    # 20 of the 40 are granted: 20 / 120 of 2 h x $0.94.
    result = verdict(
        ON_GPU, on_gpu(cores=[0.05] * 40 + [6.0] * 3 + [2] * 77, gpu=[0] * 43 + [90] * 77)
    )
    assert result == finds(usd="0.313333")


def test_loading_weights_is_no_idleness_a_memory_fills_up_meanwhile() -> None:
    result = verdict(
        ON_GPU,
        on_gpu(
            cores=[1.0] * 50 + [2] * 70,
            gpu=[0] * 50 + [90] * 70,
            memory=[20 + 0.5 * n for n in range(50)] + [45] * 70,
        ),
    )
    assert result == CLEAR


def test_6_cores_at_work_for_30_minutes_before_the_gpu_are_a_range_from_nothing() -> None:
    # 20 minutes are granted, and 10 are the least. A CPU type can prepare data as well.
    result = verdict(ON_GPU, on_gpu(cores=[6.0] * 30 + [2] * 90, gpu=[0] * 30 + [90] * 90))
    assert result == finds(
        "No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge, while 6.0 of 8 "
        "cores were busy on average.",
        usd="0.000000",
        span=("0.000000", "0.079900"),
        caution="…processing job…",
    )
    assert verdict(ON_GPU, on_gpu(cores=[6.0] * 29 + [2] * 91, gpu=[0] * 29 + [90] * 91)) == CLEAR


def test_what_more_cores_did_is_the_range_above_what_is_counted() -> None:
    result = verdict(
        ON_GPU, on_gpu(cores=[6.0] * 30 + [0.05] * 12 + [2] * 78, gpu=[0] * 42 + [90] * 78)
    )
    assert result == finds(usd="0.188000", span=("0.188000", "0.267900"), caution="…not counted.")


def test_where_host_memory_is_not_known_a_core_at_work_may_load_weights() -> None:
    result = verdict(
        ON_GPU, on_gpu(cores=[1.0] * 40 + [2] * 80, gpu=[0] * 40 + [90] * 80, memory=[])
    )
    assert result == finds(usd="0.000000")


def test_a_gpu_that_never_works_has_no_idle_start() -> None:
    """There is no first work to wait for."""
    assert verdict(ON_GPU, on_gpu(cores=[1.0] * 120, gpu=[0] * 120)) == CLEAR


def test_a_run_that_never_works_has_no_start() -> None:
    """All of it is an idle tail."""
    assert verdict(ON_CPU, one_host(cores=[0.05] * 120)) == CLEAR
    assert verdict(ON_CPU, one_host(cores=[1, 1] + [0.05] * 118)) == CLEAR


def test_one_busy_host_is_no_idle_start() -> None:
    """Every host must be known to be idle."""
    result = verdict(
        ran(7200, "ml.m5.4xlarge", 2),
        hosts({"cores": [0.0] * 30 + [9.0] * 90}, {"cores": [9.0] * 120}),
    )
    assert result == CLEAR


@pytest.mark.parametrize("kind", [JobKind.PROCESSING, JobKind.TRANSFORM])
def test_12_idle_minutes_of_60_of_a_job_of_one_phase_are_a_fifth_of_an_hour_at_92_cents(
    kind: JobKind,
) -> None:
    job = batch_job(kind, 3600, "ml.m5.4xlarge", volume_gb=None)
    assert verdict(job, one_host(cores=[0] * 12 + [9.0] * 48)) == finds(alone="0.184000")


def test_without_the_gpu_of_a_gpu_job_it_does_not_know() -> None:
    # Its card asks for CPU alone, which CPU jobs have too.
    assert verdict(ON_GPU, even_use(minutes=120, cpu=1)) == cannot_judge("metric_missing")


def test_accelerators_that_nobody_measures_may_have_worked() -> None:
    """Trainium reports no such metric."""
    types = {TRAINIUM.name: TRAINIUM}
    waits = one_host(cores=[0] * 30 + [2.0] * 90, types=types)
    result = verdict(ran(7200, TRAINIUM.name), waits, market=Market(types, FixedPrices()))
    assert result == cannot_judge("accelerator_unseen")


def test_1_25_busy_cores_are_one_process_and_counted_1_3_cores_are_several_and_are_not() -> None:
    result = verdict(ON_GPU, on_gpu(cores=[1.25] * 30 + [2] * 90, gpu=[0] * 30 + [90] * 90))
    assert result == finds(usd="0.137344")
    result = verdict(ON_GPU, on_gpu(cores=[1.3] * 30 + [2] * 90, gpu=[0] * 30 + [90] * 90))
    assert result == finds(usd="0.000000")


LEVELS = (0.05, 1.0, 6.0)


def counted_s(cores: list[float]) -> Decimal:
    """Counted seconds of a start with these busy cores in each minute before the first GPU work."""
    work = 120 - len(cores)
    result = outcome(
        RULE, ON_GPU, on_gpu(cores=[*cores, *[2.0] * work], gpu=[0] * len(cores) + [90] * work)
    )
    if not isinstance(result, Detection):
        return Decimal(0)
    assert isinstance(result.change, CutPhase)
    return result.change.seconds


@given(cores=st.lists(st.sampled_from(LEVELS), min_size=1, max_size=60), data=st.data())
def test_more_idleness_never_counts_less(cores: list[float], data: st.DataObject) -> None:
    """A minute with less work, or one more minute without any."""
    minute = data.draw(st.integers(0, len(cores) - 1))
    lower = LEVELS[max(LEVELS.index(cores[minute]) - 1, 0)]
    before = counted_s(cores)
    assert counted_s([*cores[:minute], lower, *cores[minute + 1 :]]) >= before
    assert before <= counted_s([*cores, LEVELS[0]]) <= before + 60 + 2 * 72
