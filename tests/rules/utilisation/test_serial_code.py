from __future__ import annotations

from dataclasses import replace

import pytest

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.counterfactual import Severities, allocate
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from tests.fakes.jobs import TYPES, Points, flat, market, phases, ran, series, usage
from tests.fakes.judging import card, found, not_applicable, outcome, priced, usd

RULE = "serial-code"
RUN = ran(3600, "ml.m5.4xlarge")


def cores(run: Job, *hosts: Points, memory: float | None = 5) -> Measurements:
    """Busy cores of each host, minute by minute."""
    raw = []
    for n, of in enumerate(hosts, start=1):
        host = f"train/algo-{n}"
        raw.append(series(Metric.CPU, [100 * (c or 0) for c in of], host=host))
        if memory is not None:
            raw.append(series(Metric.MEMORY, [memory] * len(of), host=host))
    return usage(run, *raw)


def test_one_core_of_sixteen_is_found() -> None:
    """1.2 vCPU and 3.8 GiB with headroom: ml.m5.large, $0.92 - $0.115."""
    finding = priced(RULE, RUN, cores(RUN, [1.0] * 60))
    what = finding.found
    assert what.summary == ("The code used 1.0 of 16 vCPUs over 1 h on 1 x ml.m5.4xlarge.")
    assert (what.confidence, what.bucket) == (Confidence.DERIVED, Bucket.AVOIDABLE)
    assert [(fix.path, fix.old, fix.new) for fix in what.fix] == [
        ("ResourceConfig.InstanceType", "ml.m5.4xlarge", "ml.m5.large")
    ]
    assert usd(finding.saving_usd) == "0.805000"
    assert what.evidence["cpu_mean_cores"] == 1.0


@pytest.mark.parametrize(
    ("use", "told"), [(0.85, True), (0.84, False), (1.2, True), (1.21, False), (2.0, False)]
)
def test_one_core_is_085_to_12(use: float, told: bool) -> None:
    """Jobstats' 0.85 to 1.01 of the job, and up to 0.19 of the host's system."""
    assert isinstance(outcome(RULE, RUN, cores(RUN, [use] * 60)), Found) is told


def test_several_cores_by_turns_are_not_one() -> None:
    """The mean is one core: eight for an eighth of the minutes."""
    assert outcome(RULE, RUN, cores(RUN, [8.0, 0.3, 0, 0, 0, 0, 0, 0.3] * 8)) == Clear()


def test_exactly_one_and_a_half_cores_are_not_steadily_one() -> None:
    """At P95."""
    just = [0.95] * 54 + [1.49] * 6
    assert isinstance(outcome(RULE, RUN, cores(RUN, just)), Found)
    assert outcome(RULE, RUN, cores(RUN, [0.95] * 54 + [1.5] * 6)) == Clear()


def test_idle_head_and_tail_are_cut_first() -> None:
    """20 busy minutes of 60 on one core."""
    what = found(RULE, RUN, cores(RUN, [0] * 20 + [1.0] * 20 + [0] * 20))
    assert what.evidence["active_minutes"] == 20


def test_two_vcpus_are_the_smallest_and_four_are_many() -> None:
    """One core of two is no waste that a type could save."""
    large, xlarge = ran(3600, "ml.m5.large"), ran(3600, "ml.m5.xlarge")
    assert outcome(RULE, large, cores(large, [1.0] * 60)) == Clear()
    assert isinstance(outcome(RULE, xlarge, cores(xlarge, [1.0] * 60)), Found)


def test_every_host_must_sit_at_one_core() -> None:
    """An idle one, or one with eight, is another story."""
    run = ran(3600, "ml.m5.4xlarge", 2)
    assert "vCPUs on each host over" in found(RULE, run, cores(run, [1.0] * 60, [1.0] * 60)).summary
    assert outcome(RULE, run, cores(run, [1.0] * 60, [0.1] * 60)) == Clear()
    assert outcome(RULE, run, cores(run, [1.0] * 60, [8.0] * 60)) == Clear()


@pytest.mark.parametrize("memory", [None, 95])
def test_without_a_smaller_type_that_holds_it_there_are_no_dollars(memory: float | None) -> None:
    """Memory not known, or more than a smaller type has: the cores can still be used."""
    finding = priced(RULE, RUN, cores(RUN, [1.0] * 60, memory=memory))
    assert (finding.found.bucket, finding.found.fix) == (Bucket.NONE, ())
    assert finding.saving_usd is None
    caution = finding.found.caution or ""
    assert caution.startswith("Nothing is counted: ")
    assert "threads and workers" in caution
    assert ("memory used is not known" in caution) is (memory is None)


def test_no_older_generation_is_advised_to_a_current_type() -> None:
    """However cheap it is; a type that is old itself may move within its time."""
    older = {**TYPES, "ml.m5.large": replace(TYPES["ml.m5.large"], legacy=True)}
    both = {**older, "ml.m5.4xlarge": replace(TYPES["ml.m5.4xlarge"], legacy=True)}
    for types, advised in ((older, "ml.m5.xlarge"), (both, "ml.m5.large")):
        on = replace(market(), types=types)
        assert [fix.new for fix in found(RULE, RUN, cores(RUN, [1.0] * 60), on=on).fix] == [advised]


def test_it_tells_the_story_of_the_little_used_cpu() -> None:
    """Both advise ml.m5.large: one gets the dollars, the other says by whom it is told."""
    of = cores(RUN, [1.0] * 60)
    pairs = [(card(name).name, found(name, RUN, of)) for name in (RULE, "cpu-underused")]
    settled = allocate(RUN, bill(RUN, market()), pairs, market(), Severities(), {})
    told = {one.rule.name: one for one in settled.findings}
    assert told["cpu-underused"].subsumed_by == RULE
    assert usd(settled.avoidable_usd) == "0.805000"


def test_the_advised_type_gets_no_advice_back() -> None:
    """One core of two, and 40% of 8 GiB."""
    run = ran(3600, "ml.m5.large")
    assert outcome(RULE, run, cores(run, [1.0] * 60, memory=40)) == Clear()
    assert outcome("cpu-underused", run, cores(run, [1.0] * 60, memory=40)) == Clear()


@pytest.mark.parametrize(
    ("kind", "phase", "path"),
    [
        (JobKind.PROCESSING, "Processing", "ProcessingResources.ClusterConfig.InstanceType"),
        (JobKind.TRANSFORM, "Transform", "TransformResources.InstanceType"),
    ],
)
def test_each_kind_has_its_own_parameter(kind: JobKind, phase: str, path: str) -> None:
    """The same rule for three kinds."""
    run = ran(3600, "ml.m5.4xlarge", kind=kind, phases=phases((phase, 3600)))
    assert [fix.path for fix in found(RULE, run, cores(run, [1.0] * 60)).fix] == [path]


def test_other_jobs_are_not_its_concern() -> None:
    """On a GPU job one core feeds the GPU; a mix has no one type."""
    gpu = ran(3600, "ml.g4dn.2xlarge")
    assert "GPU" in not_applicable(RULE, gpu, flat(gpu, 60, cpu=12.5, memory=5, gpu=90))
    mixed = ran(3600, groups=(InstanceGroup("ml.m5.xlarge", 1), InstanceGroup("ml.m5.large", 1)))
    assert "several groups" in not_applicable(RULE, mixed)
