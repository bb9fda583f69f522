"""One type for all runs of a family."""

from decimal import Decimal

import pytest

from sageaudit.domain.resize.type_choice import best_for_family
from sageaudit.structs import replace
from tests.domain.bill.test_resize import ALMOST_NONE, CPU, TYPES, tried

pytestmark = pytest.mark.money


def test_where_a_run_saves_an_unknown_amount_the_types_that_hold_most_runs_keep_their_order() -> (
    None
):
    """They come by their own bill: which one saves the family most is not known."""
    run = tried(CPU, **ALMOST_NONE)
    known, needs = run.fitting, [{known.type.name: Decimal(1)} for known in run.fitting[-1:]]
    unknown = replace(run, bill=replace(run.bill, basis="upper_bound"))
    found = best_for_family(unknown, known, needs, TYPES, known[-1].type.name)
    assert found
    assert found == [one for one in known if one in found]


@pytest.mark.parametrize(("usd", "is_kept"), [("0.26", True), ("0.261", False)])
def test_a_type_that_was_advised_is_kept_for_nine_tenths_of_the_best_saving(
    usd: str, is_kept: bool
) -> None:
    """The best one saves $0.60 of $0.80: at $0.54 the family has no other advice."""
    run = tried(CPU, **ALMOST_NONE)
    best, other, *_ = run.fitting
    assert run.saving_usd(best) == Decimal("0.60")
    advised = other._replace(usd=Decimal(usd))
    first, *_ = best_for_family(run, [best, advised], [], TYPES, advised.type.name)
    assert (first is advised) is is_kept
