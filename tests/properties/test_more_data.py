"""Less data never adds a finding or dollars that more data would remove."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.structs import replace
from tests.properties.judged import (
    EXEMPT,
    MICRO,
    Document,
    dollars,
    findings_line,
    judged,
    machine_findings,
    property_settings,
    with_series_changed,
    with_values,
)
from tests.properties.programs import METRICS, Run, Spell, plain, runs


def certain(audit: AuditDocument) -> Decimal:
    """Returns the counted dollars of measured and derived findings."""
    return dollars(
        finding
        for finding in machine_findings(audit)
        if finding["confidence"] in {"measured", "derived"}
    )


@pytest.mark.parametrize("metric", METRICS)
@property_settings(40, money=False)
@given(run=runs(whole=True))
def test_one_more_metric_takes_no_measured_finding_back(metric: str, run: Run) -> None:
    """A finding that is measured without a metric is also found with it."""
    job_recording = run.recording()
    less = with_series_changed(
        job_recording, lambda line: None if line["metric"] == metric else line
    )
    measured = {
        finding["rule"]
        for finding in judged(less)["findings"]
        if finding["confidence"] == "measured" and finding["rule"] not in EXEMPT
    }
    assert measured <= {finding["rule"] for finding in judged(job_recording)["findings"]}


class Loss(Struct, frozen=True):
    """What a recording lacks: which metrics, on which host, from which minute, for how long."""

    metrics: tuple[str, ...] = METRICS
    host: int = 0
    first: int = 0
    minutes: int = 600


def nulls(job_recording: Document, loss: Loss) -> Document:
    """Sets all points of some metrics, or those of some minutes, to null."""
    lost = range(loss.first, loss.first + loss.minutes)
    return with_values(
        job_recording,
        lambda line: line["metric"] in loss.metrics,
        lambda minute, value: None if minute in lost else value,
    )


def one_host_missing(job_recording: Document, loss: Loss) -> Document:
    """Removes the series of some metrics of one host."""
    hosts = sorted({line["host"] for line in job_recording["metrics"]["series"]})
    host = hosts[loss.host % len(hosts)]
    return with_series_changed(
        job_recording,
        lambda line: None if line["host"] == host and line["metric"] in loss.metrics else line,
    )


def early_end(job_recording: Document, loss: Loss) -> Document:
    """Cuts off the series of some metrics."""

    def ended(line: Document) -> Document:
        if line["metric"] in loss.metrics:
            line["values"] = line["values"][: max(loss.first, 1)]
        return line

    return with_series_changed(job_recording, ended)


def another_job(job_recording: Document, loss: Loss) -> Document:
    """Renames the hosts of some metrics to those of another job."""

    def foreign(line: Document) -> Document:
        if line["metric"] in loss.metrics:
            line["host"] = f"another-{line['host']}"
        return line

    return with_series_changed(job_recording, foreign)


def hourly(job_recording: Document, loss: Loss) -> Document:
    """Replaces each hour's points by their mean."""

    def coarser(line: Document) -> Document:
        values = line["values"]
        hours = [
            [value for value in values[first : first + 60] if value is not None]
            for first in range(0, len(values), 60)
        ]
        line["values"] = [
            sum(known_values) / len(known_values) if known_values else None
            for known_values in hours
        ]
        return line

    other = with_series_changed(job_recording, coarser)
    other["metrics"]["period_s"] = 3600
    return other


def losses() -> st.SearchStrategy[Loss]:
    """Returns a strategy for losses of one metric or all, and of some minutes or all."""
    return st.builds(
        Loss,
        st.sampled_from((METRICS, *((name,) for name in METRICS))),
        st.integers(0, 7),
        st.sampled_from((0, 5, 60)) | st.integers(0, 599),
        st.sampled_from((600, 30)) | st.integers(1, 120),
    )


FOUND: dict[Callable[[Document, Loss], Document], tuple[tuple[Run, Loss], ...]] = {
    nulls: (
        (
            plain(
                "ml.p5en.48xlarge",
                *[0.4] * 8,
                gpu_gib=14,
                loader_cores=35,
                gib=205,
                spells=(Spell(51, 0.0), Spell(5, 0.0, loading=True)),
            ),
            Loss(("CPUUtilization",)),
        ),
    ),
    one_host_missing: (
        (plain("ml.p3.16xlarge", *[0.01] * 5, gib=464, hosts=2), Loss(("GPUMemoryUtilization",))),
        (
            plain(
                "ml.g5.24xlarge", 0.021, gpu_gib=11, cores=63, gib=38, hosts=4, spells=(Spell(50),)
            ),
            Loss(("GPUMemoryUtilization",)),
        ),
    ),
    early_end: (
        (
            plain("ml.p6-b200.48xlarge", *[0.0037] * 8, gpu_gib=72, cores=72, gib=819, hosts=8),
            Loss(("GPUMemoryUtilization",), first=20),
        ),
        (
            plain("ml.g5.16xlarge", 0.2, loader_cores=40, spells=(Spell(100, 0.3), Spell(35))),
            Loss(first=100),
        ),
    ),
    another_job: (
        (plain("ml.p3.8xlarge", 0.03, cores=2.1, gib=24), Loss(("GPUMemoryUtilization",))),
        (
            plain(
                "ml.g4dn.xlarge",
                0.3,
                gpu_gib=11.2,
                cores=0.5,
                loader_cores=0.2,
                gib=1.6,
                spells=(Spell(40, 0.0), Spell(120)),
            ),
            Loss(("GPUMemoryUtilization",)),
        ),
        (
            replace(
                plain(
                    "ml.g4dn.4xlarge",
                    0.3,
                    gpu_gib=1.6,
                    cores=0.5,
                    loader_cores=7.2,
                    gib=6.4,
                    spells=(Spell(40, 0.0), Spell(120)),
                ),
                jitter=0.3,
            ),
            Loss(("GPUUtilization",)),
        ),
    ),
    hourly: (
        (
            plain(
                "ml.g7e.12xlarge", 0.01, 0.01, gpu_gib=10, cores=3, gib=358, spells=(Spell(240),)
            ),
            Loss(),
        ),
        (replace(plain("ml.g5.xlarge", 0.01, spells=(Spell(240, 0.7),)), jitter=0.3), Loss()),
    ),
}
"""Failures that random runs once found, simplified."""
LOSSES = (nulls, one_host_missing, early_end, another_job, hourly)


@pytest.mark.parametrize(
    ("lost", "run", "loss"), [(lost, *pair) for lost, pairs in FOUND.items() for pair in pairs]
)
def test_lost_data_that_once_added_a_dollar_adds_none(
    lost: Callable[[Document, Loss], Document], run: Run, loss: Loss
) -> None:
    """Each failure that random runs once found stays fixed."""
    check_no_dollars_added(lost, run, loss)


@pytest.mark.parametrize("lost", LOSSES, ids=lambda lost: lost.__name__)
@property_settings(80, money=False)
@given(run=runs(whole=True), loss=losses())
def test_lost_data_adds_no_dollar_that_more_data_would_take_back(
    lost: Callable[[Document, Loss], Document], run: Run, loss: Loss
) -> None:
    """A run with less recorded data counts no more dollars, and each rule answers."""
    check_no_dollars_added(lost, run, loss)


def check_no_dollars_added(
    lost: Callable[[Document, Loss], Document], run: Run, loss: Loss
) -> None:
    """Checks that what is certain without some data is also certain with it."""
    job_recording = run.recording()
    whole, partial = judged(job_recording), judged(lost(job_recording, loss))
    assert certain(partial) <= certain(whole) + MICRO, (
        f"{findings_line(whole)}\n{findings_line(partial)}"
    )
