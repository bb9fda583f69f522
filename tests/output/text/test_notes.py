from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.output.text.notes import money_notes, pool_note, price_note, unchecked_lines
from tests.fakes.documents import document, line
from tests.fakes.sample_documents import ESTIMATE_NOTE, estimated_document

STORAGE = "storage: no ML storage price for eu-west-3 (Training)"
BOUND = "spot run without billable seconds: the bill is an upper bound"
PROVISIONAL = "provisional: metrics or costs were incomplete when it was audited"
LEARNT = {
    "price_kind": "own",
    "price_as_of": "2026-10-01/2026-10-31",
    "price_source": "learnt from cur.csv, net of discounts",
}
LEARNT_NOTE = "your own rates of 2026-10-01 to 2026-10-31, learnt from a cost report"
OWN_NOTE = "your own prices, as set in policy.toml"


def document_with_bill(**changes: Any) -> AuditDocument:
    """Returns an audit with parts of its bill changed."""
    return document(bill=changes)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [{"price_kind": "estimate"}], "estimated rate of 2026-05-20", id="an estimate"
        ),
        pytest.param(
            [{"price_kind": "estimate"}, {}],
            "partly at an estimated rate of 2026-05-20; the rest at the list price of "
            "2026-05-20; both "
            "before discounts",
            id="an estimate beside a list price",
        ),
        pytest.param(
            [{"price_kind": "estimate"}, {"price_kind": "own"}],
            f"estimated rate of 2026-05-20; {OWN_NOTE}",
            id="an estimate beside an own rate",
        ),
        pytest.param(
            [{"price_kind": "own", "price_as_of": None, "price_source": "policy: rate"}],
            OWN_NOTE,
            id="an own rate of the policy",
        ),
        pytest.param([LEARNT], LEARNT_NOTE, id="a learnt rate"),
        pytest.param(
            [LEARNT, {}],
            f"{LEARNT_NOTE}; the rest at list price",
            id="a learnt rate beside a list price",
        ),
    ],
)
def test_every_kind_of_price_in_a_bill_is_named(lines: list[dict[str, Any]], expected: str) -> None:
    """Estimates and own rates are both named; learnt rates have their days."""
    assert (
        price_note(document_with_bill(lines=[line(**fields) for fields in lines], price_kind=None))
        == expected
    )


def test_missing_parts_come_before_notes_that_a_channel_may_cut() -> None:
    """They follow the price. An estimate or a spot run's bound is not "bill incomplete"."""
    bill = {**estimated_document()["bill"], "missing": [ESTIMATE_NOTE, STORAGE]}
    notes = money_notes(document(bill={**bill, "spot_saved_usd": Decimal(2)}))
    assert notes[1:4] == [
        f"bill incomplete: {STORAGE}",
        ESTIMATE_NOTE,
        "spot saved about $2.00 compared with on demand",
    ]
    bound = {"basis": "upper_bound", "missing": [UPPER_BOUND]}
    provisional = document(bill=bound, audit={"settled": False})
    assert money_notes(provisional)[1:] == [BOUND, PROVISIONAL]


def pooled(runs: int, avoidable_usd: str | None) -> dict[str, Any]:
    """Returns the part of an audit that was judged with earlier runs of its family."""
    usd = None if avoidable_usd is None else Decimal(avoidable_usd)
    return {"audit": {"pool": {"runs": runs, "avoidable_usd": usd}}}


def test_a_short_run_shows_the_runs_that_it_was_judged_with() -> None:
    """The headline has its own dollars, this note the sum. Other runs have no such note."""
    start = "Short runs are judged together: this one with the last"
    expected = f"{start} 5 runs of its family, $1.84 avoidable in all 6."
    assert pool_note(document(**pooled(6, "1.8412"))) == expected
    about = {**estimated_document(), **pooled(6, "1.8412")}
    assert pool_note(about) == expected.replace("$1.84", "about $1.84")  # type: ignore[arg-type]
    assert pool_note(document(**pooled(2, None))) == f"{start} run of its family."
    assert pool_note(document()) is None


def test_reasons_that_no_reader_can_act_on_are_left_out() -> None:
    """Nobody can change too few runs; a missing permission can be granted."""
    few = {"rule": "duplicate-run", "code": "history_unread", "reason": "runs were not read"}
    short = {"rule": "gpu-starved", "code": "too_short", "reason": "14 active minutes"}
    denied = {"rule": "gpu-idle", "code": "metric_denied", "reason": "access was denied"}
    audit = document(unknown=[few, short, denied])
    assert [line for line in unchecked_lines(audit) if "metrics" not in line] == [
        "gpu-idle: access was denied"
    ]
