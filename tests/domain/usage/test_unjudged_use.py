"""Sentences on what of a run's use was not judged."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.judged_use import unjudged_usage_sentences
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics
from sageaudit.structs import replace
from tests.fakes.jobs import START, TYPES, Points, flat, ran, series, usage

ON_GPU = ran(3600, "ml.g5.2xlarge")
CPU = Metric.CPU
MEMORY = Metric.MEMORY
GPU = Metric.GPU
GPU_MEMORY = Metric.GPU_MEMORY


def all_metrics(job: Job, minutes: int, hosts: int = 1) -> Measurements:
    """Returns every metric of these hosts."""
    return flat(job, minutes, hosts, cpu=50, memory=50, gpu=50, gpu_memory=50)


def on_cpu(cpu: Points, memory: Points = (20.0,) * 60) -> Measurements:
    """Returns an hour on a CPU type."""
    return usage(ran(3600), series(CPU, cpu), series(MEMORY, memory))


def gap(minutes: int) -> Measurements:
    """Returns CPU points that lack this many minutes in the middle."""
    return on_cpu([100.0] * 20 + [None] * minutes + [100.0] * (40 - minutes))


def half_measured() -> Measurements:
    """Returns two hosts with CPU points, one of which has GPU points, too."""
    cpu_series = [
        series(metric, [40.0] * 60, host=f"train/algo-{n}")
        for metric in (CPU, MEMORY)
        for n in (1, 2)
    ]
    gpu_series = [series(metric, [40.0] * 60) for metric in (GPU, GPU_MEMORY)]
    return usage(ran(3600, "ml.g5.2xlarge", 2), *cpu_series, *gpu_series)


def on_trainium() -> Measurements:
    """Returns an hour on Trainium, for which CloudWatch has the CPUs only."""
    trn = replace(TYPES["ml.m5.xlarge"], name="ml.trn1.2xlarge", accelerator="trainium")
    raw = [series(metric, [50.0] * 60) for metric in (CPU, MEMORY)]
    absent = MissingMetrics("metric_missing", "no points")
    return measure(ran(3600, trn.name), raw, {trn.name: trn}, missing_reason=absent)


TOGETHER = (
    "Shorter runs are judged together with the last runs of their family on the same instances, "
    "if these have that much in total."
)
NEEDED = "at least 15 min are needed to judge its use"
MACHINES = "The use of its machines was not judged"


@pytest.mark.parametrize(
    ("measurements", "codes", "sentences"),
    [
        pytest.param(lambda: all_metrics(ON_GPU, 60), (), None, id="everything was judged"),
        pytest.param(
            lambda: flat(ran(3600), 60, cpu=50, memory=50),
            (),
            None,
            id="what the instances do not have is not missing, nor is what only sizes a volume",
        ),
        pytest.param(
            lambda: measure(
                ON_GPU,
                (),
                TYPES,
                missing_reason=MissingMetrics("metric_denied", "GetMetricData is", "Allow it."),
            ),
            (),
            f"{MACHINES}: GetMetricData is. Allow it.",
            id="all resources share one reason, so none is listed",
        ),
        pytest.param(
            lambda: flat(ON_GPU, 60, cpu=50, gpu=50),
            (),
            "The use of memory and GPU memory was not judged: no points.",
            id="two resources without points",
        ),
        pytest.param(
            on_trainium,
            (),
            (
                "The use of the accelerators was not judged: CloudWatch records no use of the "
                "accelerators of ml.trn1.2xlarge. Measure it inside the container, such as with "
                "neuron-monitor."
            ),
            id="accelerators that CloudWatch does not record",
        ),
        # the other hosts stand for themselves only
        pytest.param(
            lambda: all_metrics(ran(3600, "ml.g5.2xlarge", 8), 60, 7),
            (),
            "1 of 8 hosts has no metrics: what it did was not judged.",
            id="one of eight hosts has no metrics",
        ),
        pytest.param(
            lambda: all_metrics(ran(3600, "ml.g5.2xlarge", 8), 60, 5),
            (),
            "3 of 8 hosts have no metrics: what they did was not judged.",
            id="three of eight hosts have no metrics",
        ),
        pytest.param(
            lambda: all_metrics(ran(3600, "ml.g5.2xlarge", 8), 60, 8),
            (),
            None,
            id="all hosts have metrics",
        ),
        pytest.param(
            half_measured,
            (),
            "1 of 2 hosts has no metrics of the GPUs and GPU memory: what it did was not judged.",
            id="one of two hosts has no metrics of its GPUs",
        ),
        # half an hour without points could have been idle or busy
        pytest.param(
            lambda: all_metrics(ON_GPU, 30),
            (),
            (
                "The metrics of the CPUs, memory, the GPUs and GPU memory end 30 min before the "
                "job does: what came then was not judged."
            ),
            id="half an hour without points at the end",
        ),
        # a quarter of an hour is what a rule judges; late and lost points are shorter
        pytest.param(
            lambda: gap(14), (), None, id="14 minutes without points are late or lost ones"
        ),
        pytest.param(
            lambda: gap(15),
            (),
            (
                "The metrics of the CPUs have no points for 15 min: what happened then was "
                "not judged."
            ),
            id="15 minutes without points are what a rule judges",
        ),
        # each code of the rules' answers has its own sentence
        pytest.param(
            lambda: flat(ran(420), 7, cpu=50, memory=50),
            ("too_short",),
            f"Its own code ran for only 7 min: {NEEDED}. {TOGETHER}",
            id="code that ran too shortly",
        ),
        pytest.param(
            lambda: on_cpu([0.0] * 30 + [200.0] * 5 + [0.0] * 25),
            ("too_short",),
            f"It was at work for only 5 min: {NEEDED}. {TOGETHER}",
            id="work that was too short",
        ),
        pytest.param(
            lambda: flat(ran(120), 2, cpu=50, memory=50),
            ("too_few_points",),
            "Its use was not judged: 2 points of each host are too few.",
            id="two points of each host",
        ),
        pytest.param(
            lambda: flat(ran(3600), 60, cpu=50, memory=50),
            ("period_too_coarse",),
            "Its metrics have one point every 1 min: idle time in between was not judged.",
            id="too coarse a period",
        ),
        pytest.param(
            lambda: flat(ran(3600), 60, cpu=50, memory=50),
            ("hosts_unmapped",),
            "Its hosts were not compared: CloudWatch does not say in which group each host is.",
            id="hosts that cannot be mapped to their groups",
        ),
        pytest.param(
            lambda: on_cpu([50.0 if minute % 3 == 0 else None for minute in range(60)]),
            ("coverage_low",),
            "The metrics of the CPUs have 33% of their points: too few to judge.",
            id="every third point leaves no gap but too few points",
        ),
        # the recording has the series, and nothing in them, or of another time
        pytest.param(
            lambda: on_cpu([None] * 60, [None] * 60),
            (),
            f"{MACHINES}: all its points are null.",
            id="a recording whose points are all null",
        ),
        pytest.param(
            lambda: usage(
                ran(3600),
                *(series(m, [5.0] * 60, start=START + timedelta(1)) for m in (CPU, MEMORY)),
            ),
            (),
            f"{MACHINES}: no points inside the Training phase.",
            id="a recording of another time",
        ),
    ],
)
def test_each_reason_for_unjudged_use_is_one_sentence(
    measurements: Callable[[], Measurements], codes: tuple[str, ...], sentences: str | None
) -> None:
    """The sentence has the resource, the reason and what to do about it."""
    assert list(unjudged_usage_sentences(measurements(), set(codes))) == (
        [sentences] if sentences else []
    )
