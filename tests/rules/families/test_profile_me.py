from __future__ import annotations

from dataclasses import replace

from sageaudit.domain.bill.finding import Bucket, Clear, Found, NotApplicable, Unknown
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Metric, Missing
from tests.fakes.jobs import TYPES, FixedPrices, flat, instance_type, market, ran, series
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "profile-me"
DEAR = ran(36000, "ml.g4dn.12xlarge", 2)
"""Ten hours of two: 20 x $4.89 = $97.80."""
LOW = flat(DEAR, 600, hosts=2, cpu=30, gpu=20)
DEAR_CPU = ran(360000, "ml.m5.4xlarge", volume_gb=None)
"""A hundred hours at $0.92."""


def test_an_expensive_run_that_waits_is_found() -> None:
    """Without a profile nobody knows for what."""
    what = found(RULE, DEAR, LOW)
    assert what.summary == "It cost $97.80 with its GPU at 20%, and no profiler shows why."
    [fix] = what.fix
    assert (fix.path, fix.old) == ("ProfilerConfig.S3OutputPath", None)
    assert what.caution is not None
    assert "closed to new customers since 2026-07-30" in what.caution
    assert "torch.profiler" in what.caution


def test_it_has_no_dollars() -> None:
    """A profile saves nothing by itself."""
    finding = priced(RULE, DEAR, LOW)
    assert finding.found.bucket is Bucket.NONE
    assert (finding.saving_usd, finding.severity.value) == (None, "info")


def test_without_a_gpu_the_cpu_is_the_figure() -> None:
    """At 40% of 16 cores."""
    what = found(RULE, DEAR_CPU, flat(DEAR_CPU, 6000, cpu=40))
    assert what.evidence["metric"] == "CPUUtilization"


def test_exactly_fifty_dollars_are_dear() -> None:
    """An hour at $50, and one at $49.99."""
    for usd, dear in (("50", True), ("49.99", False)):
        run = ran(3600, "ml.m5.4xlarge", volume_gb=None)
        of = flat(run, 60, cpu=20)
        answer = outcome(RULE, run, of, on=market(hourly_usd={"ml.m5.4xlarge": usd}))
        assert isinstance(answer, Found) is dear
        assert dear or answer == NotApplicable("it cost less than $50.00")


def test_exactly_half_of_the_time_is_work_enough() -> None:
    """50% is the target, 49% is under it."""
    assert outcome(RULE, DEAR, flat(DEAR, 600, hosts=2, cpu=30, gpu=50)) == Clear()
    assert isinstance(outcome(RULE, DEAR, flat(DEAR, 600, hosts=2, cpu=30, gpu=49)), Found)


def test_a_profiled_run_is_not_its_concern() -> None:
    """Nor is the advised run; without an answer the rule applies."""
    assert not_applicable(RULE, replace(DEAR, profiled=True), LOW) == "a profiler was on"
    for profiled in (False, None):
        assert isinstance(outcome(RULE, replace(DEAR, profiled=profiled), LOW), Found)


def test_a_profiler_that_was_switched_off_is_switched_on() -> None:
    """An output path alone would leave it off."""
    off = found(RULE, replace(DEAR, profiled=False), LOW)
    assert [(one.path, one.new) for one in off.fix] == [
        ("ProfilerConfig.DisableProfiler", False),
        ("ProfilerConfig.S3OutputPath", "s3://<bucket>/<prefix>"),
    ]


def test_trainium_reports_no_use() -> None:
    """Its CPU is low for a good reason."""
    trn = instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron", ebs_billed=False)
    run = ran(36000, "ml.trn1.2xlarge")
    on = Market({**TYPES, trn.name: trn}, FixedPrices(hourly_usd={trn.name: "30"}))
    of = measure(run, [series(Metric.CPU, [80] * 600)], on.types, absent=Missing("none", "none"))
    answer = outcome(RULE, run, of, on=on)
    assert isinstance(answer, Unknown)
    assert answer.code == "accelerator_unseen"


def test_without_the_gpu_of_a_gpu_job_it_does_not_know() -> None:
    """Its card asks for CPU alone, which CPU jobs have too."""
    assert unknown(RULE, DEAR, flat(DEAR, 600, hosts=2, cpu=30)) == "metric_missing"


def test_a_run_of_unknown_cost_is_unknown() -> None:
    """Whether it is expensive is not known."""
    run = ran(36000, "ml.unpriced.xlarge")
    assert unknown(RULE, run, flat(run, 600, cpu=20)) == "bill_unknown"
