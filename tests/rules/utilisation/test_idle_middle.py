from functools import partial

import pytest

from sageaudit.domain.bill.finding import Detection
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import Points, batch_job, ran
from tests.fakes.judging import answer, outcome
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    Measured,
    cannot_judge,
    does_not_apply,
    finds,
    hosts,
    one_host,
)

RULE = "idle-middle"
ONE_HOST = ran(7200, "ml.g4dn.2xlarge")
"""Two hours on one T4 and 8 vCPUs at $0.94 an hour."""
TWO_HOSTS = ran(7200, "ml.g4dn.2xlarge", 2)
FIVE_HOURS = ran(18000, "ml.g4dn.2xlarge")


def turns(
    works: list[int], waits: list[int], cores: float = 1.0
) -> tuple[list[float], list[float]]:
    """Minutes of work and of a wait in turns: GPU in percent and busy cores."""
    gpu, busy = list[float](), list[float]()
    for turn, minutes in enumerate(works):
        wait = waits[turn] if turn < len(waits) else 0
        gpu += [90.0] * minutes + [0.0] * wait
        busy += [2.0] * minutes + [cores] * wait
    return gpu, busy


def gpu_and_cores(*host_points: tuple[Points, Points]) -> Measured:
    """GPU in percent and busy cores of each host, minute by minute."""
    return hosts(*({"gpu": gpu, "cores": cores} for gpu, cores in host_points))


def wait(minutes: int, cores: float) -> tuple[list[float], list[float]]:
    """40 minutes of work, a wait with this many busy cores, and work until two hours end."""
    after = 80 - minutes
    return (
        [90.0] * 40 + [0.0] * minutes + [90.0] * after,
        [2.0] * 40 + [cores] * minutes + [2.0] * after,
    )


verdict = partial(answer, RULE)


def test_a_process_that_hung_for_30_minutes_on_one_core_is_counted() -> None:
    """30 of 120 minutes on one core: a quarter of 2 h x $0.94."""
    assert verdict(ONE_HOST, gpu_and_cores(wait(minutes=30, cores=1.01))) == finds(
        "No GPU worked for 30 min in the middle of 2 h on 1 x ml.g4dn.2xlarge, "
        "and no host used more than one core; it began 40 min after the start.",
        builder="derived",
        usd="0.470000",
        caution="…timeout in the code…",
    )


def test_29_minutes_without_the_gpu_are_a_pause() -> None:
    """A checkpoint, an evaluation, a download between epochs."""
    assert verdict(ONE_HOST, gpu_and_cores(wait(minutes=29, cores=1.0))) == CLEAR
    assert verdict(ONE_HOST, gpu_and_cores(wait(minutes=29, cores=6.0))) == CLEAR


def test_two_waits_are_one_finding() -> None:
    """Their minutes are added up."""
    # 5 h x $0.94 x 105 / 300: the second is over twice as long
    assert verdict(FIVE_HOURS, gpu_and_cores(turns(works=[60, 60, 75], waits=[30, 75]))) == finds(
        "No GPU worked for 1 h 45 min in 2 stretches in the…", usd="1.645000"
    )


def test_work_of_the_cpu_is_shown_in_gpu_hours() -> None:
    """An evaluation on six cores: no dollars."""
    assert verdict(ONE_HOST, gpu_and_cores(wait(minutes=40, cores=6.0))) == finds(
        "The GPUs did nothing for 40 min in the middle of 2 h on 1 x ml.g4dn.2xlarge "
        "(0.7 GPU-hours), while 6.0 of 8 cores worked.",
        usd=None,
        bucket="none",
        caution="…processing job…",
    )


def test_one_host_at_work_while_the_others_wait_is_no_standstill() -> None:
    # The hours of the host that waits are shown.
    result = verdict(
        TWO_HOSTS, gpu_and_cores(([90.0] * 120, [2.0] * 120), wait(minutes=60, cores=0.9))
    )
    assert result == finds(
        "The GPUs of 1 of 2 hosts did nothing for 1 h in the middle of 2 h on "
        "2 x ml.g4dn.2xlarge (1.0 GPU-hours), while GPUs of other hosts worked.",
        usd=None,
    )
    result = verdict(
        TWO_HOSTS, gpu_and_cores(([30.0] * 120, [1.0] * 120), wait(minutes=60, cores=0.9))
    )
    assert result == finds(
        "The GPUs of 1 of 2 hosts did nothing for 1 h in the middle of 2 h on "
        "2 x ml.g4dn.2xlarge (1.0 GPU-hours), while GPUs of other hosts worked.",
        usd=None,
    )


def test_one_host_that_evaluates_on_its_cpu_is_work() -> None:
    # All GPUs wait for it: both hosts' hours are shown, no dollars.
    assert verdict(
        TWO_HOSTS, gpu_and_cores(wait(minutes=60, cores=5.0), wait(minutes=60, cores=1.0))
    ) == finds(usd=None, evidence={"gpu_hours_not_counted": 2.0})


def test_what_is_counted_is_not_shown_again() -> None:
    # 35 minutes hung and 40 of evaluation later: dollars for the first, hours for the second.
    # 2 h x $0.94 x 35 / 120
    result = verdict(
        ONE_HOST,
        gpu_and_cores(
            (
                ([90.0] * 20 + [0.0] * 35 + [90.0] * 10 + [0.0] * 40 + [90.0] * 15),
                ([1.0] * 65 + [6.0] * 40 + [1.0] * 15),
            )
        ),
    )
    assert result == finds(usd="0.548333", evidence={"gpu_hours_not_counted": 0.7})


def test_waits_of_similar_length_with_one_core_may_be_an_evaluation() -> None:
    """Possible at most, and no timeout."""
    # 3 x 40 min of 5 h at $0.94: $1.88 are possible
    result = verdict(FIVE_HOURS, gpu_and_cores(turns(works=[60, 40, 40, 40], waits=[40, 40, 40])))
    assert result == finds(
        "No GPU worked for 2 h of 5 h on 1 x ml.g4dn.2xlarge: 3 times for about 40 min, "
        "while one core was busy.",
        builder="possible",
        usd="0.000000",
        span=("0.000000", "1.880000"),
        first_step="If the core runs an evaluation…less often…separate job…",
        caution="…they are not counted…",
        evidence={
            "recurrences": 3,
            "recurring_s": 7200,
            "first_recurrence_after_s": 3600,
            "between_recurrences_s": 2400,
        },
    )
    result = verdict(
        FIVE_HOURS, gpu_and_cores(turns(works=[60, 40, 40, 40], waits=[40, 40, 40], cores=0.1))
    )
    assert result == finds(builder="measured", usd="1.880000")
    assert verdict(FIVE_HOURS, gpu_and_cores(turns(works=[60, 40, 120], waits=[40, 40]))) == finds(
        builder="possible", span=("0.000000", "1.253333")
    )


def test_they_vary_with_data_and_storage() -> None:
    """The middle one is what the sentence says."""
    result = verdict(FIVE_HOURS, gpu_and_cores(turns(works=[46, 46, 46, 48], waits=[31, 45, 38])))
    assert result == finds("…3 times for about 38 min, while…", builder="possible")


def test_a_hang_beside_an_evaluation_is_counted() -> None:
    """The evaluation is the upper end."""
    # 66 of 300 minutes, in two parts of one session between the second and the third evaluation
    result = verdict(
        FIVE_HOURS, gpu_and_cores(turns(works=[36, 36, 18, 18, 36], waits=[30, 30, 66, 30]))
    )
    assert result == finds(
        "No GPU worked for 1 h 6 min in the middle of 5 h…",
        builder="derived",
        usd="1.034000",
        span=("1.034000", "2.444000"),
        caution="…evaluation, so they are not counted.",
        evidence={"standstill_s": 3960, "recurring_s": 5400},
    )


def test_an_evaluation_that_ends_the_run_is_no_idle_end() -> None:
    """One that hangs there is."""
    result = verdict(FIVE_HOURS, gpu_and_cores(turns(works=[60, 60, 60], waits=[40, 40, 40])))
    assert result == finds(span=("0.000000", "1.880000"))
    result = answer(
        "idle-tail", FIVE_HOURS, gpu_and_cores(turns(works=[60, 60, 60], waits=[40, 40, 40]))
    )
    assert result == finds("No GPU worked in the last 40 min…1.0 of 8 cores worked.", usd=None)
    result = answer(
        "idle-tail", FIVE_HOURS, gpu_and_cores(turns(works=[40, 50, 50], waits=[40, 40, 80]))
    )
    assert result == finds("No GPU worked in the last 1 h 20 min of 5 h…", usd="1.253333")


def test_the_end_is_left_to_idle_tail() -> None:
    """And the start to idle-start: neither is reported twice."""
    assert (
        verdict(ONE_HOST, gpu_and_cores(([90.0] * 60 + [0.0] * 60, [2.0] * 60 + [1.0] * 60)))
        == CLEAR
    )
    result = answer(
        "idle-tail", ONE_HOST, gpu_and_cores(([90.0] * 60 + [0.0] * 60, [2.0] * 60 + [1.0] * 60))
    )
    assert result == FOUND
    assert (
        verdict(ONE_HOST, gpu_and_cores(([0.0] * 60 + [90.0] * 60, [1.0] * 60 + [2.0] * 60)))
        == CLEAR
    )
    assert answer("idle-tail", ONE_HOST, gpu_and_cores(wait(minutes=60, cores=1.0))) == CLEAR
    assert answer("idle-start", ONE_HOST, gpu_and_cores(wait(minutes=60, cores=1.0))) == CLEAR
    assert answer("gpu-underused", ONE_HOST, gpu_and_cores(wait(minutes=60, cores=1.0))) == CLEAR


def test_another_type_is_sized_by_the_minutes_at_work() -> None:
    # 10% busy for 40 minutes and hung for 80: no rule takes the hung minutes for spare speed.
    result = answer(
        "gpu-underused",
        ONE_HOST,
        gpu_and_cores((([10.0] * 20 + [0.0] * 80 + [10.0] * 20), ([1.0] * 120))),
    )
    assert result == finds(evidence={"gpu_mean_percent": 10.0})


def test_a_prepaid_run_has_no_dollars_to_save() -> None:
    """Its GPUs were idle all the same."""
    result = verdict(
        ran(7200, "ml.g4dn.2xlarge", purchase=Purchase.TRAINING_PLAN),
        gpu_and_cores(wait(minutes=60, cores=1.0)),
    )
    assert result == finds(usd="0.000000")


@pytest.mark.parametrize("kind", [JobKind.PROCESSING, JobKind.TRANSFORM])
def test_of_a_processing_or_transform_job_its_one_phase_is_cut(kind: JobKind) -> None:
    # An hour of two at $0.94.
    job = batch_job(kind, 7200, "ml.g4dn.2xlarge")
    assert verdict(job, gpu_and_cores(wait(minutes=60, cores=1.0))) == finds(alone="0.940000")


def test_hosts_that_slept_are_measured() -> None:
    """2 hosts x 2 h x $0.94 x 40 / 120."""
    assert verdict(
        TWO_HOSTS, gpu_and_cores(wait(minutes=40, cores=0.05), wait(minutes=40, cores=0.1))
    ) == finds(confidence="measured", usd="1.253333", without="one core")


def test_who_cannot_be_judged_is_not() -> None:
    """No GPU; no points of one host."""
    assert verdict(ran(7200), one_host(cores=[1.0] * 120)) == does_not_apply("…")
    assert verdict(TWO_HOSTS, gpu_and_cores(wait(minutes=60, cores=1.0))) == cannot_judge(
        "hosts_missing"
    )


def test_a_gap_is_not_a_standstill() -> None:
    """Without points it is not known."""
    points: Points = [90.0] * 40 + [None] * 40 + [90.0] * 40
    cores: Points = [2.0] * 40 + [None] * 40 + [2.0] * 40
    assert not isinstance(outcome(RULE, ONE_HOST, gpu_and_cores((points, cores))), Detection)
