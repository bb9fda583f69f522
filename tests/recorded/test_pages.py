"""The pages generated from the recordings."""

from sageaudit.domain.bill.finding import Detection
from tools.pages import debugger, recorded_gpus
from tools.pages.debugger import OUR_RULES, all_verdicts, explained_pairs
from tools.pages.recorded_gpus import gpu_jobs, low_use_jobs


def test_the_pages_are_fresh() -> None:
    """The pages are what `make docs` writes from recordings and rules."""
    for page in (debugger, recorded_gpus):
        assert page.PAGE.read_text(encoding="utf-8") == page.page()


def test_every_recording_that_carries_debuggers_words_is_compared() -> None:
    """All 18 recordings with Debugger results are compared, for each rule."""
    jobs = {verdict.recording for verdict in all_verdicts()}
    assert len(jobs) == 18
    assert len(all_verdicts()) == len(OUR_RULES) * len(jobs)


def test_every_disagreement_with_debugger_is_explained() -> None:
    """Each disagreement with Debugger has an explanation, and no explanation is left over."""
    differ = [verdict for verdict in all_verdicts() if verdict.agrees is False]
    assert all(verdict.explanation for verdict in differ)
    assert explained_pairs() == {(verdict.recording, verdict.rule) for verdict in differ}


def test_where_minute_means_exist_low_gpus_are_seen_alike() -> None:
    """For each job with GPU points, Debugger and gpu-underused agree."""
    low_gpus = [
        verdict
        for verdict in all_verdicts()
        if verdict.rule == "LowGPUUtilization" and verdict.triggered
    ]
    usage = [
        verdict
        for verdict in low_gpus
        if isinstance(verdict.ungated_outcomes["gpu-underused"], Detection)
    ]
    assert len(usage) == 8
    assert {verdict.explanation for verdict in low_gpus if verdict not in usage} == {
        "the recording has no series, so our rules answer unknown, never clear"
    }


def test_every_recorded_gpu_job_under_15_percent_is_in_the_table() -> None:
    """All 22 of 39 jobs with three or more GPU points and under 15% are in the table."""
    assert (len(gpu_jobs()), len(low_use_jobs())) == (39, 22)
    text = recorded_gpus.PAGE.read_text(encoding="utf-8")
    assert all(f"| {job.recording} |" in text for job in low_use_jobs())


def test_each_has_a_finding_or_a_reason_and_is_in_the_idle_capacity() -> None:
    """Each low-GPU job has a finding or a reason; if known, 2/3 or more of its hours are idle."""
    for job in low_use_jobs():
        figure = job.audit["idle_capacity"]
        assert job.findings or job.reason, job.recording
        if figure is None:
            assert "idle capacity: " in " ".join(job.audit["audit"]["coverage"]["missing"])
        else:
            assert figure["unit"] == "gpu_hours"
            assert figure["idle"] >= figure["paid"] * 2 / 3, job.recording
