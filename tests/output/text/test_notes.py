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


def billed(**changes: Any) -> AuditDocument:
    """An audit with parts of its bill changed."""
    return document(bill=changes)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(
            [{"price_kind": "estimate"}], "estimated rate of 2026-05-20", id="an estimate"
        ),
        pytest.param(
            [{"price_kind": "estimate"}, {}],
            "estimated rate of 2026-05-20; on-demand list price of 2026-05-20, before discounts",
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
def test_every_kind_of_price_in_a_bill_is_named(lines: list[dict[str, Any]], said: str) -> None:
    """An estimate hides no negotiated price, and the other way round; learnt ones have days."""
    assert price_note(billed(lines=[line(**one) for one in lines], price_kind=None)) == said


def test_what_is_missing_comes_before_what_a_channel_may_cut() -> None:
    """Right after the price; the estimate is no "bill incomplete", a spot run's bound its basis."""
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
    """The head of an audit that was judged with earlier runs of its family."""
    usd = None if avoidable_usd is None else Decimal(avoidable_usd)
    return {"audit": {"pool": {"runs": runs, "avoidable_usd": usd}}}


def test_a_short_run_says_with_which_it_was_judged_and_what_they_all_count() -> None:
    """The headline has its own dollars, this note the sum; other runs have no such note."""
    start = "Short runs are judged together: this one with the last"
    said = f"{start} 5 runs of its family, $1.84 avoidable in all 6."
    assert pool_note(document(**pooled(6, "1.8412"))) == said
    about = {**estimated_document(), **pooled(6, "1.8412")}
    assert pool_note(about) == said.replace("$1.84", "about $1.84")  # type: ignore[arg-type]
    assert pool_note(document(**pooled(2, None))) == f"{start} run of its family."
    assert pool_note(document()) is None


def test_what_no_reader_can_act_on_stands_under_not_checked_in_no_view() -> None:
    """Too few runs are nobody's fault; a permission that is missing can be given."""
    few = {"rule": "duplicate-run", "code": "history_unread", "reason": "runs were not read"}
    short = {"rule": "gpu-starved", "code": "too_short", "reason": "14 active minutes"}
    denied = {"rule": "gpu-idle", "code": "metric_denied", "reason": "access was denied"}
    audit = document(unknown=[few, short, denied])
    assert [line for line in unchecked_lines(audit) if "metrics" not in line] == [
        "gpu-idle: access was denied"
    ]
