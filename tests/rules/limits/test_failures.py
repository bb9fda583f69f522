"""What rules report about a run that ran out of memory: its last use, and a steady rise before."""

from collections.abc import Iterable
from functools import partial

from sageaudit.domain.job.job import Job
from tests.fakes.jobs import Points, market, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import Measured, even_use, finds, hosts

ONE_T4 = "ml.g4dn.xlarge"
"""$0.736 an hour."""


def out_of_memory(reason: str) -> Job:
    """Two hours on one T4 that failed."""
    return ran(7200, ONE_T4, status="Failed", secondary_status="Failed", failure=reason)


def filled_gpu(
    *memory: Points,
    gpus: int = 1,
    period_s: int = 60,
    instance: str = ONE_T4,
    failure: str = "CUDA out of memory",
) -> tuple[Job, Measured]:
    """A run on busy hosts whose GPU memory ends with these values, in percent of all GPUs."""
    seconds = len(memory[0]) * period_s
    failed = ran(seconds, instance, len(memory), status="Failed", failure=failure)
    of_hosts = (
        {
            "cores": [0.5] * len(points),
            "gpu": [90 * gpus] * len(points),
            "gpu_memory": [None if value is None else value * gpus for value in points],
        }
        for points in memory
    )
    return failed, hosts(*of_hosts, period_s=period_s)


def rising(minutes: int, first: float = 40, last: float = 98) -> list[float]:
    """The same growth in each minute."""
    return [first + (last - first) * minute / (minutes - 1) for minute in range(minutes)]


LEAK = rising(minutes=50)
"""From 40% to 98% in 50 minutes."""


verdict = partial(answer, "failed-spend")
ROSE = finds("…GPU memory rose steadily…")
DID_NOT_RISE = finds(without="rose")


def fifths(*percents: float) -> list[float]:
    """Five minutes at each."""
    return [percent for percent in percents for _ in range(5)]


def with_a_fall(points: Iterable[float], low: float) -> list[float]:
    """The same points with one point of the last fifth lowered."""
    whole = list(points)
    whole[22] = low
    return whole


EVEN = fifths(38, 53, 68, 83, 98)
KILLED = out_of_memory("AlgorithmError: , exit code: 137")


def test_a_full_gpu_is_named_with_its_last_use() -> None:
    # A larger GPU is the alternative that a setting has: of T4 and A10G the fake prices both.
    result = verdict(
        out_of_memory("CUDA out of memory"), even_use(minutes=120, cpu=50, gpu=90, gpu_memory=96)
    )
    assert result == finds(
        "The run failed after 2 h on 1 x ml.g4dn.xlarge (GPU out of memory: GPU memory "
        "was last recorded at 96%).",
        first_step="Halve the batch and accumulate gradients…",
        evidence={"gpu_memory_last_percent": 96},
    )


def test_a_full_host_is_named_and_gets_a_larger_type() -> None:
    """The next larger T4 host has twice as much."""
    result = verdict(
        out_of_memory("AlgorithmError: , exit code: 137"),
        even_use(minutes=120, cpu=50, memory=97, gpu=90),
    )
    assert result == finds(
        "…(host out of memory: host memory was last recorded at 97%)…",
        ways=[["ml.g4dn.2xlarge"]],
        first_step="Use fewer data-loader workers…",
        caution="A larger type makes every run more expensive…",
    )


def test_a_larger_type_is_named_at_up_to_4_times_the_rate() -> None:
    """A type at twelve times the rate is not named."""
    # $0.736 an hour today; the next larger T4 host would cost four times that, and a little more.
    for larger_usd, ways in (("2.944", [["ml.g4dn.2xlarge"]]), ("2.945", [])):
        result = verdict(
            out_of_memory("AlgorithmError: , exit code: 137"),
            even_use(minutes=120, cpu=50, memory=97, gpu=90),
            market=market(hourly_usd={"ml.g4dn.xlarge": "0.736", "ml.g4dn.2xlarge": larger_usd}),
        )
        assert result == finds(ways=ways)


def test_a_killed_process_is_no_proof_of_full_memory() -> None:
    """137 is SIGKILL."""
    result = verdict(
        out_of_memory("AlgorithmError: , exit code: 137"),
        even_use(minutes=120, cpu=50, memory=40, gpu=90),
    )
    assert result == finds("…40%, which does not show that it ran out…")


def test_memory_that_rose_steadily_until_it_ran_out_is_said_with_its_numbers() -> None:
    # 40% to 98% over 50 minutes: the median of the first ten is 45.3. The next step is another one.
    assert verdict(*filled_gpu(LEAK)) == finds(
        "The run failed after 50 min on 1 x ml.g4dn.xlarge (GPU out of memory: GPU memory "
        "rose steadily over 50 min, from about 45% to 98%).",
        first_step="Find what keeps growing, as a smaller batch only delays…",
        evidence={
            "gpu_memory_rose_from_percent": 45.3,
            "gpu_memory_rose_to_percent": 98,
            "gpu_memory_rose_minutes": 50,
            "gpu_memory_last_percent": 98,
        },
    )


def test_the_minutes_in_which_the_process_dies_are_no_part_of_the_rise() -> None:
    assert verdict(*filled_gpu([*LEAK, 60, 3])) == finds(
        "…rose steadily over 50 min, from about 45% to 98%…"
    )


def test_memory_that_is_full_from_the_start_or_filled_at_once_does_not_rise_steadily() -> None:
    # A model that is loaded, one step in the middle, an end at 79.9%, and a rise of 8 points.
    for memory in (
        [96.0] * 50,
        [10.0] * 3 + [95.0] * 47,
        [*rising(minutes=25, first=40, last=44), *rising(minutes=25, first=90, last=94)],
        rising(minutes=50, first=20, last=79.9),
        rising(minutes=50, first=88, last=98),
    ):
        assert verdict(*filled_gpu(memory)) == finds(
            "…GPU memory was last recorded at…",
            without="rose",
            lacks="gpu_memory_rose_minutes",
            first_step="Halve the batch…",
        )


def test_a_rise_of_10_points_from_the_first_fifth_to_the_last_is_enough_and_of_less_is_not() -> (
    None
):
    # By 0.25 a minute the medians of the first and the last ten minutes are 40 x 0.25 apart.
    assert verdict(*filled_gpu(rising(minutes=50, first=80, last=92.25))) == ROSE
    assert verdict(*filled_gpu(rising(minutes=50, first=80, last=92.2))) == DID_NOT_RISE


def test_a_sawtooth_does_not_rise_steadily_however_its_teeth_lie() -> None:
    for tooth in (5, 7, 10, 13, 20, 30, 45):
        result = verdict(
            *filled_gpu([18 + 80 * (minute % tooth) / tooth for minute in range(60)] + [98])
        )
        assert result == DID_NOT_RISE


def test_falls_of_5_points_on_the_way_do_not_hide_a_rise_and_one_of_half_the_rise_does() -> None:
    result = verdict(
        *filled_gpu([value - 5 * (minute % 7 == 0) for minute, value in enumerate(LEAK)])
    )
    assert result == ROSE
    result = verdict(
        *filled_gpu([value - 30 * (minute == 40) for minute, value in enumerate(LEAK)])
    )
    assert result == DID_NOT_RISE


def test_25_points_without_a_gap_over_6_minutes_show_a_rise_and_24_do_not() -> None:
    # 25 points are five in each fifth, of a minute or of five minutes.
    assert verdict(*filled_gpu(rising(minutes=25))) == ROSE
    assert verdict(*filled_gpu(rising(minutes=24))) == DID_NOT_RISE
    assert verdict(*filled_gpu(rising(minutes=25), period_s=300)) == finds("…over 2 h 5 min…")
    assert verdict(*filled_gpu([*LEAK[:20], *[None] * 6, *LEAK[26:]])) == finds("…over 50 min…")
    assert verdict(*filled_gpu([*LEAK[:20], *[None] * 7, *LEAK[27:]])) == DID_NOT_RISE


def test_of_several_gpus_the_mean_is_named_and_of_several_hosts_the_one_that_ended_fullest() -> (
    None
):
    # Of those that rose; where a host has no points, nothing is said.
    result = verdict(*filled_gpu(LEAK, gpus=4, instance="ml.g4dn.12xlarge"))
    assert result == finds("…over 50 min, from about 45% to 98% on average over 4 GPUs…")
    result = verdict(*filled_gpu([99.0] * 50, LEAK, rising(minutes=50, first=40, last=90)))
    assert result == finds("…rose steadily over 50 min on algo-2, from about 45% to 98%)…")
    assert verdict(*filled_gpu(LEAK, [None] * 50)) == DID_NOT_RISE


def test_only_a_failure_for_lack_of_gpu_memory_is_explained_by_it() -> None:
    assert verdict(*filled_gpu(LEAK, failure="AlgorithmError: exit code 1")) == finds(
        without="rose"
    )
    assert verdict(*filled_gpu(LEAK, failure="AlgorithmError: , exit code: 137")) == finds(
        without="rose"
    )


def test_memory_that_rose_by_more_than_three_quarters_within_two_fifths_is_a_step() -> None:
    """From 38% to 98% are 60 points, of which 45 are three quarters."""
    assert verdict(*filled_gpu(fifths(38, 45, 83, 90, 98))) == ROSE
    assert verdict(*filled_gpu(fifths(38, 45, 84, 90, 98))) == DID_NOT_RISE


def test_memory_that_falls_by_half_of_its_rise_is_a_sawtooth() -> None:
    assert verdict(*filled_gpu(with_a_fall(EVEN, 69))) == ROSE
    assert verdict(*filled_gpu(with_a_fall(EVEN, 68))) == DID_NOT_RISE


def test_the_last_three_points_are_those_in_which_the_process_dies() -> None:
    assert verdict(*filled_gpu([*LEAK, 60, 3])) == ROSE
    assert verdict(*filled_gpu([*LEAK, 60, 3, 3])) == DID_NOT_RISE


def test_host_memory_below_80_percent_does_not_show_that_it_ran_out() -> None:
    at_80 = even_use(minutes=120, cpu=50, memory=80, gpu=90)
    at_79 = even_use(minutes=120, cpu=50, memory=79, gpu=90)
    assert verdict(KILLED, at_80) == finds("…host memory was last recorded at 80%)…")
    assert verdict(KILLED, at_79) == finds(
        "…host memory was last recorded at 79%, which does not show that it ran out…"
    )
