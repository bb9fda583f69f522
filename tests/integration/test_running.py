"""Jobs that run on the local AWS: one that does nothing is told once, and once its work again."""

from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

from local import ACCOUNT, REGION
from local.recorded import RecordedJob
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric, RawSeries
from tests.integration.whole_flow import scene

NOON = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
BUSY, HUNG = (3000.0, 700.0), (30.0, 0.0)
"""CPU and GPU as CloudWatch sums them: 30 of 96 cores and 7 of 8 GPUs; an idle host."""


def running(
    name: str,
    *stretches: tuple[int, tuple[float, float]],
    instance: str = "ml.p4d.24xlarge",
    at: datetime = NOON,
) -> RecordedJob:
    """A training job from `at` on, for so many minutes of each use; then it ends."""
    uses = list(chain.from_iterable(repeat(use, minutes) for minutes, use in stretches))
    ends_at = at + len(uses) * MINUTE
    describe = {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}",
        "TrainingJobStatus": "Completed",
        "SecondaryStatus": "Completed",
        "ResourceConfig": {"InstanceType": instance, "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 432_000},
        "CreationTime": (at - 5 * MINUTE).isoformat(),
        "TrainingStartTime": at.isoformat(),
        "TrainingEndTime": ends_at.isoformat(),
        "LastModifiedTime": ends_at.isoformat(),
        "SecondaryStatusTransitions": [
            {
                "Status": "Starting",
                "StartTime": (at - 5 * MINUTE).isoformat(),
                "EndTime": at.isoformat(),
            },
            {"Status": "Training", "StartTime": at.isoformat(), "EndTime": ends_at.isoformat()},
        ],
    }
    series = [
        RawSeries(f"{name}/algo-1", metric.value, at, 60, tuple(use[place] for use in uses))
        for place, metric in enumerate((Metric.CPU, Metric.GPU))
    ]
    return RecordedJob(JobKind.TRAINING, describe, {"owner": "mara"}, tuple(series))


def test_of_six_running_jobs_two_hang_and_one_recovers() -> None:
    """Two messages and one all-clear on each channel; the cheap ones are described once."""
    dear = [
        running("llm-7b-hangs", (60, BUSY), (240, HUNG)),
        running("vision-recovers", (30, BUSY), (90, HUNG), (180, BUSY)),
        running("busy", (300, BUSY)),
    ]
    cheap = [running(f"cheap-{n}", (300, HUNG), instance="ml.m5.large") for n in range(3)]
    with scene(NOON - MINUTE, sweeps=True) as current_scene:
        for job in (*dear, *cheap):
            current_scene.aws.sagemaker.add_running(job)
        for job in dear:
            current_scene.aws.put_metrics(job)
        current_scene.aws.advance(NOON + 4 * HOUR)
        hangs = "has done no GPU work for 59 min: it costs $25.25 an hour"
        works = "is at work again after 1 h 30 min without work: it cost $37.88 meanwhile"
        news = [("vision-recovers", hangs), ("llm-7b-hangs", hangs), ("vision-recovers", works)]
        said = [f"ml.p4d.24xlarge training job {name} {what}" for name, what in news]
        assert sorted(mail.splitlines()[0] for mail in current_scene.mails()) == sorted(said)
        assert sorted(current_scene.headlines()) == sorted(f"*{line}*" for line in said)
        assert not current_scene.dead_letters()
        assert current_scene.count("SweepFailed", "sweep") == 0
