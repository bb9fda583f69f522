from __future__ import annotations

from dataclasses import replace

from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Metric, Missing
from tests.fakes.jobs import TYPES, FixedPrices, flat, instance_type, market, ran, series
from tests.fakes.rule_cases import CLEAR, FOUND, cases, even, finds, row

RULE = "profile-me"
DEAR = ran(36000, "ml.g4dn.12xlarge", 2)
"""Ten hours of two: 20 x $4.89 = $97.80."""
LOW = flat(DEAR, 600, hosts=2, cpu=30, gpu=20)
DEAR_CPU = ran(360000, "ml.m5.4xlarge", volume_gb=None)
"""A hundred hours at $0.92."""


test_cases = cases(
    RULE,
    "It has no dollars. A profile saves nothing by itself.",
    row(finds(bucket="none", usd=None, severity="info"), DEAR, LOW),
    "Without a GPU the CPU is the figure. At 40% of 16 cores.",
    row(finds(evidence={"metric": "CPUUtilization"}), DEAR_CPU, even(6000, cpu=40)),
    "Exactly half of the time is work enough. 50% is the target, 49% is under it.",
    row(CLEAR, DEAR, even(600, hosts=2, cpu=30, gpu=50)),
    row(FOUND, DEAR, even(600, hosts=2, cpu=30, gpu=49)),
    "A profiled run is not its concern.",
    # Nor is the advised run; without an answer the rule applies.
    row("not applicable: a profiler was on", replace(DEAR, profiled=True), LOW),
    row(FOUND, replace(DEAR, profiled=False), LOW),
    row(FOUND, replace(DEAR, profiled=None), LOW),
    "A profiler that was switched off is switched on. An output path alone would leave it off.",
    row(finds(fix=[("ProfilerConfig.DisableProfiler", False), ("ProfilerConfig.S3OutputPath",
        "s3://<bucket>/<prefix>")]), replace(DEAR, profiled=False), LOW),
    "Trainium reports no use. Its CPU is low for a good reason.",
    row("unknown: accelerator_unseen", ran(36000, "ml.trn1.2xlarge"),
        measure(ran(36000, "ml.trn1.2xlarge"), [series(Metric.CPU, [80] * 600)],
        Market({**TYPES, instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron",
        ebs_billed=False).name: instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron",
        ebs_billed=False)}, FixedPrices(hourly_usd={instance_type("ml.trn1.2xlarge", 8, 32,
        accelerator="neuron", ebs_billed=False).name: "30"})).types, absent=Missing("none",
        "none")), on=Market({**TYPES, instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron",
        ebs_billed=False).name: instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron",
        ebs_billed=False)}, FixedPrices(hourly_usd={instance_type("ml.trn1.2xlarge", 8, 32,
        accelerator="neuron", ebs_billed=False).name: "30"}))),
    "Without the GPU of a GPU job it does not know.",
    # Its card asks for CPU alone, which CPU jobs have too.
    row("unknown: metric_missing", DEAR, even(600, hosts=2, cpu=30)),
    "A run of unknown cost is unknown. Whether it is expensive is not known.",
    row("unknown: bill_unknown", ran(36000, "ml.unpriced.xlarge"), even(600, cpu=20)),
    "An expensive run that waits is found. Without a profile nobody knows for what.",
    row(finds("It cost $97.80 with its GPU at 20%, and no profiler shows why.",
        fix=[("ProfilerConfig.S3OutputPath", None, "s3://<bucket>/<prefix>")],
        caution="…closed to new customers since 2026-07-30…torch.profiler…"), DEAR, LOW),
    "Exactly fifty dollars are dear. An hour at $50, and one at $49.99.",
    row(FOUND, ran(3600, "ml.m5.4xlarge", volume_gb=None), even(60, cpu=20),
        on=market(hourly_usd={"ml.m5.4xlarge": "50"})),
    row("not applicable: it cost less than $50.00", ran(3600, "ml.m5.4xlarge", volume_gb=None),
        even(60, cpu=20), on=market(hourly_usd={"ml.m5.4xlarge": "49.99"})),
)  # fmt: skip
