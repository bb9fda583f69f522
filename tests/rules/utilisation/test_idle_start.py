from decimal import Decimal
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import Found
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import TRAINIUM, FixedPrices, Points, batch_job, ran, series, usage
from tests.fakes.judging import answer, outcome
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    even_use,
    finds,
    hosts,
    one_host,
)

RULE = "idle-start"
CPU_JOB = ran(7200, "ml.m5.4xlarge")
GPU_JOB = ran(7200, "ml.g4dn.2xlarge")


def on_cpu(cores: Points, run: Job = CPU_JOB) -> Measurements:
    """Busy cores, minute by minute."""
    return usage(run, series(Metric.CPU, [None if c is None else 100 * c for c in cores]))


def on_gpu(
    cores: Points, gpu: Points, run: Job = GPU_JOB, memory: Points | None = None
) -> Measurements:
    """Busy cores, the GPU and host memory in percent, minute by minute; GPU memory is even."""
    cpu = series(Metric.CPU, [None if c is None else 100 * c for c in cores])
    full = series(Metric.MEMORY, [20.0] * len(cores) if memory is None else memory)
    return usage(run, cpu, series(Metric.GPU, gpu), full, series(Metric.GPU_MEMORY, [9.0] * 120))


verdict = partial(answer, RULE)


def test_an_idle_start_is_measured() -> None:
    # 24 of 120 minutes of 2 hours at $0.92 were billed and produced nothing.
    # a fifth of 2 h x $0.92, and of 30 GB x $0.14 x 2 h / 744 h
    assert verdict(CPU_JOB, on_cpu([0.05] * 24 + [9.0] * 96)) == finds(
        "All hosts were idle for 24 min of 2 h on 1 x ml.m5.4xlarge, before work began.",
        builder="measured",
        usd="0.370258",
        span=None,
        evidence={"idle_s": 1440},
    )


def test_a_job_on_a_cpu_type_is_not_advised_to_move_to_one() -> None:
    # A processing job and a training job with channels: what to do is to find what it waits for.
    for run in (
        ran(7200, "ml.m5.4xlarge"),
        batch_job(JobKind.PROCESSING, 7200, "ml.m5.4xlarge"),
    ):
        result = verdict(run, on_cpu([0.05] * 24 + [9.0] * 96, run))
        assert result == finds(
            fix=[], first_step="Look in the job's log for what it waited for…", without="CPU"
        )
    result = verdict(ran(7200, "ml.m5.4xlarge", channels=()), on_cpu([0.05] * 24 + [9.0] * 96))
    assert result == finds(fix=["S3Prefix", "s3://<bucket>/<prefix>", "FastFile"])


def test_ten_minutes_are_long_and_nine_are_not() -> None:
    """Imports and late points take up to six."""
    assert verdict(CPU_JOB, on_cpu([0] * 10 + [9.0] * 110)) == FOUND
    assert verdict(CPU_JOB, on_cpu([0] * 9 + [9.0] * 111)) == CLEAR


def test_two_percent_of_the_run_are_much_and_less_is_not() -> None:
    """10 of 500 minutes, and of 501."""
    result = verdict(
        ran(60 * 500, "ml.m5.4xlarge"),
        on_cpu([0] * 10 + [9.0] * (500 - 10), ran(60 * 500, "ml.m5.4xlarge")),
    )
    assert result == FOUND
    result = verdict(
        ran(60 * 501, "ml.m5.4xlarge"),
        on_cpu([0] * 10 + [9.0] * (501 - 10), ran(60 * 501, "ml.m5.4xlarge")),
    )
    assert result == CLEAR


def test_imports_before_the_wait_do_not_hide_it() -> None:
    # Two busy minutes, then twenty idle ones, then the work.
    result = verdict(CPU_JOB, on_cpu([1, 1] + [0.05] * 20 + [9.0] * 98))
    assert result == finds(evidence={"idle_s": 1200})


def test_a_pause_after_the_first_minutes_is_no_start() -> None:
    # Eight busy minutes are work; so is one of the GPU.
    assert verdict(CPU_JOB, on_cpu([9.0] * 8 + [0] * 20 + [9.0] * 92)) == CLEAR
    result = verdict(
        GPU_JOB, on_gpu([2] * 2 + [0] * 20 + [2] * 98, [90] * 2 + [0] * 20 + [90] * 98)
    )
    assert result == CLEAR


def test_late_points_are_not_idle_ones() -> None:
    # Only the known minutes count: 12 of 16 on CPU, and a gap ends them.
    result = verdict(CPU_JOB, on_cpu([None] * 4 + [0] * 12 + [9.0] * 104))
    assert result == finds(evidence={"idle_s": 720})
    assert verdict(CPU_JOB, on_cpu([0] * 6 + [None] * 6 + [0] * 6 + [9.0] * 102)) == CLEAR
    assert verdict(CPU_JOB, on_cpu([None] * 20 + [0] * 12 + [9.0] * 88)) == CLEAR


def test_an_idle_gpu_job_is_measured_although_its_gpu_points_come_late() -> None:
    # From the first GPU point to the first work 26 minutes, of which 20 are granted.
    result = verdict(GPU_JOB, on_gpu([0.05] * 30 + [2] * 90, [None] * 4 + [0] * 26 + [90] * 90))
    assert result == finds(confidence="measured", usd="0.094000")


def test_a_download_by_hand_is_counted_beyond_20_minutes() -> None:
    """A download by hand is counted beyond 20 minutes, less the small CPU type that could do it."""
    # One core for 30 minutes before the GPU's first work: 600 s x (1 - 0.115 / 0.94).
    result = verdict(
        ran(7200, "ml.g4dn.2xlarge", channels=()),
        on_gpu(
            [1.0] * 30 + [2] * 90, [0] * 30 + [90] * 90, ran(7200, "ml.g4dn.2xlarge", channels=())
        ),
    )
    assert result == finds(
        "No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge; after 20 min, "
        "at most 1.25 of 8 cores were busy for 10 min.",
        confidence="derived",
        usd="0.137344",
        span=None,
        evidence={"calm_s": 600},
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
    assert verdict(GPU_JOB, on_gpu([1.0] * 20 + [2] * 100, [0] * 20 + [90] * 100)) == CLEAR


def test_a_job_with_a_channel_is_not_told_to_add_one() -> None:
    """Something else than its data came late."""
    assert verdict(GPU_JOB, on_gpu([1.0] * 30 + [2] * 90, [0] * 30 + [90] * 90)) == finds(fix=[])


def test_the_first_20_minutes_are_granted_whatever_happened_in_them() -> None:
    result = verdict(GPU_JOB, on_gpu([6.0] * 20 + [0.05] * 10 + [2] * 90, [0] * 30 + [90] * 90))
    assert result == finds(
        "No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge; after 20 min, at "
        "most 1.25 of 8 cores were busy for 10 min.",
        builder="measured",
        usd="0.156667",
    )
    assert verdict(GPU_JOB, on_gpu([0.05] * 20 + [2] * 100, [0] * 20 + [90] * 100)) == CLEAR


def test_idle_minutes_count_whole_calm_ones_less_a_cpu_type() -> None:
    result = verdict(GPU_JOB, on_gpu([0.05] * 30 + [1.0] * 15 + [2] * 75, [0] * 45 + [90] * 75))
    assert result == finds(
        builder="derived", evidence={"idle_s": 600, "calm_s": 900}, usd="0.362683"
    )


def test_missing_gpu_points_take_none_of_the_granted_minutes_away() -> None:
    result = verdict(
        GPU_JOB, on_gpu([0.05] * 30 + [2] * 90, [0] * 25 + [None] * 4 + [0] + [90] * 90)
    )
    assert result == finds(usd="0.078333")


def test_a_burst_of_imports_hides_nothing() -> None:
    # 40 idle minutes, and three in which six cores import.
    result = verdict(GPU_JOB, on_gpu([0.05] * 40 + [6.0] * 3 + [2] * 77, [0] * 43 + [90] * 77))
    assert result == finds(usd="0.313333")


def test_loading_weights_is_no_idleness_a_memory_fills_up_meanwhile() -> None:
    result = verdict(
        GPU_JOB,
        on_gpu(
            [1.0] * 50 + [2] * 70,
            [0] * 50 + [90] * 70,
            memory=[20 + 0.5 * n for n in range(50)] + [45] * 70,
        ),
    )
    assert result == CLEAR


def test_cores_at_work_before_the_gpu_are_a_range_from_nothing() -> None:
    """Cores at work before the GPU are a range from nothing, beyond 20 minutes and ten."""
    # They may prepare data, which a CPU type can do as well.
    result = verdict(GPU_JOB, on_gpu([6.0] * 30 + [2] * 90, [0] * 30 + [90] * 90))
    assert result == finds(
        "No GPU worked in the first 30 min of 2 h on 1 x ml.g4dn.2xlarge, while 6.0 of 8 "
        "cores were busy on average.",
        usd="0.000000",
        span=("0.000000", "0.079900"),
        caution="…processing job…",
    )
    assert verdict(GPU_JOB, on_gpu([6.0] * 29 + [2] * 91, [0] * 29 + [90] * 91)) == CLEAR


def test_what_more_cores_did_is_the_range_above_what_is_counted() -> None:
    result = verdict(GPU_JOB, on_gpu([6.0] * 30 + [0.05] * 12 + [2] * 78, [0] * 42 + [90] * 78))
    assert result == finds(usd="0.188000", span=("0.188000", "0.267900"), caution="…not counted.")


def test_where_host_memory_is_not_known_a_core_at_work_may_load_weights() -> None:
    result = verdict(GPU_JOB, on_gpu([1.0] * 40 + [2] * 80, [0] * 40 + [90] * 80, memory=[]))
    assert result == finds(usd="0.000000")


def test_a_gpu_that_never_works_is_another_story() -> None:
    """There is no first work to wait for."""
    assert verdict(GPU_JOB, on_gpu([1.0] * 120, [0] * 120)) == CLEAR


def test_a_run_that_never_works_has_no_start() -> None:
    """All of it is an idle tail."""
    assert verdict(CPU_JOB, on_cpu([0.05] * 120)) == CLEAR
    assert verdict(CPU_JOB, on_cpu([1, 1] + [0.05] * 118)) == CLEAR


def test_one_busy_host_is_no_idle_start() -> None:
    """Every host must be known to be idle."""
    result = verdict(
        ran(7200, "ml.m5.4xlarge", 2),
        hosts({"cores": [0.0] * 30 + [9.0] * 90}, {"cores": [9.0] * 120}),
    )
    assert result == CLEAR


def test_other_kinds_lose_their_own_phase() -> None:
    """12 of 60 minutes at $0.92, and of the volume."""
    result = verdict(
        batch_job(JobKind.PROCESSING, 3600, "ml.m5.4xlarge", volume_gb=None),
        on_cpu(
            [0] * 12 + [9.0] * 48,
            batch_job(JobKind.PROCESSING, 3600, "ml.m5.4xlarge", volume_gb=None),
        ),
    )
    assert result == finds(alone="0.184000")
    result = verdict(
        batch_job(JobKind.TRANSFORM, 3600, "ml.m5.4xlarge", volume_gb=None),
        on_cpu(
            [0] * 12 + [9.0] * 48,
            batch_job(JobKind.TRANSFORM, 3600, "ml.m5.4xlarge", volume_gb=None),
        ),
    )
    assert result == finds(alone="0.184000")


def test_without_the_gpu_of_a_gpu_job_it_does_not_know() -> None:
    # Its card asks for CPU alone, which CPU jobs have too.
    assert verdict(GPU_JOB, even_use(120, cpu=1)) == cannot_judge("metric_missing")


def test_accelerators_that_nobody_measures_may_have_worked() -> None:
    """Trainium reports no such metric."""
    types = {TRAINIUM.name: TRAINIUM}
    waits = one_host(cores=[0] * 30 + [2.0] * 90, types=types)
    result = verdict(ran(7200, TRAINIUM.name), waits, market=Market(types, FixedPrices()))
    assert result == cannot_judge("accelerator_unseen")


def test_a_core_and_a_quarter_are_one_process_and_more_are_several() -> None:
    """1.25 cores are one process, and more are several."""
    result = verdict(GPU_JOB, on_gpu([1.25] * 30 + [2] * 90, [0] * 30 + [90] * 90))
    assert result == finds(usd="0.137344")
    result = verdict(GPU_JOB, on_gpu([1.3] * 30 + [2] * 90, [0] * 30 + [90] * 90))
    assert result == finds(usd="0.000000")


LEVELS = (0.05, 1.0, 6.0)


def counted_s(cores: list[float]) -> Decimal:
    """Of a start with so many busy cores in each minute before the first GPU work."""
    work = 120 - len(cores)
    said = outcome(RULE, GPU_JOB, on_gpu([*cores, *[2.0] * work], [0] * len(cores) + [90] * work))
    if not isinstance(said, Found):
        return Decimal(0)
    assert isinstance(said.change, CutPhase)
    return said.change.seconds


@given(cores=st.lists(st.sampled_from(LEVELS), min_size=1, max_size=60), data=st.data())
def test_more_idleness_never_counts_less(cores: list[float], data: st.DataObject) -> None:
    """A minute with less work, or one more minute without any."""
    at = data.draw(st.integers(0, len(cores) - 1))
    less = LEVELS[max(LEVELS.index(cores[at]) - 1, 0)]
    before = counted_s(cores)
    assert counted_s([*cores[:at], less, *cores[at + 1 :]]) >= before
    assert before <= counted_s([*cores, LEVELS[0]]) <= before + 60 + 2 * 72
