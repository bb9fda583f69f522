from __future__ import annotations

import pytest

from sageaudit.domain.usage.measurements import Metric
from sageaudit.domain.usage.work_share import idle_causes
from tests.fakes.jobs import flat, ran, series, usage

GPUS = "ml.g4dn.12xlarge"


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
def test_what_to_look_at_is_what_the_metrics_show(
    hosts: int, percent: dict[str, float], expected: tuple[str, ...]
) -> None:
    """Nothing is named for which there is no evidence; a profile always helps."""
    of = ran(3600, GPUS, hosts)
    assert idle_causes(flat(of, 60, hosts, **percent)) == expected


def test_hosts_at_different_work_do_not_wait_for_each_other_alike() -> None:
    """More than 20 points apart, another rule finds them."""
    of = ran(3600, GPUS, 2)
    apart = usage(
        of,
        series(Metric.GPU, [160] * 60, host="train/algo-1"),
        series(Metric.GPU, [79] * 60, host="train/algo-2"),
    )
    assert idle_causes(apart) == ("profile",)


def test_a_cpu_job_is_asked_whether_it_uses_its_vcpus() -> None:
    """It has nothing else to wait for that a metric shows."""
    of = ran(3600)
    assert idle_causes(flat(of, 60, cpu=20)) == ("parallel_work", "profile")
