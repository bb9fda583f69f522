"""One type for all runs of a family."""

from decimal import Decimal

import pytest

from sageaudit.domain.resize.type_choice import best_for_family
from sageaudit.structs import replace
from tests.domain.bill.test_resize import ALMOST_NONE, CPU, TYPES, resized

pytestmark = pytest.mark.money


def test_types_keep_their_order_if_the_saving_is_unknown() -> None:
    """They are in the order of their bills, as it is unknown which one saves the family most."""
    run = resized(CPU, **ALMOST_NONE)
    known, needs = run.fitting, [{known.type.name: Decimal(1)} for known in run.fitting[-1:]]
    unknown = replace(run, bill=replace(run.bill, basis="upper_bound"))
    result = best_for_family(unknown, known, needs, TYPES, known[-1].type.name)
    assert result
    assert result == [item for item in known if item in result]


@pytest.mark.parametrize(("usd", "is_kept"), [("0.26", True), ("0.261", False)])
def test_a_recommended_type_is_kept_for_nine_tenths_of_the_best_saving(
    usd: str, is_kept: bool
) -> None:
    """The best type saves $0.60 of $0.80. At $0.54 the recommendation stays the same."""
    run = resized(CPU, **ALMOST_NONE)
    best, other_candidate, *_ = run.fitting
    assert run.saving_usd(best) == Decimal("0.60")
    advised = other_candidate._replace(usd=Decimal(usd))
    first, *_ = best_for_family(run, [best, advised], [], TYPES, advised.type.name)
    assert (first is advised) is is_kept
