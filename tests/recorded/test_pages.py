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
    """18, in each of the rules that are restated."""
    jobs = {one.recording for one in all_verdicts()}
    assert len(jobs) == 18
    assert len(all_verdicts()) == len(OUR_RULES) * len(jobs)


def test_every_disagreement_with_debugger_is_explained() -> None:
    """In a few words; one that is left over explains what is no more."""
    differ = [one for one in all_verdicts() if one.agrees is False]
    assert all(one.explanation for one in differ)
    assert explained_pairs() == {(one.recording, one.rule) for one in differ}


def test_where_minute_means_exist_low_gpus_are_seen_alike() -> None:
    """Of each job with GPU points Debugger and gpu-underused say the same."""
    low_gpus = [one for one in all_verdicts() if one.rule == "LowGPUUtilization" and one.triggered]
    usage = [
        one for one in low_gpus if isinstance(one.ungated_outcomes["gpu-underused"], Detection)
    ]
    assert len(usage) == 8
    assert {one.explanation for one in low_gpus if one not in usage} == {
        "the recording has no series, so our rules answer unknown, never clear"
    }


def test_every_recorded_gpu_job_under_15_percent_is_in_the_table() -> None:
    """22 of the 39 that have three GPU points or more."""
    assert (len(gpu_jobs()), len(low_use_jobs())) == (39, 22)
    text = recorded_gpus.PAGE.read_text(encoding="utf-8")
    assert all(f"| {job.recording} |" in text for job in low_use_jobs())


def test_each_has_a_finding_or_a_reason_and_is_in_the_idle_capacity() -> None:
    """None is called healthy: at least two thirds of the paid hours are idle, where points say."""
    for job in low_use_jobs():
        figure = job.audit["idle_capacity"]
        assert job.findings or job.reason, job.recording
        if figure is None:
            assert "idle capacity: " in " ".join(job.audit["audit"]["coverage"]["missing"])
        else:
            assert figure["unit"] == "gpu_hours"
            assert figure["idle"] >= figure["paid"] * 2 / 3, job.recording
