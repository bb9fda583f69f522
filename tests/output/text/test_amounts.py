from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.output.text.amounts import document_amounts, sums_amounts
from sageaudit.output.text.headline import account_headline
from tests.fakes.documents import document
from tests.fakes.sample_documents import ESTIMATE_NOTE, estimated_document, possibly_lost_document

USD = Decimal("6.06")

STORAGE = "storage: no ML storage price for eu-west-3 (Training)"


def unknown_sums(avoidable: int, lost: int, **counts: Any) -> Sums:
    """Returns sums of jobs of which this many have unknown avoidable, or lost, dollars."""
    jobs = counts.pop("jobs", avoidable)
    return Sums(jobs=jobs, avoidable_unknown=avoidable, lost_unknown=lost, **counts)


@pytest.mark.parametrize(
    ("sums", "spend", "avoidable", "lost"),
    [
        pytest.param(Sums(), "$0.00", "$0.00", "$0.00", id="no job"),
        pytest.param(
            Sums(jobs=1, total_usd=USD), "$6.06", "$0.00", "$0.00", id="a job without waste"
        ),
        pytest.param(
            unknown_sums(1, 0, not_judged=1, total_usd=USD),
            "$6.06",
            "not judged",
            "$0.00",
            id="a job that was not judged",
        ),
        pytest.param(
            unknown_sums(1, 0, jobs=2, not_judged=1, total_usd=USD),
            "$6.06",
            "$0.00 or more",
            "$0.00",
            id="one of two jobs was not judged",
        ),
        pytest.param(
            unknown_sums(2, 1, not_judged=1, unauditable=1, total_usd=USD),
            "$6.06 or more",
            "not judged",
            "$0.00 or more",
            id="one of two jobs could not be audited",
        ),
        pytest.param(
            unknown_sums(1, 1, unpriced=1),
            "unknown",
            "unknown",
            "unknown",
            id="a job without a price",
        ),
        pytest.param(
            unknown_sums(1, 1, jobs=2, unpriced=1, total_usd=USD),
            "$6.06 or more",
            "$0.00 or more",
            "$0.00 or more",
            id="one of two jobs has no price",
        ),
        pytest.param(
            unknown_sums(1, 1, unauditable=1),
            "unknown",
            "not judged",
            "unknown",
            id="a job that could not be audited",
        ),
        pytest.param(
            Sums(jobs=1, upper_bounds=1, total_usd=USD),
            "up to $6.06",
            "$0.00",
            "$0.00",
            id="an upper bound",
        ),
        pytest.param(
            Sums(jobs=2, upper_bounds=1, incomplete=1, total_usd=USD),
            "about $6.06",
            "$0.00",
            "$0.00",
            id="an upper bound and a bill that lacks something",
        ),
        pytest.param(
            Sums(jobs=2, estimated=1, incomplete=1, total_usd=USD, lost_up_to_usd=USD),
            "about $6.06 or more",
            "$0.00",
            "up to about $6.06",
            id="an estimate and a bill that lacks something",
        ),
    ],
)
def test_an_unknown_amount_is_not_0(sums: Sums, spend: str, avoidable: str, lost: str) -> None:
    """This holds for jobs without a price and for jobs that could not be judged."""
    assert tuple(map(str, sums_amounts(sums)[:3])) == (spend, avoidable, lost)


@pytest.mark.parametrize(
    ("sums", "expected"),
    [
        pytest.param(Sums(), "No job was audited in this period", id="no job"),
        pytest.param(
            unknown_sums(2, 0, not_judged=2, total_usd=USD),
            "2 jobs cost $6.06: it is not known how much of it was avoidable",
            id="two jobs that were not judged",
        ),
        pytest.param(
            Sums(jobs=1, total_usd=USD),
            "1 job cost $6.06: no avoidable or lost cost was found",
            id="a job without waste",
        ),
        pytest.param(
            Sums(jobs=1, total_usd=USD, rules={"idle-tail": RuleSums(findings=2)}),
            "1 job cost $6.06: 2 findings, none of which saves anything for certain",
            id="findings without a saving",
        ),
        pytest.param(
            Sums(jobs=1, total_usd=USD, avoidable_usd=Decimal(2), lost_usd=Decimal(1)),
            "1 job cost $6.06: $2.00 was avoidable and $1.00 was lost",
            id="avoidable and lost dollars",
        ),
        pytest.param(
            Sums(jobs=1, total_usd=USD, lost_up_to_usd=USD),
            "1 job cost $6.06: up to $6.06 was lost",
            id="dollars that may be lost",
        ),
    ],
)
def test_the_headline_of_an_account_has_its_amounts(sums: Sums, expected: str) -> None:
    """Jobs that were not judged do not count as "none"."""
    assert account_headline(sums) == expected


@pytest.mark.parametrize(
    ("changes", "spend"),
    [
        ({}, "about $1.39"),
        ({"missing": [ESTIMATE_NOTE, STORAGE]}, "about $1.39 or more"),
        ({"missing": [STORAGE], "estimated": []}, "$1.39 or more"),
        ({"missing": [], "estimated": [], "basis": "estimated_from_times"}, "$1.39"),
        ({"basis": "upper_bound", "missing": [ESTIMATE_NOTE, UPPER_BOUND]}, "up to about $1.39"),
        ({"basis": "upper_bound", "missing": [UPPER_BOUND], "estimated": []}, "up to $1.39"),
        ({"basis": "upper_bound", "missing": [ESTIMATE_NOTE, UPPER_BOUND, STORAGE]}, "about $1.39"),
        ({"total_usd": Decimal("0.001")}, "<$0.01"),
        ({"total_usd": None}, "unknown"),
    ],
)
def test_the_cost_of_a_job_says_how_certain_it_is(changes: dict[str, Any], spend: str) -> None:
    """An upper bound with a part missing is "about"."""
    audit = estimated_document()
    bill = {**audit["bill"], **changes}
    assert str(document_amounts({**audit, "bill": bill}).spend) == spend  # type: ignore[typeddict-item]


def test_the_other_amounts_of_a_job() -> None:
    """Possible savings and idle capacity have two digits; without metrics amounts are unknown."""
    _, avoidable, lost, possible, idle = map(str, document_amounts(document()))
    assert (avoidable, lost, possible, idle) == ("$2.04", "$0.00", "about $0.90", "about $4.10")
    unjudged = document(avoidable_usd=None, judged="no", lost_usd=None, idle_capacity=None)
    assert [*map(str, document_amounts(unjudged))][1:] == [
        *("not judged", "unknown", "about $0.90", "unknown")
    ]
    assert str(document_amounts(possibly_lost_document()).waste) == "up to $4.55"
