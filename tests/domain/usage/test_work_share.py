from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.idle_capacity import Unit, devices, idle_causes, worked_share
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric, MissingMetrics
from tests.fakes.jobs import batch_job, flat, job, phases, ran, series, usage

GPUS = "ml.g4dn.12xlarge"


def hour(instances: int = 1, **changes: Any) -> Job:
    """Returns 10 minutes Downloading and 50 Training, on hosts of four GPUs."""
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -120), ("Downloading", 600), ("Training", 3000)),
        "training_s": Decimal(3600),
        "billable_s": Decimal(3600),
    }
    return job(GPUS, instances, **plain | changes)


def test_the_download_is_not_worked_and_training_by_its_recorded_share() -> None:
    """(50 x 0.4) / 60 minutes: the example of the docstring."""
    usage = hour()
    assert worked_share(usage, flat(usage, 50, gpu=40)) == Decimal(1) / 3


def test_hosts_count_alike() -> None:
    """One host works and one does not: half. A missing point counts as worked, so that a later
    point can only add idle time.
    """
    two = (
        series(Metric.GPU, [value] * 60, host=f"train/algo-{n}") for n, value in ((1, 400), (2, 0))
    )
    assert worked_share(ran(3600, GPUS, 2), usage(ran(3600, GPUS, 2), *two)) == Decimal("0.5")
    gaps = usage(ran(3600, GPUS), series(Metric.GPU, [0] * 45 + [None] * 15))
    assert worked_share(ran(3600, GPUS), gaps) == Decimal("0.25")


@pytest.mark.parametrize(("points", "known"), [(42, True), (41, False)])
def test_too_few_points_of_a_host_leave_the_share_unknown(points: int, *, known: bool) -> None:
    """70% of the points of each host are needed, as for the rules."""
    job = ran(3600, GPUS)
    some = usage(job, series(Metric.GPU, [0] * points))
    assert isinstance(worked_share(job, some), MissingMetrics) is not known


def test_a_host_without_points_leaves_the_share_unknown() -> None:
    """Seven of eight hosts are idle, but the eighth may not be. The CPU's use shows nothing for a
    GPU job.
    """
    job = ran(3600, GPUS, 8)
    missing = worked_share(job, flat(job, 60, hosts=7, gpu=10))
    assert isinstance(missing, MissingMetrics)
    assert missing.reason == "7 of 8 hosts have points of GPUUtilization"
    job = ran(3600, GPUS)
    assert isinstance(worked_share(job, flat(job, 60, cpu=50)), MissingMetrics)


def test_a_phase_in_which_the_program_may_run_counts_as_worked() -> None:
    """Stopping, and phases that AWS adds later: 10 of 60 minutes."""
    usage = hour(phases=phases(("Training", 3000), ("Stopping", 300), ("Tidying", 300)))
    assert worked_share(usage, flat(usage, 50, gpu=0)) == Decimal(600) / 3600


def test_a_phase_of_unknown_length_leaves_the_share_unknown() -> None:
    """It is then unknown how much of the bill is the download."""
    [first, *rest] = phases(("Downloading", 600), ("Training", 3000))
    unknown = type(first)(first.name, first.started_at, None, billed=True)
    usage = hour(phases=(unknown, *rest))
    assert isinstance(worked_share(usage, flat(usage, 50, gpu=40)), MissingMetrics)


def test_spot_is_counted_by_its_share_of_the_billed_phases() -> None:
    """The waiting between two attempts is not billed."""
    usage = hour(
        purchase=Purchase.SPOT,
        phases=phases(("Training", 1800), ("Uploading", 600)),
        billable_s=Decimal(1200),
    )
    assert worked_share(usage, flat(usage, 30, gpu=100)) == Decimal("0.75")


@pytest.mark.parametrize(
    ("instance", "expected"), [(GPUS, ("gpu_hours", 4)), ("ml.m5.2xlarge", ("vcpu_hours", 8))]
)
def test_gpus_are_counted_or_vcpus_without_gpus(instance: str, expected: tuple[Unit, int]) -> None:
    """Also for a GPU job with only CPU points: units never mix."""
    job = ran(3600, instance)
    assert devices(flat(job, 60, cpu=50)) == expected


def test_hosts_of_different_sizes_are_not_distinguished() -> None:
    """CloudWatch does not say which host is in which group."""
    job = ran(3600, groups=(InstanceGroup(GPUS, 1), InstanceGroup("ml.g4dn.xlarge", 1)))
    missing = devices(usage(job, series(Metric.GPU, [50] * 60)))
    assert isinstance(missing, MissingMetrics)
    assert missing.code == "hosts_unmapped"


@pytest.mark.parametrize(
    ("hosts", "percent", "expected"),
    [
        (1, {"gpu": 30, "cpu": 61}, ("data_loader", "profile")),
        (1, {"gpu": 30, "cpu": 60}, ("profile",)),
        (1, {"gpu": 51, "cpu": 90}, ("profile",)),
        (4, {"gpu": 30, "cpu": 20}, ("communication", "profile")),
        (4, {"gpu": 30}, ("communication", "profile")),
        (4, {"gpu": 30, "cpu": 90}, ("data_loader", "profile")),
        (1, {"gpu": 30, "cpu": 20, "gpu_memory": 69}, ("batch_size", "profile")),
        (1, {"gpu": 30, "cpu": 20, "gpu_memory": 70}, ("profile",)),
        (1, {"gpu": 30, "gpu_memory": 10}, ("profile",)),
        (4, {"gpu": 0.25, "cpu": 90}, ("gpu_use", "profile")),
    ],
)
def test_causes_are_those_that_the_metrics_show(
    hosts: int, percent: dict[str, float], expected: tuple[str, ...]
) -> None:
    """Nothing is named without evidence. A profile always helps."""
    job = ran(3600, GPUS, hosts)
    assert idle_causes(job, flat(job, 60, hosts, **percent)) == expected


def test_hosts_with_different_work_do_not_wait_equally() -> None:
    """More than 20 points apart, another rule finds them. A CPU job can only use more vCPUs."""
    job = ran(3600, GPUS, 2)
    apart = (
        series(Metric.GPU, [value] * 60, host=f"train/algo-{n}") for n, value in ((1, 160), (2, 79))
    )
    assert idle_causes(job, usage(job, *apart)) == ("profile",)
    on_cpu = ran(3600)
    assert idle_causes(on_cpu, flat(on_cpu, 60, cpu=20)) == ("parallel_work", "profile")


def test_hosts_of_a_transform_job_do_not_communicate() -> None:
    """SageMaker gives each its own objects."""
    job = batch_job(JobKind.TRANSFORM, 3600, GPUS, 4)
    alike = (series(Metric.GPU, [120.0] * 60, host=f"train/algo-{n}") for n in range(1, 5))
    assert idle_causes(job, usage(job, *alike)) == ("profile",)
