"""Just inside and just outside of what is said to have changed in a run that cost more."""

from decimal import Decimal

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import batch_job
from tests.fakes.judging import answer
from tests.fakes.rule_cases import finds, one_host
from tests.rules.families.test_cost_regression import NO_STORAGE, family

BATCH = batch_job(JobKind.PROCESSING, 7200, **NO_STORAGE)
FIRST_AFTER_3_MIN = one_host(cores=[None] * 3 + [0.9] * 117)


def test_a_first_point_a_minute_and_half_as_late_again_is_a_change_of_the_data() -> None:
    def verdict(first_point_s: int) -> object:
        runs = family(*["0.23"] * 5, kind="processing", first_point_s=Decimal(first_point_s))
        return answer("cost-regression", BATCH, FIRST_AFTER_3_MIN, earlier=runs)

    assert verdict(120) == finds("…its data (1 min more until its first point)…")
    assert verdict(121) == finds(without="first point")
