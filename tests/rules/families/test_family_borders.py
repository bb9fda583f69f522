"""Just inside and just outside of what is said to have changed in a run that cost more."""

from decimal import Decimal

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.jobs import phases, ran, series
from tests.fakes.rule_cases import cases, finds, lines, row
from tests.rules.families.test_cost_regression import NO_STORAGE, family

BATCH = ran(7200, kind=JobKind.PROCESSING, phases=phases(("Processing", 7200)), **NO_STORAGE)
FIRST_AFTER_3_MIN = lines(series(Metric.CPU, [None] * 3 + [90.0] * 117))

test_cost_regression = cases(
    "cost-regression",
    "A first point that comes a minute later, and half as late again, is a change of the data.",
    row(finds("…its data (1 min more until its first point)…"), BATCH, FIRST_AFTER_3_MIN,
        earlier=family(*["0.23"] * 5, kind="processing", first_point_s=Decimal(120))),
    row(finds(without="first point"), BATCH, FIRST_AFTER_3_MIN,
        earlier=family(*["0.23"] * 5, kind="processing", first_point_s=Decimal(121))),
)  # fmt: skip
