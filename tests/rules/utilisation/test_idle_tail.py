from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.job.job import InstanceGroup, Job, Phase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import (
    START,
    FixedPrices,
    Points,
    flat,
    instance_type,
    phases,
    ran,
    series,
    usage,
)
from tests.fakes.judging import found, outcome, priced, unknown, usd
from tests.fakes.trainium import MARKET, TRAINIUM, cpu_alone

RULE = "idle-tail"
ONE = ran(7200, "ml.m5.4xlarge")
TWO = ran(7200, "ml.m5.4xlarge", 2)
GPU = ran(7200, "ml.g4dn.2xlarge")


def cores(run: Job, *hosts: Points) -> Measurements:
    """Busy cores of each host, minute by minute."""
    return usage(
        run,
        *(
            series(Metric.CPU, [None if c is None else 100 * c for c in of], host=f"train/algo-{n}")
            for n, of in enumerate(hosts, start=1)
        ),
    )


def test_a_hung_exit_is_measured() -> None:
    """30 of 2 h on a GPU instance: a quarter of 2 h x $0.94."""
    of = usage(
        GPU,
        series(Metric.CPU, [200] * 90 + [5] * 30),
        series(Metric.GPU, [None] * 4 + [90] * 86 + [0] * 30),
    )
    finding = priced(RULE, GPU, of)
    assert finding.found.summary == (
        "All hosts were idle for the last 30 min of 2 h on 1 x ml.g4dn.2xlarge."
    )
    assert finding.found.confidence is Confidence.MEASURED
    assert finding.found.bucket is Bucket.AVOIDABLE
    assert finding.found.fix == ()
    assert usd(finding.saving_usd) == "0.470000"
    assert finding.range_usd is None


def test_ten_minutes_are_long_and_nine_are_not() -> None:
    """Zeros trail the end of healthy jobs for three."""
    assert isinstance(outcome(RULE, ONE, cores(ONE, [9.0] * 110 + [0] * 10)), Found)
    assert outcome(RULE, ONE, cores(ONE, [9.0] * 111 + [0] * 9)) == Clear()


def test_missing_points_are_idle_only_in_short_gaps() -> None:
    """Four at the end may have been work; four in between begin the tail anew."""
    assert outcome(RULE, ONE, cores(ONE, [9.0] * 90 + [0] * 26 + [None] * 4)) == Clear()
    what = found(RULE, ONE, cores(ONE, [9.0] * 90 + [0] * 10 + [None] + [0] * 19))
    assert what.evidence["idle_s"] == 1800
    what = found(RULE, ONE, cores(ONE, [9.0] * 90 + [0] * 8 + [None] * 4 + [0] * 18))
    assert what.evidence["idle_s"] == 1080


def test_work_at_the_end_leaves_no_tail() -> None:
    """A run that waited and then wrote its results."""
    assert outcome(RULE, ONE, cores(ONE, [9.0] * 60 + [0] * 59 + [9.0])) == Clear()


def test_a_host_that_ended_early_is_a_range_from_nothing() -> None:
    """60 minutes of one host of two: a quarter of 2 x 2 h at best, if it shared the work."""
    finding = priced(RULE, TWO, cores(TWO, [9.0] * 120, [9.0] * 60 + [0] * 60))
    assert finding.found.summary == (
        "1 of 2 hosts ended up to 1 h before the last one, in 2 h on 2 x ml.m5.4xlarge."
    )
    assert finding.found.confidence is Confidence.DERIVED
    assert finding.saving_usd == 0
    # 30 of 120 minutes: 2 x 2 h x $0.92 / 4, and 2 x 30 GB x $0.14 x 2 h / 744 h / 4
    assert [usd(end) for end in finding.range_usd or ()] == ["0.000000", "0.925645"]
    assert finding.found.evidence["idle_before_s algo-2"] == 3600
    assert finding.severity.value == "low"


def test_nine_minutes_earlier_are_not_early() -> None:
    """Ten are; both after the idle minutes of all."""
    assert isinstance(outcome(RULE, TWO, cores(TWO, [9.0] * 120, [9.0] * 110 + [0] * 10)), Found)
    assert outcome(RULE, TWO, cores(TWO, [9.0] * 120, [9.0] * 111 + [0] * 9)) == Clear()
    trailing = cores(TWO, [9.0] * 117 + [0] * 3, [9.0] * 108 + [0] * 12)
    assert outcome(RULE, TWO, trailing) == Clear()


def test_the_idle_end_of_all_is_counted_and_the_early_host_is_the_range() -> None:
    """20 minutes of both, and 40 more of one."""
    finding = priced(RULE, TWO, cores(TWO, [9.0] * 100 + [0] * 20, [9.0] * 60 + [0] * 60))
    assert finding.found.summary == (
        "All hosts were idle for the last 20 min of 2 h on 2 x ml.m5.4xlarge; "
        "1 of 2 hosts ended up to 40 min before that."
    )
    # 20 and 40 of 120 minutes of 2 x 2 h x $0.92 + 2 x 30 GB x $0.14 x 2 h / 744 h = $3.702581
    assert [usd(end) for end in finding.range_usd or ()] == ["0.617097", "1.234194"]
    assert usd(finding.saving_usd) == "0.617097"


def test_at_most_four_early_hosts_are_told() -> None:
    """The earliest first."""
    run = ran(7200, "ml.m5.4xlarge", 7)
    early = [[9.0] * (40 + 10 * n) + [0] * (80 - 10 * n) for n in range(6)]
    evidence = found(RULE, run, cores(run, [9.0] * 120, *early)).evidence
    told = [key for key in evidence if key.startswith("idle_before_s ")]
    assert told == [f"idle_before_s algo-{n}" for n in (2, 3, 4, 5)]
    assert evidence["hosts_ended_early"] == 6


def test_a_host_that_took_no_part_did_not_end_early() -> None:
    """It was idle after its start: uneven-hosts tells that."""
    assert outcome(RULE, TWO, cores(TWO, [9.0] * 120, [0] * 120)) == Clear()
    assert outcome(RULE, TWO, cores(TWO, [9.0] * 120, [1] * 6 + [0] * 114)) == Clear()
    assert isinstance(outcome(RULE, TWO, cores(TWO, [9.0] * 120, [1] * 7 + [0] * 113)), Found)


def test_a_run_without_any_work_is_one_idle_tail() -> None:
    """Measured as a whole; the start that came too late to be seen stays out."""
    finding = priced(RULE, ONE, cores(ONE, [0.05] * 120))
    assert finding.found.summary == "No host worked in 2 h on 1 x ml.m5.4xlarge."
    assert usd(finding.saving_usd) == "1.851290"
    late = usage(GPU, series(Metric.CPU, [0] * 120), series(Metric.GPU, [None] * 5 + [0] * 115))
    assert found(RULE, GPU, late).evidence["idle_s"] == 6900


def test_a_run_seen_late_is_not_said_to_have_done_nothing() -> None:
    """It may have worked in the 30 minutes without points."""
    what = found(RULE, ONE, cores(ONE, [None] * 30 + [0] * 90))
    assert "last 1 h 30 min of 2 h" in what.summary


def test_a_host_without_points_may_have_worked() -> None:
    """Three of four hosts idle at the end are not all."""
    run = ran(7200, "ml.m5.4xlarge", 4)
    tails: list[Points] = [[9.0] * 60 + [0] * 60] * 3
    assert unknown(RULE, run, cores(run, *tails)) == "hosts_missing"


def test_the_tail_of_a_restarted_spot_run_is_its_last_one() -> None:
    """Two times of Training with a gap between them: 20 idle minutes end the second."""
    gap = START + timedelta(hours=2)
    run = ran(
        7200,
        "ml.m5.4xlarge",
        phases=(
            Phase("Training", START, Decimal(3600), billed=True),
            Phase("Interrupted", START + timedelta(hours=1), Decimal(3600), billed=False),
            Phase("Training", gap, Decimal(3600), billed=True),
        ),
    )
    of = cores(run, [9.0] * 60 + [None] * 60 + [9.0] * 40 + [0] * 20)
    finding = priced(RULE, run, of)
    assert finding.found.evidence["idle_s"] == 1200
    # a sixth of 2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h
    assert usd(finding.saving_usd) == "0.308548"


@pytest.mark.parametrize(
    ("kind", "phase"),
    [
        (JobKind.PROCESSING, "Processing"),
        (JobKind.TRANSFORM, "Transform"),
        (JobKind.TRAINING, "Running"),
    ],
)
def test_other_kinds_lose_their_own_phase(kind: JobKind, phase: str) -> None:
    """12 of 60 minutes at $0.92."""
    run = ran(3600, "ml.m5.4xlarge", kind=kind, phases=phases((phase, 3600)), volume_gb=None)
    finding = priced(RULE, run, cores(run, [9.0] * 48 + [0] * 12))
    assert usd(finding.alone_usd) == "0.184000"


def test_without_the_gpu_of_a_gpu_job_it_does_not_know() -> None:
    """Its card asks for CPU alone, which CPU jobs have too."""
    assert unknown(RULE, GPU, flat(GPU, 120, cpu=1)) == "metric_missing"


def test_accelerators_that_nobody_measures_may_have_worked() -> None:
    """Trainium reports no such metric."""
    run = ran(7200, TRAINIUM)
    answer = outcome(RULE, run, cpu_alone(run, [200] * 90 + [0] * 30), on=MARKET)
    assert isinstance(answer, Unknown)
    assert answer.code == "accelerator_unseen"


def test_on_a_mixed_cluster_only_the_end_of_all_is_told() -> None:
    """Two types of one size: which host ended early at which price nobody knows."""
    types = {
        name: instance_type(name, 16, memory)
        for name, memory in (("ml.m5.4xlarge", 64), ("ml.c5.4xlarge", 32))
    }
    run = ran(7200, groups=tuple(InstanceGroup(name, 1) for name in types))

    def answer(*hosts: Points) -> object:
        raw = [
            series(Metric.CPU, [100 * (c or 0) for c in of], host=f"train/algo-{n}")
            for n, of in enumerate(hosts, start=1)
        ]
        of = measure(run, raw, types, absent=Missing("metric_missing", "no points"))
        return outcome(RULE, run, of, on=Market(types, FixedPrices()))

    assert isinstance(answer([9.0] * 90 + [0] * 30, [9.0] * 90 + [0] * 30), Found)
    early = answer([9.0] * 120, [9.0] * 60 + [0] * 60)
    assert isinstance(early, Unknown)
    assert early.code == "hosts_unmapped"


def gpu_end(minutes: int, cores: float, run: Job = GPU) -> Measurements:
    """A GPU at work, and so many last minutes of two hours without it on these cores."""
    before = 120 - minutes
    return usage(
        run,
        series(Metric.CPU, [200] * before + [100 * cores] * minutes),
        series(Metric.GPU, [90] * before + [0] * minutes),
    )


def test_a_hung_process_that_spins_on_one_core_is_counted() -> None:
    """60 of 120 minutes: half of 2 h x $0.94. What one core does needs no GPU."""
    finding = priced(RULE, GPU, gpu_end(60, 1.01))
    assert finding.found.summary == (
        "No GPU worked in the last 1 h of 2 h on 1 x ml.g4dn.2xlarge, "
        "and no host used more than one core."
    )
    assert finding.found.confidence is Confidence.DERIVED
    assert usd(finding.saving_usd) == "0.940000"
    assert "needs none of these GPUs" in (finding.found.caution or "")


@pytest.mark.parametrize(("minutes", "cores", "told"), [
    (30, 1.2, True), (29, 1.2, False), (30, 1.21, True), (29, 6.0, False),
])  # fmt: skip
def test_a_core_is_counted_from_half_an_hour_and_more_is_told(
    minutes: int, cores: float, told: bool
) -> None:
    """Writing a model, a short evaluation are ordinary; longer CPU work has hours, no dollars."""
    answer = outcome(RULE, GPU, gpu_end(minutes, cores))
    assert isinstance(answer, Found) is told
    if isinstance(answer, Found):
        assert (answer.bucket is Bucket.AVOIDABLE) is (cores <= 1.2)


def test_an_evaluation_on_the_cpu_is_told_in_gpu_hours() -> None:
    """40 minutes on six of eight cores after the last GPU work."""
    finding = priced(RULE, GPU, gpu_end(40, 6.0))
    assert finding.found.summary == (
        "No GPU worked in the last 40 min of 2 h on 1 x ml.g4dn.2xlarge (0.7 GPU-hours), "
        "while 6.0 of 8 cores worked."
    )
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)


def test_a_host_that_spins_at_its_end_while_another_works_ended_early() -> None:
    """60 minutes on one core without its GPU: a range from nothing to half an hour of both."""
    run = ran(7200, "ml.g4dn.2xlarge", 2)
    of = usage(
        run,
        series(Metric.CPU, [200] * 120),
        series(Metric.GPU, [90] * 120),
        series(Metric.CPU, [200] * 60 + [101] * 60, host="train/algo-2"),
        series(Metric.GPU, [90] * 60 + [0] * 60, host="train/algo-2"),
    )
    finding = priced(RULE, run, of)
    assert finding.found.summary == (
        "1 of 2 hosts ended up to 1 h before the last one, in 2 h on 2 x ml.g4dn.2xlarge."
    )
    # an hour of one host, shared by two: 30 of 120 minutes of 2 x 2 h x $0.94
    assert [usd(end) for end in finding.range_usd or ()] == ["0.000000", "0.940000"]


def test_cpu_work_before_the_idle_tail_is_mentioned() -> None:
    """40 minutes of evaluation on six cores, then 20 idle ones, of which alone the dollars are."""
    of = usage(
        GPU,
        series(Metric.CPU, [200] * 60 + [600] * 40 + [5] * 20),
        series(Metric.GPU, [90] * 60 + [0] * 60),
    )
    finding = priced(RULE, GPU, of)
    # 2 h x $0.94 x 20 / 120
    assert usd(finding.saving_usd) == "0.313333"
    assert "No GPU worked in the last 1 h" in (finding.found.caution or "")


def test_one_core_of_a_cpu_job_may_be_its_work() -> None:
    """Only hosts with GPUs are too dear for it."""
    assert outcome(RULE, ONE, cores(ONE, [9.0] * 60 + [1.0] * 60)) == Clear()


def test_a_gpu_that_never_worked_is_another_story() -> None:
    """gpu-idle tells it, hung or not."""
    assert outcome(RULE, GPU, gpu_end(120, 1.0)) == Clear()
