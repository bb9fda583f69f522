from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import Points, phases, ran, series, usage
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "idle-middle"
ONE = ran(7200, "ml.g4dn.2xlarge")
TWO = ran(7200, "ml.g4dn.2xlarge", 2)


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


def test_a_hung_process_is_counted() -> None:
    """30 of 120 minutes on one core: a quarter of 2 h x $0.94."""
    finding = priced(RULE, ONE, on(ONE, wait(30, 1.01)))
    assert finding.found.summary == (
        "No GPU worked for 30 min in the middle of 2 h on 1 x ml.g4dn.2xlarge, "
        "and no host used more than one core; it began 40 min after the start."
    )
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.DERIVED, Bucket.AVOIDABLE,
    )  # fmt: skip
    assert usd(finding.saving_usd) == "0.470000"
    assert "timeout in the code" in (finding.found.caution or "")


def test_hosts_that_slept_are_measured() -> None:
    """Nothing at all was done, on either of two hosts: 40 minutes of both."""
    finding = priced(RULE, TWO, on(TWO, wait(40, 0.05), wait(40, 0.1)))
    assert finding.found.confidence is Confidence.MEASURED
    # 2 hosts x 2 h x $0.94 x 40 / 120
    assert usd(finding.saving_usd) == "1.253333"
    assert "one core" not in finding.found.summary


def test_under_half_an_hour_is_a_pause() -> None:
    """A checkpoint, an evaluation, a download between epochs."""
    assert outcome(RULE, ONE, on(ONE, wait(29, 1.0))) == Clear()
    assert outcome(RULE, ONE, on(ONE, wait(29, 6.0))) == Clear()


def test_two_waits_are_one_finding() -> None:
    """Their minutes are added up."""
    gpu = [90.0] * 20 + [0.0] * 30 + [90.0] * 20 + [0.0] * 32 + [90.0] * 18
    finding = priced(RULE, ONE, on(ONE, (gpu, [1.0] * 120)))
    assert finding.found.summary.startswith("No GPU worked for 1 h 2 min in 2 stretches in the")
    # 2 h x $0.94 x 62 / 120
    assert usd(finding.saving_usd) == "0.971333"


def test_work_of_the_cpu_is_shown_in_gpu_hours() -> None:
    """An evaluation on six cores: no dollars."""
    finding = priced(RULE, ONE, on(ONE, wait(40, 6.0)))
    assert finding.found.summary == (
        "The GPUs did nothing for 40 min in the middle of 2 h on 1 x ml.g4dn.2xlarge "
        "(0.7 GPU-hours), while 6.0 of 8 cores worked."
    )
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert "processing job" in (finding.found.caution or "")


@pytest.mark.parametrize("works", [([90.0] * 120, [2.0] * 120), ([30.0] * 120, [1.0] * 120)])
def test_one_host_at_work_while_the_others_wait_is_no_standstill(
    works: tuple[Points, Points],
) -> None:
    """The hours of the host that waits are shown."""
    finding = priced(RULE, TWO, on(TWO, works, wait(60, 0.9)))
    assert finding.found.summary == (
        "The GPUs of 1 of 2 hosts did nothing for 1 h in the middle of 2 h on "
        "2 x ml.g4dn.2xlarge (1.0 GPU-hours), while GPUs of other hosts worked."
    )
    assert finding.saving_usd is None


def test_one_host_that_evaluates_on_its_cpu_is_work() -> None:
    """All GPUs wait for it: both hosts' hours are shown, no dollars."""
    finding = priced(RULE, TWO, on(TWO, wait(60, 5.0), wait(60, 1.0)))
    assert finding.found.evidence["gpu_hours_not_counted"] == 2.0
    assert finding.saving_usd is None


def test_what_is_counted_is_not_shown_again() -> None:
    """35 minutes hung and 40 of evaluation later: dollars for the first, hours for the second."""
    gpu = [90.0] * 20 + [0.0] * 35 + [90.0] * 10 + [0.0] * 40 + [90.0] * 15
    cores = [1.0] * 65 + [6.0] * 40 + [1.0] * 15
    finding = priced(RULE, ONE, on(ONE, (gpu, cores)))
    assert finding.found.evidence["gpu_hours_not_counted"] == 0.7
    # 2 h x $0.94 x 35 / 120
    assert usd(finding.saving_usd) == "0.548333"


def test_the_end_is_left_to_idle_tail() -> None:
    """And the start to idle-start: neither is told twice."""
    of = on(ONE, ([90.0] * 60 + [0.0] * 60, [2.0] * 60 + [1.0] * 60))
    assert outcome(RULE, ONE, of) == Clear()
    assert isinstance(outcome("idle-tail", ONE, of), Found)
    head = on(ONE, ([0.0] * 60 + [90.0] * 60, [1.0] * 60 + [2.0] * 60))
    assert outcome(RULE, ONE, head) == Clear()
    middle = on(ONE, wait(60, 1.0))
    assert outcome("idle-tail", ONE, middle) == Clear()
    assert outcome("idle-start", ONE, middle) == Clear()
    assert outcome("gpu-underused", ONE, middle) == Clear()


def test_another_type_is_sized_by_the_minutes_at_work() -> None:
    """10% busy for 40 minutes and hung for 80: no rule takes the hung minutes for spare speed."""
    gpu, cores = [10.0] * 20 + [0.0] * 80 + [10.0] * 20, [1.0] * 120
    of = on(ONE, (gpu, cores))
    assert found("gpu-underused", ONE, of).evidence["gpu_mean_percent"] == 10.0


def test_a_prepaid_run_has_no_dollars_to_save() -> None:
    """It stood still all the same."""
    run = ran(7200, "ml.g4dn.2xlarge", purchase=Purchase.TRAINING_PLAN)
    assert priced(RULE, run, on(run, wait(60, 1.0))).saving_usd == Decimal(0)


@pytest.mark.parametrize(
    ("kind", "phase"), [(JobKind.PROCESSING, "Processing"), (JobKind.TRANSFORM, "Transform")]
)
def test_processing_and_transform_jobs_are_judged_too(kind: JobKind, phase: str) -> None:
    """Their one phase is cut."""
    run = ran(7200, "ml.g4dn.2xlarge", kind=kind, phases=phases((phase, 7200)), billable_s=None)
    assert usd(priced(RULE, run, on(run, wait(60, 1.0))).alone_usd) == "0.940000"


def test_who_cannot_be_judged_is_not() -> None:
    """No GPU; no points of one host; a type that is not known."""
    run = ran(7200)
    cpu = series(Metric.CPU, [100] * 120)
    assert not_applicable(RULE, run, usage(run, cpu))
    assert unknown(RULE, TWO, on(TWO, wait(60, 1.0))) == "hosts_missing"


def test_a_gap_is_not_a_standstill() -> None:
    """Without points nobody knows."""
    points: Points = [90.0] * 40 + [None] * 40 + [90.0] * 40
    cores: Points = [2.0] * 40 + [None] * 40 + [2.0] * 40
    assert not isinstance(outcome(RULE, ONE, on(ONE, (points, cores))), Found)
