"""Just inside and just outside of what is said to have changed in a run that cost more."""

from decimal import Decimal

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric
from tests.fakes.jobs import phases, ran, series
from tests.fakes.judging import answer
from tests.fakes.rule_cases import finds, lines
from tests.rules.families.test_cost_regression import NO_STORAGE, family

BATCH = ran(7200, kind=JobKind.PROCESSING, phases=phases(("Processing", 7200)), **NO_STORAGE)
FIRST_AFTER_3_MIN = lines(series(Metric.CPU, [None] * 3 + [90.0] * 117))


def test_a_first_point_a_minute_and_half_as_late_again_is_a_change_of_the_data() -> None:
    def verdict(first_point_s: int) -> object:
        runs = family(*["0.23"] * 5, kind="processing", first_point_s=Decimal(first_point_s))
        return answer("cost-regression", BATCH, FIRST_AFTER_3_MIN, earlier=runs)

    assert verdict(120) == finds("…its data (1 min more until its first point)…")
    assert verdict(121) == finds(without="first point")
