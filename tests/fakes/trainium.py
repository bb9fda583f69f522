"""A job on an accelerator of whose use CloudWatch has no metric."""

from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
from tests.fakes.jobs import FixedPrices, Points, instance_type, series

TRAINIUM = "ml.trn1.2xlarge"
TYPES = {TRAINIUM: instance_type(TRAINIUM, 8, 32, accelerator="neuron")}
MARKET = Market(TYPES, FixedPrices())


def cpu_alone(run: Job, values: Points) -> Measurements:
    """What was measured of a run on TRAINIUM: its CPU, as CloudWatch gives it."""
    raw = [series(Metric.CPU, values, host=f"{run.name}/algo-1")]
    return measure(run, raw, TYPES, absent=Missing("metric_missing", "no points"))
