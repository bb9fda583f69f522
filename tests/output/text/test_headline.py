from decimal import Decimal
from typing import Any, cast

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.output.text.headline import headline, judged_text, part_of_judged
from sageaudit.output.text.money import Figure
from tests.fakes.documents import document, job
from tests.fakes.sample_documents import estimated_document, possibly_lost_document

ZERO = Decimal(0)
NONE: dict[str, Any] = {"avoidable_usd": ZERO}
UNJUDGED: dict[str, Any] = {"avoidable_usd": None, "judged": "no"}
RUNNING: dict[str, Any] = {
    **UNJUDGED,
    "unknown": [{"rule": "gpu-idle", "code": "job_not_finished", "reason": "it has not ended"}],
}


def bill_with(*missing: str, **changes: Any) -> dict[str, Any]:
    """Returns another bill in which these parts are missing."""
    return {"bill": {"missing": [*missing], **changes}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "$2.04 of $4.55 (45%) was avoidable", id="some was avoidable"),
        pytest.param(
            {**NONE, "lost_usd": Decimal("4.5534")},
            "the full cost, $4.55, was lost",
            id="all was lost",
        ),
        pytest.param(
            {"lost_usd": Decimal(1)},
            "$3.04 of $4.55 (67%) was avoidable or lost",
            id="avoidable and lost dollars are one sum",
        ),
        pytest.param(
            bill_with(basis="estimated_from_times"),
            "$2.04 of $4.55 (45%) was avoidable",
            id="a bill of start and end",
        ),
        pytest.param(
            bill_with("x"), "$2.04 of $4.55 or more was avoidable", id="a bill that lacks something"
        ),
        pytest.param(
            bill_with(UPPER_BOUND, basis="upper_bound"),
            "$2.04 of up to $4.55 was avoidable",
            id="a bill that is an upper bound",
        ),
        pytest.param(
            bill_with("bound", "x", basis="upper_bound"),
            "$2.04 of about $4.55 was avoidable",
            id="an upper bound that lacks something",
        ),
        pytest.param(
            bill_with("x", total_usd=None), "$2.04 was avoidable", id="a cost that is not known"
        ),
        pytest.param(NONE, "no avoidable cost was found in $4.55", id="nothing was avoidable"),
        pytest.param(
            NONE | bill_with("x", total_usd=None),
            "no avoidable cost was found",
            id="nothing was avoidable of a cost that is not known",
        ),
        pytest.param(
            NONE | bill_with(total_usd=ZERO), "it cost nothing", id="a job that cost nothing"
        ),
        pytest.param(
            NONE | bill_with(basis="prepaid", total_usd=ZERO),
            "its capacity is prepaid, so no dollars were avoidable",
            id="prepaid capacity",
        ),
        pytest.param(
            {**NONE, "judged": "partly"},
            "no avoidable cost was found in $4.55, but not all of it could be judged",
            id="not all was judged",
        ),
        pytest.param(
            {**NONE, "lost_usd": None},
            "it cost $4.55, and what was lost is not known",
            id="lost dollars that are not known",
        ),
        pytest.param(
            {"avoidable_usd": None, "lost_usd": None},
            "it cost $4.55, and what was avoidable or lost is not known",
            id="nothing is known of avoidable or lost dollars",
        ),
        pytest.param(
            UNJUDGED,
            "it cost $4.55, and what was avoidable could not be judged",
            id="nothing was judged",
        ),
        pytest.param(
            {**UNJUDGED, "lost_usd": Decimal(1)},
            "$1.00 of $4.55 (22%) was lost; the rest was not judged",
            id="something was lost, and the rest not judged",
        ),
        pytest.param(
            UNJUDGED | bill_with(total_usd=None),
            "its cost is not known, and what was avoidable could not be judged",
            id="nothing was judged of a cost that is not known",
        ),
        pytest.param(
            UNJUDGED | bill_with(basis="prepaid", total_usd=ZERO),
            "its capacity is prepaid, and what was avoidable could not be judged",
            id="prepaid capacity that was not judged",
        ),
        pytest.param(
            RUNNING | bill_with("x"),
            "it is still running and has cost at least $4.55 so far",
            id="a running job",
        ),
        pytest.param(
            RUNNING | bill_with(total_usd=None),
            "it is still running",
            id="a running job of unknown cost",
        ),
        pytest.param(
            RUNNING | bill_with(basis="prepaid"),
            "it is still running on prepaid capacity",
            id="a running job on prepaid capacity",
        ),
        pytest.param(
            RUNNING | bill_with(total_usd=ZERO) | {"job": job(started_at=None)},
            "it is still waiting for its instances and has cost nothing so far",
            id="a job that waits for its instances",
        ),
        pytest.param(
            RUNNING | bill_with(total_usd=ZERO),
            "it is still running",
            id="a job that had just started",
        ),
    ],
)
def test_headline(changes: dict[str, Any], expected: str) -> None:
    """The headline is no more certain than the bill."""
    assert headline(document(**{"possible_usd": ZERO, **changes})) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            NONE,
            "it cost $4.55, and a trial run may save about $0.90",
            id="a possible saving instead of none",
        ),
        pytest.param(
            {**NONE, "possible_usd": Decimal("0.004")},
            "no avoidable cost was found in $4.55",
            id="less than a cent is nothing",
        ),
        pytest.param(
            {**NONE, "possible_usd": None},
            "no avoidable cost was found in $4.55",
            id="a possible saving that is not known",
        ),
        pytest.param(
            UNJUDGED | bill_with(total_usd=Decimal(4)),
            "it cost $4.00, and what was avoidable could not be judged; a trial run may "
            "save about $0.90",
            id="a job that was not judged",
        ),
        pytest.param(
            NONE | bill_with("x", total_usd=None),
            "its cost is not known, and a trial run may save about $0.90",
            id="a cost that is not known",
        ),
    ],
)
def test_a_headline_with_a_possible_saving_is_never_none(
    changes: dict[str, Any], expected: str
) -> None:
    """The possible sum replaces "none"; less than a cent is nothing."""
    assert headline(document(**changes)) == expected


def test_a_headline_says_up_to_what_may_have_been_avoidable() -> None:
    """A range from 0 is not counted but mentioned, unless another finding covers it."""
    audit = document(avoidable_usd=ZERO, possible_usd=ZERO)
    ranged = {
        **audit["findings"][0],
        "saving_usd": Decimal(0),
        "saving_range_usd": [Decimal(0), Decimal("1.234")],
    }
    text = headline(cast("AuditDocument", {**audit, "findings": [ranged]}))
    assert text == "it cost $4.55, and a trial run may save up to $1.23"
    covered = {**ranged, "subsumed_by": "gpu-idle"}
    text = headline(cast("AuditDocument", {**audit, "findings": [covered]}))
    assert text == "no avoidable cost was found in $4.55"


def test_a_headline_says_up_to_what_may_be_lost() -> None:
    """It is all of the bill, or a part in addition to avoidable dollars."""
    audit = possibly_lost_document()
    assert headline(audit) == "up to $4.55, the full cost, may have been lost"
    text = headline(cast("AuditDocument", {**audit, "lost_up_to_usd": Decimal(2)}))
    assert text == "up to $2.00 of $4.55 (44%) may have been lost"
    changes = {"avoidable_usd": Decimal("0.5"), "lost_up_to_usd": Decimal("4.0534")}
    text = headline(cast("AuditDocument", {**audit, **changes}))
    assert text == "$0.50 of $4.55 (11%) was avoidable, and up to $4.05 more may have been lost"


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        pytest.param(
            Sums(
                jobs=26,
                not_judged=3,
                partly_judged=3,
                total_usd=Decimal(4540),
                judged_usd=Decimal(3984),
            ),
            "20 of 26 jobs, 3 more partly, were judged ($3,984.00 of $4,540.00)",
            id="some jobs in part",
        ),
        pytest.param(
            Sums(jobs=2, not_judged=2, total_usd=Decimal(4)),
            "0 of 2 jobs were judged ($0.00 of $4.00)",
            id="no job",
        ),
        pytest.param(
            Sums(jobs=1, unpriced=1), "the job was judged", id="without a price in jobs alone"
        ),
    ],
)
def test_the_judged_part_of_the_spend(total: Sums, expected: str) -> None:
    """It is in dollars and jobs; without a price in jobs alone."""
    assert judged_text(total) == expected


def test_the_avoidable_part_is_a_share_of_the_judged_spend() -> None:
    """Spend that was not judged does not make the share smaller."""
    total = Sums(jobs=2, total_usd=Decimal(400), judged_usd=Decimal(100))
    assert part_of_judged(Figure(Decimal(25)), total) == "25% of the judged spend"
    assert part_of_judged(Figure(None), total) == ""
    assert part_of_judged(Figure(Decimal(0)), total) == ""


def test_a_headline_at_an_estimated_rate_has_no_percentage_and_says_about() -> None:
    """The avoidable amount is "about" too, but the whole cost is "all"."""
    audit = estimated_document()
    avoidable_text = "about $0.96 of about $1.39 was avoidable"
    assert headline(audit) == avoidable_text
    whole = audit["bill"]["total_usd"]
    assert (
        headline({**audit, "avoidable_usd": whole}) == "the full cost, about $1.39, was avoidable"
    )
    lossy: AuditDocument = {**audit, "lost_up_to_usd": Decimal("0.3")}
    assert headline(lossy) == f"{avoidable_text}, and up to about $0.30 more may have been lost"
    unpriced = {**audit, "bill": {**audit["bill"], "total_usd": None}}
    assert headline(cast("AuditDocument", unpriced)) == "about $0.96 was avoidable"
