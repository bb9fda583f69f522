"""One type for all runs of a family."""

from decimal import Decimal

import pytest

from sageaudit.domain.resize.type_choice import for_family
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
    found = for_family(unknown, known, needs, TYPES, known[-1].type.name)
    assert found
    assert found == [one for one in known if one in found]
