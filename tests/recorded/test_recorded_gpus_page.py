from __future__ import annotations

import pytest

from docs.build_recorded_gpus import PAGE, LowJob, gpu_jobs, low, page

JOBS = list(gpu_jobs())
LOW = low(JOBS)


def test_the_page_is_fresh() -> None:
    """`make docs` writes it from the recordings and the rules."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_recorded_gpu_job_under_15_percent_is_in_the_table() -> None:
    """22 of the 39 that have three GPU points or more."""
    assert (len(JOBS), len(LOW)) == (39, 22)
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"| {job.recording} |" in text for job in LOW)


@pytest.mark.parametrize("job", LOW, ids=lambda job: job.recording)
def test_each_has_a_finding_or_a_reason_and_is_in_the_idle_capacity(job: LowJob) -> None:
    """None is called healthy: at least two thirds of the paid hours are idle, where points say."""
    figure = job.audit["idle_capacity"]
    assert job.findings or job.reason
    if figure is None:
        assert "idle capacity: " in " ".join(job.audit["audit"]["coverage"]["missing"])
        return
    assert figure["unit"] == "gpu_hours"
    assert figure["idle"] >= figure["paid"] * 2 / 3
