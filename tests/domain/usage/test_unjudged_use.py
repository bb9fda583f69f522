from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from sageaudit.domain.usage.unjudged_use import unjudged_use
from tests.fakes.jobs import START, TYPES, flat, job, ran, series, usage

ON_GPU = ran(3600, "ml.g5.2xlarge")


def whole(of: Job, minutes: int, hosts: int = 1) -> Measurements:
    """Every metric of these hosts."""
    return flat(of, minutes, hosts, cpu=50, memory=50, gpu=50, gpu_memory=50)


def said(of: Measurements, *codes: str) -> list[str]:
    """The sentences."""
    return list(unjudged_use(of, set(codes)))


def test_use_that_was_measured_whole_leaves_nothing_to_say() -> None:
    """Every metric of every host for the whole run."""
    assert said(whole(ON_GPU, 60)) == []


def test_a_cpu_type_is_not_blamed_for_having_no_gpu() -> None:
    """What the instances do not have is not missing."""
    assert said(flat(ran(3600), 60, cpu=50, memory=50)) == []


def test_no_metrics_at_all_are_one_sentence_with_its_advice() -> None:
    """All resources share one reason, so none is listed."""
    denied = Missing("metric_denied", "GetMetricData is not permitted", "Allow it.")
    of = measure(ON_GPU, (), TYPES, absent=denied)
    assert said(of) == [
        "The use of its machines was not judged: GetMetricData is not permitted. Allow it."
    ]


def test_some_metrics_are_named_by_their_resource() -> None:
    """GPU metrics without memory: a smaller type cannot be chosen by them."""
    assert said(flat(ON_GPU, 60, cpu=50, gpu=50)) == [
        "The use of memory and GPU memory was not judged: no points."
    ]


def test_disk_use_finds_no_counted_waste_and_is_not_mentioned() -> None:
    """It sizes a volume, which is only ever a possible saving."""
    of = whole(ON_GPU, 60)
    assert Metric.DISK in of.missing
    assert said(of) == []


def test_accelerators_without_metrics_are_named_as_such() -> None:
    """CloudWatch knows no Trainium; the CPUs beside it say nothing of it."""
    trn = replace(TYPES["ml.m5.xlarge"], name="ml.trn1.2xlarge", accelerator="trainium")
    run = ran(3600, "ml.trn1.2xlarge")
    raw = [series(metric, [50.0] * 60) for metric in (Metric.CPU, Metric.MEMORY)]
    of = measure(run, raw, {trn.name: trn}, absent=Missing("metric_missing", "no points"))
    [sentence] = said(of)
    assert sentence.startswith("The use of the accelerators was not judged: ")
    assert "ml.trn1.2xlarge" in sentence
    assert "neuron-monitor" in sentence


@pytest.mark.parametrize(
    ("hosts", "sentence"),
    [
        (7, "1 of 8 hosts has no metrics: what it did was not judged."),
        (5, "3 of 8 hosts have no metrics: what they did was not judged."),
        (8, None),
    ],
)
def test_hosts_without_metrics_are_counted(hosts: int, sentence: str | None) -> None:
    """The others stand for themselves only."""
    of = whole(ran(3600, "ml.g5.2xlarge", 8), 60, hosts)
    assert said(of) == ([sentence] if sentence else [])


def half_measured(of: Job) -> Measurements:
    """Two hosts with CPU points, one of them with points of the GPU."""
    both = [series(Metric.CPU, [400.0] * 60, host=f"train/algo-{n}") for n in (1, 2)]
    both += [series(Metric.MEMORY, [40.0] * 60, host=f"train/algo-{n}") for n in (1, 2)]
    one = [series(metric, [40.0] * 60) for metric in (Metric.GPU, Metric.GPU_MEMORY)]
    return usage(of, *both, *one)


def test_a_host_that_lacks_one_resource_is_said_of_that_resource() -> None:
    """The host's CPU was judged, its GPU was not."""
    assert said(half_measured(ran(3600, "ml.g5.2xlarge", 2))) == [
        "1 of 2 hosts has no metrics of the GPUs and GPU memory: what it did was not judged."
    ]


def test_series_that_end_early_are_said_with_the_time_they_miss() -> None:
    """Half an hour without points could have been idle or busy."""
    [sentence] = said(whole(ON_GPU, 30))
    assert sentence == (
        "The metrics of the CPUs, memory, the GPUs and GPU memory end 30 min before the job does: "
        "what came then was not judged."
    )


@pytest.mark.parametrize(("gap", "told"), [(14, False), (15, True)])
def test_a_gap_counts_from_the_minutes_that_a_rule_needs(gap: int, told: bool) -> None:
    """A quarter of an hour is what a rule judges; late and lost points are shorter."""
    cpu: list[float | None] = [100.0] * 20 + [None] * gap + [100.0] * (40 - gap)
    memory = series(Metric.MEMORY, [20.0] * 60)
    sentences = said(usage(ran(3600), series(Metric.CPU, cpu), memory))
    assert sentences == (
        ["The metrics of the CPUs have no points for 15 min: what happened then was not judged."]
        if told
        else []
    )


@pytest.mark.parametrize(
    ("code", "minutes", "sentence"),
    [
        (
            "too_short",
            7,
            (
                "Its own code ran for only 7 min: at least 15 min are needed to judge its use. "
                "Shorter runs are judged together with the last runs of their family on the same "
                "instances, where these have that much in all."
            ),
        ),
        ("too_few_points", 2, "Its use was not judged: 2 points of each host are too few."),
        (
            "period_too_coarse",
            60,
            "Its metrics have one point every 1 min: idle time in between was not judged.",
        ),
        (
            "hosts_unmapped",
            60,
            "Its hosts were not compared: CloudWatch does not say in which group each host is.",
        ),
    ],
)
def test_what_rules_could_not_judge_is_said_once(code: str, minutes: int, sentence: str) -> None:
    """Each code of the rules' answers has its own sentence."""
    run = ran(minutes * 60)
    assert said(flat(run, minutes, cpu=50, memory=50), code) == [sentence]


def test_a_long_run_that_worked_for_a_few_minutes_says_so() -> None:
    """Its idle time was judged, its work was not."""
    cpu = [0.0] * 30 + [200.0] * 5 + [0.0] * 25
    memory = series(Metric.MEMORY, [20.0] * 60)
    [sentence] = said(usage(ran(3600), series(Metric.CPU, cpu), memory), "too_short")
    assert sentence == (
        "It was at work for only 5 min: at least 15 min are needed to judge its use. Shorter runs "
        "are judged together with the last runs of their family on the same instances, where these "
        "have that much in all."
    )


def test_scattered_points_are_said_by_their_share() -> None:
    """Every third point is no gap, and too few all the same."""
    thin = [50.0 if minute % 3 == 0 else None for minute in range(60)]
    memory = series(Metric.MEMORY, [20.0] * 60)
    assert said(usage(job("ml.m5.xlarge"), series(Metric.CPU, thin), memory), "coverage_low")


def test_points_that_are_all_null_are_said() -> None:
    """The recording has the series, and nothing in them."""
    null: list[float | None] = [None] * 60
    of = usage(ran(3600), series(Metric.CPU, null), series(Metric.MEMORY, null))
    assert said(of) == ["The use of its machines was not judged: all its points are null."]


def test_points_of_another_time_are_said() -> None:
    """They lie outside of the run."""
    at = START + timedelta(days=1)
    late = [series(metric, [5.0] * 60, start=at) for metric in (Metric.CPU, Metric.MEMORY)]
    assert said(usage(ran(3600), *late)) == [
        "The use of its machines was not judged: no points inside the Training phase."
    ]
