from functools import partial

from sageaudit.domain.bill.finding import Found
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import Points, batch_job, ran, series, usage
from tests.fakes.judging import answer, outcome
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    finds,
    given_job,
    one_host,
)

RULE = "idle-middle"
ONE = ran(7200, "ml.g4dn.2xlarge")
TWO = ran(7200, "ml.g4dn.2xlarge", 2)


FIVE = ran(18000, "ml.g4dn.2xlarge")


def beat(works: list[int], waits: list[int], cores: float = 1.0) -> tuple[list[float], list[float]]:
    """Minutes of work and of a wait in turns: GPU in percent and busy cores."""
    gpu, busy = list[float](), list[float]()
    for at, minutes in enumerate(works):
        wait = waits[at] if at < len(waits) else 0
        gpu += [90.0] * minutes + [0.0] * wait
        busy += [2.0] * minutes + [cores] * wait
    return gpu, busy


@given_job
def on(run: Job, *hosts: tuple[Points, Points]) -> Measurements:
    """GPU in percent and busy cores of each host, minute by minute."""
    raw = []
    for number, (gpu, cores) in enumerate(hosts, start=1):
        host = f"train/algo-{number}"
        percent = [None if c is None else 100 * c for c in cores]
        raw += [series(Metric.GPU, gpu, host=host), series(Metric.CPU, percent, host=host)]
    return usage(run, *raw)


def wait(minutes: int, cores: float) -> tuple[list[float], list[float]]:
    """40 minutes of work, a wait, and work until two hours are over."""
    after = 80 - minutes
    return (
        [90.0] * 40 + [0.0] * minutes + [90.0] * after,
        [2.0] * 40 + [cores] * minutes + [2.0] * after,
    )


verdict = partial(answer, RULE)


def test_a_hung_process_is_counted() -> None:
    """30 of 120 minutes on one core: a quarter of 2 h x $0.94."""
    assert verdict(ONE, on(wait(30, 1.01))) == finds(
        "No GPU worked for 30 min in the middle of 2 h on 1 x ml.g4dn.2xlarge, "
        "and no host used more than one core; it began 40 min after the start.",
        builder="derived",
        usd="0.470000",
        caution="…timeout in the code…",
    )


def test_under_half_an_hour_is_a_pause() -> None:
    """A checkpoint, an evaluation, a download between epochs."""
    assert verdict(ONE, on(wait(29, 1.0))) == CLEAR
    assert verdict(ONE, on(wait(29, 6.0))) == CLEAR


def test_two_waits_are_one_finding() -> None:
    """Their minutes are added up."""
    # 5 h x $0.94 x 105 / 300: the second is over twice as long
    assert verdict(FIVE, on(beat([60, 60, 75], [30, 75]))) == finds(
        "No GPU worked for 1 h 45 min in 2 stretches in the…", usd="1.645000"
    )


def test_work_of_the_cpu_is_shown_in_gpu_hours() -> None:
    """An evaluation on six cores: no dollars."""
    assert verdict(ONE, on(wait(40, 6.0))) == finds(
        "The GPUs did nothing for 40 min in the middle of 2 h on 1 x ml.g4dn.2xlarge "
        "(0.7 GPU-hours), while 6.0 of 8 cores worked.",
        usd=None,
        bucket="none",
        caution="…processing job…",
    )


def test_one_host_at_work_while_the_others_wait_is_no_standstill() -> None:
    # The hours of the host that waits are shown.
    result = verdict(TWO, on(([90.0] * 120, [2.0] * 120), wait(60, 0.9)))
    assert result == finds(
        "The GPUs of 1 of 2 hosts did nothing for 1 h in the middle of 2 h on "
        "2 x ml.g4dn.2xlarge (1.0 GPU-hours), while GPUs of other hosts worked.",
        usd=None,
    )
    result = verdict(TWO, on(([30.0] * 120, [1.0] * 120), wait(60, 0.9)))
    assert result == finds(
        "The GPUs of 1 of 2 hosts did nothing for 1 h in the middle of 2 h on "
        "2 x ml.g4dn.2xlarge (1.0 GPU-hours), while GPUs of other hosts worked.",
        usd=None,
    )


def test_one_host_that_evaluates_on_its_cpu_is_work() -> None:
    # All GPUs wait for it: both hosts' hours are shown, no dollars.
    assert verdict(TWO, on(wait(60, 5.0), wait(60, 1.0))) == finds(
        usd=None, evidence={"gpu_hours_not_counted": 2.0}
    )


def test_what_is_counted_is_not_shown_again() -> None:
    # 35 minutes hung and 40 of evaluation later: dollars for the first, hours for the second.
    # 2 h x $0.94 x 35 / 120
    result = verdict(
        ONE,
        on(
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
    result = verdict(FIVE, on(beat([60, 40, 40, 40], [40, 40, 40])))
    assert result == finds(
        "No GPU worked for 2 h of 5 h on 1 x ml.g4dn.2xlarge: 3 times for about 40 min, "
        "while one core was busy.",
        builder="possible",
        usd="0.000000",
        span=("0.000000", "1.880000"),
        first_step="If the core evaluates…separate job…less often…",
        caution="…they are not counted…",
        evidence={
            "recurrences": 3,
            "recurring_s": 7200,
            "first_recurrence_after_s": 3600,
            "between_recurrences_s": 2400,
        },
    )
    result = verdict(FIVE, on(beat([60, 40, 40, 40], [40, 40, 40], cores=0.1)))
    assert result == finds(builder="measured", usd="1.880000")
    assert verdict(FIVE, on(beat([60, 40, 120], [40, 40]))) == finds(
        builder="possible", span=("0.000000", "1.253333")
    )


def test_they_vary_with_data_and_storage() -> None:
    """The middle one is what the sentence says."""
    result = verdict(FIVE, on(beat([46, 46, 46, 48], [31, 45, 38])))
    assert result == finds("…3 times for about 38 min, while…", builder="possible")


def test_a_hang_beside_an_evaluation_is_counted() -> None:
    """The evaluation is the upper end."""
    # 66 of 300 minutes, in two parts of one session between the second and the third evaluation
    result = verdict(FIVE, on(beat([36, 36, 18, 18, 36], [30, 30, 66, 30])))
    assert result == finds(
        "No GPU worked for 1 h 6 min in the middle of 5 h…",
        builder="derived",
        usd="1.034000",
        span=("1.034000", "2.444000"),
        caution="…evaluation: not counted.",
        evidence={"standstill_s": 3960, "recurring_s": 5400},
    )


def test_an_evaluation_that_ends_the_run_is_no_idle_end() -> None:
    """One that hangs there is."""
    result = verdict(FIVE, on(beat([60, 60, 60], [40, 40, 40])))
    assert result == finds(span=("0.000000", "1.880000"))
    result = answer("idle-tail", FIVE, on(beat([60, 60, 60], [40, 40, 40])))
    assert result == finds("No GPU worked in the last 40 min…1.0 of 8 cores worked.", usd=None)
    result = answer("idle-tail", FIVE, on(beat([40, 50, 50], [40, 40, 80])))
    assert result == finds("No GPU worked in the last 1 h 20 min of 5 h…", usd="1.253333")


def test_the_end_is_left_to_idle_tail() -> None:
    """And the start to idle-start: neither is told twice."""
    assert verdict(ONE, on(([90.0] * 60 + [0.0] * 60, [2.0] * 60 + [1.0] * 60))) == CLEAR
    result = answer("idle-tail", ONE, on(([90.0] * 60 + [0.0] * 60, [2.0] * 60 + [1.0] * 60)))
    assert result == FOUND
    assert verdict(ONE, on(([0.0] * 60 + [90.0] * 60, [1.0] * 60 + [2.0] * 60))) == CLEAR
    assert answer("idle-tail", ONE, on(wait(60, 1.0))) == CLEAR
    assert answer("idle-start", ONE, on(wait(60, 1.0))) == CLEAR
    assert answer("gpu-underused", ONE, on(wait(60, 1.0))) == CLEAR


def test_another_type_is_sized_by_the_minutes_at_work() -> None:
    # 10% busy for 40 minutes and hung for 80: no rule takes the hung minutes for spare speed.
    result = answer(
        "gpu-underused", ONE, on((([10.0] * 20 + [0.0] * 80 + [10.0] * 20), ([1.0] * 120)))
    )
    assert result == finds(evidence={"gpu_mean_percent": 10.0})


def test_a_prepaid_run_has_no_dollars_to_save() -> None:
    """It stood still all the same."""
    result = verdict(
        ran(7200, "ml.g4dn.2xlarge", purchase=Purchase.TRAINING_PLAN), on(wait(60, 1.0))
    )
    assert result == finds(usd="0.000000")


def test_processing_and_transform_jobs_are_judged_too() -> None:
    """Their one phase is cut."""
    result = verdict(
        batch_job(JobKind.PROCESSING, 7200, "ml.g4dn.2xlarge"),
        on(wait(60, 1.0)),
    )
    assert result == finds(alone="0.940000")
    result = verdict(
        batch_job(JobKind.TRANSFORM, 7200, "ml.g4dn.2xlarge"),
        on(wait(60, 1.0)),
    )
    assert result == finds(alone="0.940000")


def test_hosts_that_slept_are_measured() -> None:
    """2 hosts x 2 h x $0.94 x 40 / 120."""
    assert verdict(TWO, on(wait(40, 0.05), wait(40, 0.1))) == finds(
        confidence="measured", usd="1.253333", without="one core"
    )


def test_who_cannot_be_judged_is_not() -> None:
    """No GPU; no points of one host."""
    assert verdict(ran(7200), one_host(cores=[1.0] * 120)) == does_not_apply("…")
    assert verdict(TWO, on(wait(60, 1.0))) == cannot_judge("hosts_missing")


def test_a_gap_is_not_a_standstill() -> None:
    """Without points nobody knows."""
    points: Points = [90.0] * 40 + [None] * 40 + [90.0] * 40
    cores: Points = [2.0] * 40 + [None] * 40 + [2.0] * 40
    assert not isinstance(outcome(RULE, ONE, on((points, cores))), Found)
