"""What real answers tell beside the run."""

from __future__ import annotations

from collections import Counter

from sageaudit.domain.job.hints import kept
from tests.fakes.recorded import everything, one


def test_since_2024_downloading_names_the_image() -> None:
    """Before it named the data, whatever it did; jobs without messages say nothing."""
    by_year = Counter(
        (item.job.image_pull_in_download, item.job.created_at.year >= 2024)
        for item in everything()
        if item.job.created_at and item.job.image_pull_in_download is not None
    )
    assert by_year == {(False, False): 69, (True, True): 14}


def test_a_real_spot_job_on_p3_shows_its_hints() -> None:
    """fp16, SMDDP and an output folder that is synchronised."""
    told = one("training-004-p3-16xlarge-spot-completed").job
    assert kept(told.hints) == {
        "deep_learning": True,
        "mixed_precision": True,
        "own_checkpoints": True,
        "distributed_sampler": True,
        "distribution": "smddp",
    }
    assert told.metric_names[0] == "loss"
    assert told.profiled is True


def test_real_inputs_are_mostly_moving_prefixes() -> None:
    """Copies under a job's name or a day are pinned; nothing else is."""
    asked = [item for item in everything() if item.job.data_pinned is not None]
    pinned = {item.file for item in asked if item.job.data_pinned}
    assert len(asked) > 80
    assert "training-021-c4-8xlarge-x2-completed" in pinned
    assert len(pinned) < len(asked) / 5


def test_real_tuning_jobs_name_their_objective() -> None:
    """With the direction in which it is better."""
    tunings = [item.job.tuning for item in everything() if item.job.tuning]
    named = [tuning.objective for tuning in tunings if tuning.objective]
    assert all(objective.direction for objective in named)
    assert (len(tunings), len(named)) == (10, 10)
