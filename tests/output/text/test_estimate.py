"""Estimated dollars in words: marked in every sentence that has any."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.text import plain, slack
from sageaudit.output.text.headline import headline, whole_cost
from sageaudit.output.text.idle_capacity import idle_sentence
from sageaudit.output.text.message import message_of
from sageaudit.output.text.money_notes import money_notes, price_note
from sageaudit.output.text.saving import counted_dollars, effect
from tests.fakes.documents import (
    GUESSED,
    document,
    estimated_document,
    finding,
    idle_document,
    line,
    type_finding,
)

BILL = estimated_document()["bill"]
STORAGE = "storage: no ML storage price for eu-west-3 (Training)"


def with_bill(**changes: Any) -> AuditDocument:
    """The estimated audit with parts of its bill changed."""
    return {**estimated_document(), "bill": {**BILL, **changes}}  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("changes", "whole"),
    [
        ({}, "about $1.39 (estimated rate)"),
        ({"missing": [GUESSED, STORAGE]}, "at least about $1.39 (estimated rate)"),
        (
            {"basis": "upper_bound", "missing": [GUESSED, "bound"]},
            "up to about $1.39 (estimated rate)",
        ),
        (
            {"basis": "upper_bound", "missing": [GUESSED, "bound", STORAGE]},
            "about $1.39 (estimated rate)",
        ),
        ({"basis": "estimated_from_times"}, "about $1.39 (estimated rate)"),
        ({"total_usd": Decimal("0.001")}, "less than $0.01 (estimated rate)"),
        ({"total_usd": None}, None),
        ({"missing": [STORAGE], "estimated": []}, "at least $1.39"),
    ],
)
def test_the_cost_says_that_it_is_an_estimate(changes: dict[str, Any], whole: str | None) -> None:
    """Beside how certain its seconds are."""
    assert whole_cost(with_bill(**changes)["bill"]) == whole


def test_the_headline_has_no_percentage_and_says_about() -> None:
    """Of what was avoidable too; all of it is all, whatever the rate."""
    audit = estimated_document()
    said = "about $0.96 of about $1.39 (estimated rate) was avoidable"
    assert headline(audit) == said
    assert headline({**audit, "avoidable_usd": BILL["total_usd"]}) == (
        "all of about $1.39 (estimated rate) was avoidable"
    )
    perhaps: AuditDocument = {**audit, "lost_up_to_usd": (audit["lost_usd"] or 0) + Decimal("0.3")}
    assert headline(perhaps) == f"{said}, and up to about $0.30 more was lost"
    unpriced = with_bill(total_usd=None)
    assert headline(unpriced) == "about $0.96 (estimated rate) was avoidable"


@pytest.mark.parametrize("channel", [slack.message, plain.message])
def test_a_message_marks_headline_phases_and_saving(channel: Any) -> None:
    """And says what is not known, within the notes that are not cut."""
    text = json.dumps(channel(estimated_document()), ensure_ascii=False)
    for said in (
        "about $0.96 of about $1.39 (estimated rate) was avoidable",
        "training 2 h 34 min about $1.18",
        "saves about $0.96 per run",
        "stimated rate of 2026-07-20",
        GUESSED,
    ):
        assert said in text, said
    assert "sells" not in text


def test_other_findings_of_a_message_are_marked_too() -> None:
    """Counted ones, and possible ones up to their upper end."""
    more = type_finding(rule="cheaper-type", id="SA306", saving_usd=Decimal("0.10"),
                        estimated=True)  # fmt: skip
    trial = type_finding(rule="spot-not-used", id="SA401", bucket="possible",
                         saving_usd=Decimal(0), saving_range_usd=[Decimal(0), Decimal(2)],
                         estimated=True)  # fmt: skip
    audit = estimated_document()
    made = message_of({**audit, "findings": [*audit["findings"], more, trial]})
    assert made.others == ("cheaper-type about $0.10",)
    assert any("spot-not-used up to about $2.00" in note for note in made.context)


@pytest.mark.parametrize(
    ("changes", "dollars", "said"),
    [
        ({}, "about $1.20 avoidable", "saves about $1.20 per run"),
        ({"bucket": "lost"}, "about $1.20 lost", "about $1.20 was paid for nothing"),
        ({"saving_usd": None, "saving_alone_usd": None}, "avoidable, dollars unknown", None),
        ({"estimated": False}, "$1.20 avoidable", "saves $1.20 per run"),
    ],
)
def test_a_finding_marks_its_dollars(
    changes: dict[str, Any], dollars: str, said: str | None
) -> None:
    """Unknown dollars are not "about unknown"."""
    usd = Decimal("1.2")
    whole = {"saving_usd": usd, "saving_alone_usd": usd, "saving_range_usd": None}
    one = finding(**(whole | {"estimated": True} | changes))
    assert (counted_dollars(one), effect(one)) == (dollars, said)


def test_audits_that_were_stored_before_the_mark_are_read_without_it() -> None:
    """They have no estimated rates."""
    audit = document()
    del audit["bill"]["estimated"]  # type: ignore[misc]
    for one in audit["findings"]:
        del one["estimated"]  # type: ignore[misc]
    assert headline(audit) == headline(document())
    assert message_of(audit) == message_of(document())


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("estimate",), "estimated rate of 2026-05-20"),
        (
            ("estimate", "list"),
            "estimated rate of 2026-05-20; on-demand list price of 2026-05-20, before discounts",
        ),
        (("estimate", "own"),
         "estimated rate of 2026-05-20; your own prices, as set in policy.toml"),
        (("own",), "your own prices, as set in policy.toml"),
        ((None,), "on-demand list price of 2026-05-20, before discounts"),
    ],
)  # fmt: skip
def test_every_kind_of_price_in_a_bill_is_named(kinds: tuple[str | None, ...], said: str) -> None:
    """An estimate hides no negotiated price, and the other way round."""
    lines = [line(price_kind=kind) for kind in kinds]
    assert price_note(with_bill(lines=lines, price_kind=None)) == said


def test_what_is_missing_comes_before_what_a_channel_may_cut() -> None:
    """Right after the price; the estimate is no "bill incomplete" of its own."""
    notes = money_notes(with_bill(missing=[GUESSED, STORAGE], spot_saved_usd=Decimal(2)))
    assert notes[1:4] == [
        f"bill incomplete: {STORAGE}",
        GUESSED,
        "spot saved about $2.00 compared with on demand",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"estimated": [GUESSED], "missing": [GUESSED]}, "at an estimated rate"),
        ({"notes": [f"its value on demand: {GUESSED}"]}, "at an estimated rate"),
        ({}, "at list price"),
    ],
)
def test_idle_capacity_says_by_which_rate_it_is_valued(changes: dict[str, Any], said: str) -> None:
    """Prepaid capacity too, whose bill has no estimated line."""
    audit = idle_document()
    valued = idle_sentence({**audit, "bill": {**audit["bill"], **changes}})  # type: ignore[typeddict-item]
    assert said in (valued or "")
