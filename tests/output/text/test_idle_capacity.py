from decimal import Decimal
from typing import Any, cast

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.text.amounts import idle_sentence
from tests.fakes.documents import document, finding
from tests.fakes.sample_documents import idle_document


def sentence(bill: dict[str, Any] | None = None, **figure: Any) -> str | None:
    """Returns the sentence about eight idle hosts, with changes of the amounts or the bill."""
    whole = idle_document()
    changed = {**cast("dict[str, Any]", whole["idle_capacity"]), **figure}
    return idle_sentence(
        cast(
            "AuditDocument",
            {**whole, "idle_capacity": changed, "bill": {**whole["bill"], **(bill or {})}},
        )
    )


def test_the_sentence_has_hours_dollars_and_what_to_look_at() -> None:
    """It also says that they are not a saving."""
    assert sentence() == (
        "of the 1,536 GPU-hours paid for, 1,024 (67%) were not used, worth about $8,100 at list "
        "price. No change is certain to save this money. Look at the communication between hosts "
        "(all hosts were equally busy). A profile of the run shows more."
    )


@pytest.mark.parametrize(
    ("bill", "figure", "expected"),
    [
        ({"price_kind": "own"}, {}, "at your own prices. No change"),
        ({"basis": "prepaid"}, {}, "about $8,100 at list price. The capacity is prepaid"),
        ({"basis": "upper_bound"}, {}, "up to 1,024 (67%) were not used"),
        (
            {},
            {"list_usd": None, "counted_usd": None},
            "not used; their cost is unknown. Look",
        ),
        ({}, {"likely_causes": ["profile"]}, "save this money. A profile of the run shows why."),
        (
            {},
            {"likely_causes": ["data_loader", "batch_size"]},
            "the GPU waited), then a larger batch",
        ),
        ({"estimated": ["a guess"]}, {}, "at an estimated rate"),
        ({"notes": ["its value on demand: a guess"]}, {}, "at an estimated rate"),
        ({}, {"unit": "vcpu_hours"}, "1,536 vCPU-hours paid for, 1,024 (67%)"),
    ],
)
def test_the_sentence_depends_on_prices_basis_and_causes(
    bill: dict[str, Any], figure: dict[str, Any], expected: str
) -> None:
    """Each changes a few words."""
    assert expected in (sentence(bill, **figure) or "")


@pytest.mark.parametrize(
    ("figure", "is_shown"),
    [
        pytest.param(
            {"idle": Decimal(154), "worked": Decimal(1382)}, False, id="a tenth of the GPU hours"
        ),
        pytest.param({"idle": Decimal(307)}, False, id="just under a fifth of the GPU hours"),
        pytest.param({"idle": Decimal(308)}, True, id="a fifth of the GPU hours"),
        pytest.param(
            {"unit": "vcpu_hours", "idle": Decimal(768)}, False, id="half of the vCPU hours"
        ),
        pytest.param(
            {"unit": "vcpu_hours", "idle": Decimal(769)},
            True,
            id="more than half of the vCPU hours",
        ),
        pytest.param({"list_usd": Decimal("9.99")}, False, id="under $10"),
        pytest.param({"list_usd": Decimal(10)}, True, id="$10"),
        pytest.param(
            {"list_usd": Decimal(900), "counted_usd": Decimal(891)},
            False,
            id="$9 more than what is counted",
        ),
        pytest.param(
            {"paid": Decimal(10), "idle": Decimal("9.9"), "list_usd": None},
            False,
            id="under ten GPU hours without a price",
        ),
        pytest.param(
            {"paid": Decimal(11), "idle": Decimal(10), "list_usd": None},
            True,
            id="ten GPU hours without a price",
        ),
        pytest.param(
            {"unit": "vcpu_hours", "idle": Decimal(199), "paid": Decimal(200), "list_usd": None},
            False,
            id="under 200 vCPU hours without a price",
        ),
        pytest.param(
            {"paid": Decimal(0), "idle": Decimal(0), "list_usd": Decimal(0)},
            False,
            id="nothing at all",
        ),
    ],
)
def test_little_idle_capacity_is_not_shown(figure: dict[str, Any], *, is_shown: bool) -> None:
    """The minimum is $10 that is not counted, and a fifth of the GPUs or half of the vCPUs."""
    assert (sentence(**figure) is not None) is is_shown
    assert idle_sentence(document(idle_capacity=None)) is None


def test_a_counted_fix_changes_the_sentence() -> None:
    """The idle time may include other time than the fix saves."""
    whole = cast("AuditDocument", {**idle_document(), "findings": [finding("gpu-underused")]})
    assert "None of it is counted above" in (idle_sentence(whole) or "")


def test_the_counted_part_is_at_most_the_totals() -> None:
    """A fix that adds a volume saves less than the idle hours that it avoids."""
    figure = {
        **cast("dict[str, Any]", idle_document()["idle_capacity"]),
        "counted_usd": Decimal(90),
    }
    whole = {**idle_document(), "idle_capacity": figure, "avoidable_usd": Decimal("89.5")}
    text = idle_sentence(cast("AuditDocument", whole)) or ""
    assert "Of this, about $90 is counted above; the rest is not a certain saving." in text


def test_nearly_all_hours_do_not_show_one_number_twice() -> None:
    """It is not `145 of 145`."""
    text = sentence(paid=Decimal("145.4"), idle=Decimal("145.1"))
    assert (text or "").startswith("of the 145 GPU-hours paid for, nearly all (>99%)")
