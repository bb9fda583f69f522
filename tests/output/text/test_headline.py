from decimal import Decimal
from typing import Any, cast

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.output.text.headline import headline, judged_text, part_of_judged
from sageaudit.output.text.money import Figure
from tests.fakes.documents import document
from tests.fakes.sample_documents import estimated_document, possibly_lost_document

ZERO = Decimal(0)
NONE: dict[str, Any] = {"avoidable_usd": ZERO}
UNJUDGED: dict[str, Any] = {"avoidable_usd": None, "judged": "no"}
RUNNING: dict[str, Any] = {
    **UNJUDGED,
    "unknown": [{"rule": "gpu-idle", "code": "job_not_finished", "reason": "it has not ended"}],
}


def billed(*missing: str, **changes: Any) -> dict[str, Any]:
    """Another bill, in which this is missing."""
    return {"bill": {"missing": [*missing], **changes}}


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        pytest.param({}, "$2.04 of $4.55 (45%) was avoidable", id="some was avoidable"),
        pytest.param(
            {**NONE, "lost_usd": Decimal("4.5534")}, "all of $4.55 was lost", id="all was lost"
        ),
        pytest.param(
            {"lost_usd": Decimal(1)},
            "$3.04 of $4.55 (67%) was avoidable or lost",
            id="avoidable and lost dollars are one sum",
        ),
        pytest.param(
            billed(basis="estimated_from_times"),
            "$2.04 of $4.55 (45%) was avoidable",
            id="a bill of start and end",
        ),
        pytest.param(
            billed("x"), "$2.04 of $4.55 or more was avoidable", id="a bill that lacks something"
        ),
        pytest.param(
            billed(UPPER_BOUND, basis="upper_bound"),
            "$2.04 of up to $4.55 was avoidable",
            id="a bill that is an upper bound",
        ),
        pytest.param(
            billed("bound", "x", basis="upper_bound"),
            "$2.04 of about $4.55 was avoidable",
            id="an upper bound that lacks something",
        ),
        pytest.param(
            billed("x", total_usd=None), "$2.04 was avoidable", id="a cost that is not known"
        ),
        pytest.param(NONE, "none of $4.55 was found avoidable", id="nothing was avoidable"),
        pytest.param(
            NONE | billed("x", total_usd=None),
            "none of the cost was found avoidable",
            id="nothing was avoidable of a cost that is not known",
        ),
        pytest.param(
            NONE | billed(total_usd=ZERO), "it cost nothing", id="a job that cost nothing"
        ),
        pytest.param(
            NONE | billed(basis="prepaid", total_usd=ZERO),
            "its capacity is prepaid, so no dollars were avoidable",
            id="prepaid capacity",
        ),
        pytest.param(
            {**NONE, "judged": "partly"},
            "none of $4.55 was found avoidable, but not all of it could be judged",
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
            UNJUDGED | billed(total_usd=None),
            "its cost is not known, and what was avoidable could not be judged",
            id="nothing was judged of a cost that is not known",
        ),
        pytest.param(
            UNJUDGED | billed(basis="prepaid", total_usd=ZERO),
            "its capacity is prepaid, and what was avoidable could not be judged",
            id="prepaid capacity that was not judged",
        ),
        pytest.param(
            RUNNING | billed("x"),
            "it still runs, and cost $4.55 or more so far",
            id="a running job",
        ),
        pytest.param(
            RUNNING | billed(total_usd=None), "it still runs", id="a running job of unknown cost"
        ),
        pytest.param(
            RUNNING | billed(basis="prepaid"),
            "it still runs, on prepaid capacity",
            id="a running job on prepaid capacity",
        ),
        pytest.param(
            RUNNING | billed(total_usd=ZERO),
            "it still waits for its instances, and cost nothing so far",
            id="a job that waits for its instances",
        ),
    ],
)
def test_headline(changes: dict[str, Any], shown: str) -> None:
    """The first line is the whole news, and no surer than the bill."""
    assert headline(document(**{"possible_usd": ZERO, **changes})) == shown


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        pytest.param(
            NONE,
            "it cost $4.55, of which about $0.90 is worth a trial",
            id="a possible saving instead of none",
        ),
        pytest.param(
            {**NONE, "possible_usd": Decimal("0.004")},
            "none of $4.55 was found avoidable",
            id="less than a cent is nothing",
        ),
        pytest.param(
            {**NONE, "possible_usd": None},
            "none of $4.55 was found avoidable",
            id="a possible saving that is not known",
        ),
        pytest.param(
            UNJUDGED | billed(total_usd=Decimal(4)),
            "it cost $4.00, and what was avoidable could not be judged; about $0.90 is "
            "worth a trial",
            id="a job that was not judged",
        ),
        pytest.param(
            NONE | billed("x", total_usd=None),
            "its cost is not known, and about $0.90 is worth a trial",
            id="a cost that is not known",
        ),
    ],
)
def test_where_something_is_worth_a_trial_a_headline_is_never_none(
    changes: dict[str, Any], shown: str
) -> None:
    """The possible sum comes in place of "none"; less than a cent is nothing."""
    assert headline(document(**changes)) == shown


def test_a_headline_says_up_to_what_may_have_been_avoidable() -> None:
    """A range from 0 is not counted, and still news; one that another finding covers is not."""
    made = document(avoidable_usd=ZERO, possible_usd=ZERO)
    ranged = {
        **made["findings"][0],
        "saving_usd": Decimal(0),
        "saving_range_usd": [Decimal(0), Decimal("1.234")],
    }
    shown = headline(cast("AuditDocument", {**made, "findings": [ranged]}))
    assert shown == "it cost $4.55, of which up to $1.23 is worth a trial"
    covered = {**ranged, "subsumed_by": "gpu-idle"}
    shown = headline(cast("AuditDocument", {**made, "findings": [covered]}))
    assert shown == "none of $4.55 was found avoidable"


def test_a_headline_says_up_to_what_may_be_lost() -> None:
    """All of the bill, or a part beside avoidable dollars."""
    perhaps = possibly_lost_document()
    assert headline(perhaps) == "all of $4.55 may be lost"
    part = headline(cast("AuditDocument", {**perhaps, "lost_up_to_usd": Decimal(2)}))
    assert part == "up to $2.00 of $4.55 (44%) may be lost"
    some = {"avoidable_usd": Decimal("0.5"), "lost_up_to_usd": Decimal("4.0534")}
    shown = headline(cast("AuditDocument", {**perhaps, **some}))
    assert shown == "$0.50 of $4.55 (11%) was avoidable, and up to $4.05 more was lost"


@pytest.mark.parametrize(
    ("total", "words"),
    [
        pytest.param(
            Sums(
                jobs=26,
                not_judged=3,
                partly_judged=3,
                total_usd=Decimal(4540),
                judged_usd=Decimal(3984),
            ),
            "$3,984.00 of $4,540.00 judged: 20 of 26 jobs, 3 more in part",
            id="some jobs in part",
        ),
        pytest.param(
            Sums(jobs=2, not_judged=2, total_usd=Decimal(4)),
            "$0.00 of $4.00 judged: 0 of 2 jobs",
            id="no job",
        ),
        pytest.param(
            Sums(jobs=1, unpriced=1), "judged 1 of 1 job", id="without a price in jobs alone"
        ),
    ],
)
def test_a_sum_says_how_much_of_the_spend_was_judged(total: Sums, words: str) -> None:
    """In dollars, which weigh more than jobs; without a price in jobs alone."""
    assert judged_text(total) == words


def test_the_part_that_was_avoidable_is_of_the_judged_spend() -> None:
    """What nothing could judge is no reason to call the rest small."""
    total = Sums(jobs=2, total_usd=Decimal(400), judged_usd=Decimal(100))
    assert part_of_judged(Figure(Decimal(25)), total) == "25% of the judged spend"
    assert part_of_judged(Figure(None), total) == ""
    assert part_of_judged(Figure(Decimal(0)), total) == ""


def test_a_headline_at_an_estimated_rate_has_no_percentage_and_says_about() -> None:
    """Of what was avoidable too; all of it is all, whatever the rate."""
    audit = estimated_document()
    said = "about $0.96 of about $1.39 was avoidable"
    assert headline(audit) == said
    whole = audit["bill"]["total_usd"]
    assert headline({**audit, "avoidable_usd": whole}) == "all of about $1.39 was avoidable"
    perhaps: AuditDocument = {**audit, "lost_up_to_usd": Decimal("0.3")}
    assert headline(perhaps) == f"{said}, and up to about $0.30 more was lost"
    unpriced = {**audit, "bill": {**audit["bill"], "total_usd": None}}
    assert headline(cast("AuditDocument", unpriced)) == "about $0.96 was avoidable"
