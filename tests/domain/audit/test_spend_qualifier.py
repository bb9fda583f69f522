"""How the total of a bill is to be read, by what an expert would say of each bill."""

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.spend_qualifier import qualifier_of_bill
from sageaudit.domain.bill.bill import UPPER_BOUND
from tests.adapters.history.entries import document

NO_STORAGE = "storage: the price of gp3 is not known"
ESTIMATE = "the rate of ml.p2.xlarge is estimated"
UPPER: dict[str, Any] = {"basis": "upper_bound"}


@pytest.mark.parametrize(
    ("bill", "qualifier"),
    [
        ({}, "exact"),
        ({"total_usd": Decimal(0)}, "exact"),
        ({"basis": "prepaid"}, "exact"),
        ({"missing": [NO_STORAGE]}, "at_least"),
        ({"missing": [ESTIMATE], "estimated": [ESTIMATE]}, "about"),
        ({"missing": [ESTIMATE, NO_STORAGE], "estimated": [ESTIMATE]}, "about"),
        (UPPER | {"missing": [UPPER_BOUND]}, "up_to"),
        (UPPER | {"missing": [UPPER_BOUND, NO_STORAGE]}, "about"),
        (UPPER | {"missing": [UPPER_BOUND, ESTIMATE], "estimated": [ESTIMATE]}, "about"),
        ({"total_usd": None}, "unknown"),
        (UPPER | {"total_usd": None, "missing": [UPPER_BOUND]}, "unknown"),
    ],
)
def test_a_bound_keeps_its_direction(bill: dict[str, Any], qualifier: str) -> None:
    """What the total lacks makes it a lower bound, spot without billable seconds an upper one."""
    assert qualifier_of_bill(document(bill=bill)["bill"]) == qualifier


@pytest.mark.parametrize(
    ("missing", "qualifier"),
    [
        ([f"in 2 of 5 training jobs, {UPPER_BOUND}"], "up_to"),
        ([f"in 2 of 5 training jobs, {NO_STORAGE}"], "at_least"),
        ([f"in 2 of 5 training jobs, {gap}" for gap in (UPPER_BOUND, NO_STORAGE)], "about"),
        (["2 of 5 training jobs are not audited"], "at_least"),
    ],
)
def test_a_tuning_job_has_the_bounds_of_its_training_jobs(
    missing: list[str], qualifier: str
) -> None:
    """An exact part and an upper bound are an upper bound together."""
    bill = document(bill={"basis": "none", "missing": missing})["bill"]
    assert qualifier_of_bill(bill) == qualifier
