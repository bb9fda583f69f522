from decimal import Decimal
from typing import Any, cast

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.text.amounts import idle_sentence
from tests.fakes.documents import document, finding
from tests.fakes.sample_documents import idle_document


def sentence(bill: dict[str, Any] | None = None, **figure: Any) -> str | None:
    """Of eight idle hosts, with another figure or bill; their only finding has no dollars."""
    whole = idle_document()
    changed = {**cast("dict[str, Any]", whole["idle_capacity"]), **figure}
    return idle_sentence(
        cast(
            "AuditDocument",
            {**whole, "idle_capacity": changed, "bill": {**whole["bill"], **(bill or {})}},
        )
    )


def test_it_says_hours_dollars_and_what_to_look_at() -> None:
    """And that they are no saving."""
    assert sentence() == (
        "1,024 of 1,536 GPU-hours (67%) were paid for but not used, worth about $8,100 at list "
        "price. This is not a saving: no change is certain to save it. Look at the communication "
        "between hosts (all were used alike); a profile shows more."
    )


@pytest.mark.parametrize(
    ("bill", "figure", "shown"),
    [
        ({"price_kind": "own"}, {}, "at your own prices. This"),
        ({"basis": "prepaid"}, {}, "about $8,100 at list price. The capacity is prepaid"),
        ({"basis": "upper_bound"}, {}, "up to 1,024 of 1,536 GPU-hours"),
        (
            {},
            {"list_usd": None, "counted_usd": None},
            "not used; their cost is unknown. Look",
        ),
        ({}, {"likely_causes": ["profile"]}, "save it. A profile shows why."),
        (
            {},
            {"likely_causes": ["data_loader", "batch_size"]},
            "the GPU waited), then a larger batch",
        ),
        ({"estimated": ["a guess"]}, {}, "at an estimated rate"),
        ({"notes": ["its value on demand: a guess"]}, {}, "at an estimated rate"),
        ({}, {"unit": "vcpu_hours"}, "1,536 vCPU-hours (67%)"),
    ],
)
def test_the_words_follow_the_figure(
    bill: dict[str, Any], figure: dict[str, Any], shown: str
) -> None:
    """Prices, basis and causes each change a few words."""
    assert shown in (sentence(bill, **figure) or "")


@pytest.mark.parametrize(
    ("figure", "worth"),
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
def test_little_or_healthy_idleness_is_not_shown(figure: dict[str, Any], *, worth: bool) -> None:
    """Under $10 beside what is counted, or a fifth of the GPUs, or half of the vCPUs."""
    assert (sentence(**figure) is not None) is worth
    assert idle_sentence(document(idle_capacity=None)) is None


def test_where_a_change_saves_dollars_it_is_not_called_uncertain() -> None:
    """What is counted above is not all idle time."""
    whole = cast("AuditDocument", {**idle_document(), "findings": [finding("gpu-underused")]})
    assert "None of it is counted above" in (idle_sentence(whole) or "")


def test_what_is_counted_is_never_more_than_the_totals_have() -> None:
    """A fix that adds a volume saves less than the idle hours that it takes away."""
    figure = {
        **cast("dict[str, Any]", idle_document()["idle_capacity"]),
        "counted_usd": Decimal(90),
    }
    whole = {**idle_document(), "idle_capacity": figure, "avoidable_usd": Decimal("89.5")}
    said = idle_sentence(cast("AuditDocument", whole)) or ""
    assert "Of this, about $90 is counted above; the rest is not a certain saving." in said


def test_nearly_all_is_not_said_with_one_figure_twice() -> None:
    """Not `145 of 145`."""
    said = sentence(paid=Decimal("145.4"), idle=Decimal("145.1"))
    assert (said or "").startswith("nearly all of 145 GPU-hours (>99%)")
