"""The word that says how exactly an amount is known."""

from typing import Any

import pytest

from sageaudit.domain.audit.bill_document import (
    BillDocument,
    SpendQualifier,
    qualify_bill,
    qualify_change,
    qualify_sum,
)
from sageaudit.domain.bill.bill import UPPER_BOUND
from tests.fakes.documents import bill
from tests.fakes.sample_documents import ESTIMATE_NOTE

STORAGE = "storage: no ML storage price for us-east-1 (Training)"
BOUND: dict[str, Any] = {"basis": "upper_bound", "missing": [UPPER_BOUND]}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "exact"),
        ({"basis": "estimated_from_times"}, "exact"),
        ({"basis": "prepaid"}, "exact"),
        ({"missing": [ESTIMATE_NOTE], "estimated": [ESTIMATE_NOTE]}, "about"),
        ({"missing": [STORAGE]}, "at_least"),
        (BOUND, "up_to"),
        ({"basis": "upper_bound", "missing": []}, "up_to"),
        (BOUND | {"missing": [UPPER_BOUND, STORAGE]}, "about"),
        (BOUND | {"missing": [UPPER_BOUND, ESTIMATE_NOTE], "estimated": [ESTIMATE_NOTE]}, "about"),
        ({"total_usd": None, "missing": ["no price"]}, "unknown"),
        (BOUND | {"total_usd": None}, "unknown"),
    ],
)
def test_a_bill_has_a_qualifier(changes: dict[str, Any], word: str) -> None:
    """The qualifier depends on what is missing, and on whether that would raise or lower the
    bill.
    """
    made: BillDocument = bill(**changes)
    assert qualify_bill(made).value == word


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ([], "exact"),
        (["exact", "exact"], "exact"),
        (["exact", "at_least"], "at_least"),
        (["exact", "up_to"], "up_to"),
        (["at_least", "up_to"], "about"),
        (["exact", "about"], "about"),
        (["about", "at_least"], "about"),
        (["exact", "unknown"], "at_least"),
        (["up_to", "unknown"], "about"),
        (["unknown", "unknown"], "unknown"),
    ],
)
def test_a_sum_is_as_exact_as_its_parts(parts: list[str], word: str) -> None:
    """In any order. An unknown part makes the sum a lower bound."""
    for words in (parts, parts[::-1]):
        assert qualify_sum(map(SpendQualifier, words)).value == word


@pytest.mark.parametrize(
    ("now", "before", "rose", "fell"),
    [
        ("exact", "exact", "exact", "exact"),
        ("at_least", "exact", "at_least", "up_to"),
        ("exact", "at_least", "up_to", "at_least"),
        ("up_to", "exact", "up_to", "at_least"),
        ("exact", "up_to", "at_least", "up_to"),
        ("at_least", "up_to", "at_least", "up_to"),
        ("up_to", "up_to", "about", "about"),
        ("about", "exact", "about", "about"),
        ("exact", "unknown", "unknown", "unknown"),
    ],
)
def test_the_size_of_a_change_has_a_qualifier(now: str, before: str, rose: str, fell: str) -> None:
    """From at least 3 to 1, spend fell by at least 2. From 1 to at least 3, it rose by at least
    2.
    """
    words = SpendQualifier(now), SpendQualifier(before)
    assert qualify_change(*words, has_fallen=False).value == rose
    assert qualify_change(*words, has_fallen=True).value == fell
