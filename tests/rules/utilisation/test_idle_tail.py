from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Phase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace
from tests.fakes.jobs import (
    START,
    TRAINIUM,
    FixedPrices,
    Points,
    batch_job,
    instance_type,
    phases,
    ran,
)
from tests.fakes.judging import answer, expect_detection
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

RULE = "idle-tail"
ONE_HOST = ran(7200, "ml.m5.4xlarge")
"""Two hours on 16 vCPUs at $0.92 an hour, with a volume of 30 GB at $0.14 a month."""
TWO_HOSTS = ran(7200, "ml.m5.4xlarge", 2)
"""The same on two hosts."""
ONE_T4 = ran(7200, "ml.g4dn.2xlarge")
"""Two hours on one T4 and 8 vCPUs at $0.94 an hour."""


def cores(*host_points: Points) -> Measured:
    """Busy cores of each host, minute by minute."""
    return hosts(*({"cores": of_host} for of_host in host_points))


def without_gpu(last_minutes: int, cores: float) -> Measured:
    """Two hours of a GPU at work, but for the last minutes, with this many busy cores."""
    before = 120 - last_minutes
    return one_host(
        cores=[2.0] * before + [cores] * last_minutes, gpu=[90] * before + [0] * last_minutes
    )


verdict = partial(answer, RULE)


def test_30_idle_minutes_at_the_end_of_2_hours_are_a_quarter_of_the_bill() -> None:
    """A hung exit: a quarter of 2 h x $0.94."""
    result = verdict(
        ONE_T4,
        one_host(cores=[2.0] * 90 + [0.05] * 30, gpu=[None] * 4 + [90] * 86 + [0] * 30),
    )
    assert result == finds(
        "All hosts were idle for the last 30 min of 2 h on 1 x ml.g4dn.2xlarge.",
        builder="measured",
        fix=[],
        usd="0.470000",
        span=None,
    )


def test_if_a_job_failed_its_hosts_that_waited_are_counted_after_half_an_hour() -> None:
    """They waited for one that was gone."""
    # The second host is idle for the last 90 of 120 minutes: 60 of them, 2 x $0.92 an hour.
    result = verdict(
        replace(TWO_HOSTS, status="Failed", volume_gb=0, hints=Hints(distribution="ddp")),
        cores([9.0] * 120, [9.0] * 30 + [0.05] * 90),
    )
    assert result == finds(builder="derived", alone="1.840000", caution="…init_process_group…")
    # what all hosts were idle for is counted in any case
    result = verdict(
        replace(TWO_HOSTS, status="Failed", volume_gb=0, hints=Hints(distribution="ddp")),
        cores([9.0] * 100 + [0.05] * 20, [9.0] * 88 + [0.05] * 32),
    )
    assert result == finds(alone="0.613333", span=("0.613333", "0.981333"))
    result = verdict(
        replace(TWO_HOSTS, volume_gb=0, hints=Hints(distribution="ddp")),
        cores([9.0] * 120, [9.0] * 30 + [0.05] * 90),
    )
    assert result == finds(usd="0.000000")


def test_10_idle_minutes_at_the_end_are_found_and_9_are_not() -> None:
    """Zeros trail the end of healthy jobs for 3."""
    assert verdict(ONE_HOST, cores([9.0] * 110 + [0] * 10)) == FOUND
    assert verdict(ONE_HOST, cores([9.0] * 111 + [0] * 9)) == CLEAR


def test_a_missing_minute_in_the_tail_is_idle_and_4_in_a_row_are_not_known_to_be() -> None:
    # 4 at the end may have been work; 4 in between begin the tail anew.
    assert verdict(ONE_HOST, cores([9.0] * 90 + [0] * 26 + [None] * 4)) == CLEAR
    result = verdict(ONE_HOST, cores([9.0] * 90 + [0] * 10 + [None] + [0] * 19))
    assert result == finds(evidence={"idle_s": 1800})
    result = verdict(ONE_HOST, cores([9.0] * 90 + [0] * 8 + [None] * 4 + [0] * 18))
    assert result == finds(evidence={"idle_s": 1080})


def test_work_at_the_end_leaves_no_tail() -> None:
    """A run that waited and then wrote its results."""
    assert verdict(ONE_HOST, cores([9.0] * 60 + [0] * 59 + [9.0])) == CLEAR


def test_a_host_that_ended_an_hour_early_is_a_range_from_nothing() -> None:
    # 60 minutes of one host of two: a quarter of 2 x 2 h at best, if it shared the work.
    # 30 of 120 minutes: 2 x 2 h x $0.92 / 4, and 2 x 30 GB x $0.14 x 2 h / 744 h / 4
    result = verdict(TWO_HOSTS, cores([9.0] * 120, [9.0] * 60 + [0] * 60))
    assert result == finds(
        "1 of 2 hosts did nothing for up to 1 h before the last one ended, in 2 h on…",
        confidence="derived",
        usd="0.000000",
        span=("0.000000", "0.925645"),
        severity="low",
        evidence={"algo-2 idle_before_s": 3600},
    )


def test_a_host_that_ended_10_minutes_earlier_is_found_and_one_9_minutes_earlier_is_not() -> None:
    """Earlier than the idle minutes of all hosts."""
    assert verdict(TWO_HOSTS, cores([9.0] * 120, [9.0] * 110 + [0] * 10)) == FOUND
    assert verdict(TWO_HOSTS, cores([9.0] * 120, [9.0] * 111 + [0] * 9)) == CLEAR
    assert verdict(TWO_HOSTS, cores([9.0] * 117 + [0] * 3, [9.0] * 108 + [0] * 12)) == CLEAR


def test_the_idle_end_of_all_is_counted_and_the_early_host_is_the_range() -> None:
    # 20 minutes of both, and 40 more of one.
    # 20 and 40 of 120 minutes of 2 x 2 h x $0.92 + 2 x 30 GB x $0.14 x 2 h / 744 h = $3.702581
    result = verdict(TWO_HOSTS, cores([9.0] * 100 + [0] * 20, [9.0] * 60 + [0] * 60))
    assert result == finds(
        "All hosts were idle for the last 20 min of 2 h on 2 x ml.m5.4xlarge; "
        "1 of 2 hosts did nothing for up to 40 min before that.",
        span=("0.617097", "1.234194"),
        usd="0.617097",
    )


def test_a_host_that_took_no_part_did_not_end_early() -> None:
    # It was idle after 6 minutes of imports: uneven-hosts tells that. 7 minutes are work.
    assert verdict(TWO_HOSTS, cores([9.0] * 120, [0] * 120)) == CLEAR
    assert verdict(TWO_HOSTS, cores([9.0] * 120, [1] * 6 + [0] * 114)) == CLEAR
    assert verdict(TWO_HOSTS, cores([9.0] * 120, [1] * 7 + [0] * 113)) == FOUND


def test_a_run_without_any_work_is_one_idle_tail() -> None:
    # Measured as a whole; the start that came too late to be seen stays out.
    assert verdict(ONE_HOST, cores([0.05] * 120)) == finds(
        "No host worked in 2 h on 1 x ml.m5.4xlarge.", usd="1.851290"
    )
    result = verdict(ONE_T4, one_host(cores=[0.0] * 120, gpu=[None] * 5 + [0] * 115))
    assert result == finds(evidence={"idle_s": 6900})


def test_a_run_seen_late_is_not_said_to_have_done_nothing() -> None:
    # It may have worked in the 30 minutes without points.
    assert verdict(ONE_HOST, cores([None] * 30 + [0] * 90)) == finds("…last 1 h 30 min of 2 h…")


def test_a_host_without_points_may_have_worked() -> None:
    """Three of four hosts idle at the end are not all."""
    result = verdict(ran(7200, "ml.m5.4xlarge", 4), cores(*([[9.0] * 60 + [0] * 60] * 3)))
    assert result == cannot_judge("hosts_missing")


def test_the_tail_of_a_restarted_spot_run_is_its_last_one() -> None:
    # Two times of Training with a gap between them: 20 idle minutes end the second.
    # a sixth of 2 h x $0.92 + 30 GB x $0.14 x 2 h / 744 h
    result = verdict(
        ran(
            7200,
            "ml.m5.4xlarge",
            phases=(
                Phase("Training", START, Decimal(3600), billed=True),
                Phase("Interrupted", START + timedelta(hours=1), Decimal(3600), billed=False),
                Phase("Training", (START + timedelta(hours=2)), Decimal(3600), billed=True),
            ),
        ),
        cores([9.0] * 60 + [None] * 60 + [9.0] * 40 + [0] * 20),
    )
    assert result == finds(usd="0.308548", evidence={"idle_s": 1200})


@pytest.mark.parametrize(
    "job",
    [
        batch_job(JobKind.PROCESSING, 3600, "ml.m5.4xlarge", volume_gb=None),
        batch_job(JobKind.TRANSFORM, 3600, "ml.m5.4xlarge", volume_gb=None),
        ran(3600, "ml.m5.4xlarge", phases=phases(("Running", 3600)), volume_gb=None),
    ],
    ids=["processing", "transform", "training without phases"],
)
def test_12_idle_minutes_of_60_of_a_job_of_one_phase_are_a_fifth_of_an_hour_at_92_cents(
    job: Job,
) -> None:
    assert verdict(job, cores([9.0] * 48 + [0] * 12)) == finds(alone="0.184000")


def test_without_the_gpu_of_a_gpu_job_it_does_not_know() -> None:
    # Its card asks for CPU alone, which CPU jobs have too.
    assert verdict(ONE_T4, even_use(minutes=120, cpu=1)) == cannot_judge("metric_missing")


def test_accelerators_that_nobody_measures_may_have_worked() -> None:
    """Trainium reports no such metric."""
    types = {TRAINIUM.name: TRAINIUM}
    waits = one_host(cores=[2.0] * 90 + [0] * 30, types=types)
    result = verdict(ran(7200, TRAINIUM.name), waits, market=Market(types, FixedPrices()))
    assert result == cannot_judge("accelerator_unseen")


def test_a_hung_process_that_spins_on_one_core_is_counted() -> None:
    # 60 of 120 minutes: half of 2 h x $0.94. What one core does needs no GPU.
    assert verdict(ONE_T4, without_gpu(60, 1.01)) == finds(
        "No GPU worked in the last 1 h of 2 h on 1 x ml.g4dn.2xlarge, "
        "and no host used more than one core.",
        confidence="derived",
        usd="0.940000",
        caution="…did not need the GPUs…",
    )


def test_an_evaluation_on_the_cpu_is_told_in_gpu_hours() -> None:
    # 40 minutes on six of eight cores after the last GPU work.
    assert verdict(ONE_T4, without_gpu(40, 6.0)) == finds(
        "No GPU worked in the last 40 min of 2 h on 1 x ml.g4dn.2xlarge (0.7 GPU-hours), "
        "while 6.0 of 8 cores worked.",
        usd=None,
        bucket="none",
    )


def test_a_host_that_spins_at_its_end_while_another_works_ended_early() -> None:
    # 60 minutes on one core without its GPU: a range from nothing to half an hour of both.
    # an hour of one host, shared by two: 30 of 120 minutes of 2 x 2 h x $0.94
    result = verdict(
        ran(7200, "ml.g4dn.2xlarge", 2),
        hosts(
            {"cores": [2.0] * 120, "gpu": [90] * 120},
            {"cores": [2.0] * 60 + [1.01] * 60, "gpu": [90] * 60 + [0] * 60},
        ),
    )
    assert result == finds(
        "1 of 2 hosts did nothing for up to 1 h before the last one ended, in 2 h on…",
        span=("0.000000", "0.940000"),
    )


def test_hosts_of_a_declared_distribution_share_the_work_already() -> None:
    an_hour_less = cores([3.0] * 120, [3.0] * 60 + [0.02] * 60)
    result = verdict(ran(7200, instances=2), an_hour_less)
    assert result == finds(
        caution="Hosts that finish early save only if they take over work from the others…"
    )
    for distribution in ("ddp", "parameter_server"):
        result = verdict(
            ran(7200, instances=2, hints=Hints(distribution=distribution)), an_hour_less
        )
        assert result == finds(
            caution="Its code already spreads the work over all hosts.…Nothing is counted.",
            without="take over",
        )


def test_cpu_work_before_the_idle_tail_is_mentioned() -> None:
    # 40 minutes of evaluation on six cores, then 20 idle ones, of which alone the dollars are.
    # 2 h x $0.94 x 20 / 120
    result = verdict(
        ONE_T4,
        one_host(cores=[2.0] * 60 + [6.0] * 40 + [0.05] * 20, gpu=[90] * 60 + [0] * 60),
    )
    assert result == finds(usd="0.313333", caution="…No GPU worked in the last 1 h…")


def test_one_core_of_a_cpu_job_may_be_its_work() -> None:
    """Only hosts with GPUs are too expensive for it."""
    assert verdict(ONE_HOST, cores([9.0] * 60 + [1.0] * 60)) == CLEAR


def test_a_gpu_that_never_worked_is_left_to_gpu_idle() -> None:
    """gpu-idle reports it, hung or not."""
    assert verdict(ONE_T4, without_gpu(120, 1.0)) == CLEAR


def test_30_minutes_on_at_most_1_2_cores_are_counted_and_on_more_they_are_only_told() -> None:
    # To write a model or to evaluate for 29 minutes is ordinary.
    assert verdict(ONE_T4, without_gpu(30, 1.2)) == finds(bucket="avoidable")
    assert verdict(ONE_T4, without_gpu(29, 1.2)) == CLEAR
    assert verdict(ONE_T4, without_gpu(30, 1.21)) == finds(bucket="none")
    assert verdict(ONE_T4, without_gpu(29, 6.0)) == CLEAR


def test_at_most_four_early_hosts_are_named() -> None:
    """The earliest first."""
    run = ran(7200, "ml.m5.4xlarge", 7)
    early = [[9.0] * (40 + 10 * n) + [0] * (80 - 10 * n) for n in range(6)]
    evidence = expect_detection(RULE, run, cores([9.0] * 120, *early)).evidence
    host_keys = [key for key in evidence if key.endswith(" idle_before_s")]
    assert host_keys == [f"algo-{n} idle_before_s" for n in (2, 3, 4, 5)]
    assert evidence["hosts_ended_early"] == 6


def test_on_a_mixed_cluster_only_the_end_of_all_hosts_is_reported() -> None:
    """Two types of one size: it is not known which host ended early, and at which price."""
    types = {
        name: instance_type(name, 16, memory)
        for name, memory in (("ml.m5.4xlarge", 64), ("ml.c5.4xlarge", 32))
    }
    run = ran(7200, groups=tuple(InstanceGroup(name, 1) for name in types))

    clusters = partial(verdict, run, market=Market(types, FixedPrices()))

    def busy_cores(*host_points: Points) -> Measured:
        return hosts(*({"cores": of_host} for of_host in host_points), types=types)

    assert clusters(busy_cores(*[[9.0] * 90 + [0] * 30] * 2)) == FOUND
    early = clusters(busy_cores([9.0] * 120, [9.0] * 60 + [0] * 60))
    assert early == cannot_judge("hosts_unmapped")
