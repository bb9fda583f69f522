"""What a view says of a figure, read from a text for people or from fields for programs."""

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

CENT = Decimal("0.01")
MONEY = r"(?:[+-]?<?\$[\d,]+\.\d\d)"
FIGURE = rf"(?:up to )?(?:about )?{MONEY}(?: to {MONEY})?(?: or more)?"
BOUNDS = frozenset({"spend", "spend_before", "change"})
"""Figures that may be a bound. "Up to" of another one is the end of a range that begins at 0."""
ROUGH = frozenset({"possible", "idle"})
"""Figures of two digits, which rest on no estimate of a price."""


class Cell(NamedTuple):
    """What a view says of a figure: dollars to the cent, from `low` to `high`, and a word."""

    low: Decimal | None
    high: Decimal | None
    word: str


NOT_KNOWN = Cell(None, None, "unknown")


def read(name: str, text: str) -> Cell:
    """The cell of a text for people."""
    found = [Decimal(re.sub(r"[<$,+]", "", usd)) for usd in re.findall(MONEY, text)]
    if not found:
        assert text in {"unknown", "not judged", "-"}, text
        return NOT_KNOWN
    bound = name in BOUNDS
    about = "about" in text and not _of_trial(name, text)
    word = "about" if about else "at_least" if "or more" in text else "exact"
    if bound:
        word = "up_to" if word == "exact" and "up to" in text else word
        return Cell(found[0], found[0], word)
    low = Decimal("0.00") if "up to" in text else found[0]
    return Cell(low, found[-1], word)


def _of_trial(name: str, text: str) -> bool:
    return name in ROUGH or (name == "rule" and "0.90" in text)


def cell(row: Mapping[str, Any], name: str, *, usd: str, most: str = "", word: str = "") -> Cell:
    """The cell of fields for programs; without a word, counts beside the amount say it."""
    low, high = (_cents(row[field]) for field in (usd, most or usd))
    if word:
        return Cell(low, low, str(row[word]))
    if low is None:
        return NOT_KNOWN
    part = usd.removesuffix("_usd")
    partly = row.get(f"{part}_unknown") or row.get(f"{part}_incomplete") in {True, "true"}
    estimated = row.get("estimated") and high and name not in ROUGH
    return Cell(low, high, "about" if estimated else "at_least" if partly else "exact")


def _cents(amount: Any) -> Decimal | None:
    if amount in {None, ""}:
        return None
    usd = Decimal(str(amount))
    return CENT if 0 < usd < CENT else usd.quantize(CENT, ROUND_HALF_UP)


Cells = Mapping[str, Cell]
SUMS = {
    "spend": {"usd": "total_usd", "word": "spend_qualifier"},
    "avoidable": {"usd": "avoidable_usd"},
    "lost": {"usd": "lost_usd", "most": "lost_up_to_usd"},
    "possible": {"usd": "possible_usd"},
    "idle": {"usd": "idle_usd"},
}
TEXTS = {
    "spend": "total_usd",
    "avoidable": "avoidable_usd",
    "lost": "lost_usd",
    "waste": "waste_usd",
    "possible": "possible_usd",
    "idle": "idle_usd",
}


def programs(row: Mapping[str, Any], fields: Mapping[str, Mapping[str, str]] = SUMS) -> Cells:
    """The cells of a row for programs."""
    return {name: cell(row, name, **where) for name, where in fields.items()}


def of_rule(bucket: str, row: Mapping[str, Any], prefix: str = "") -> Cells:
    """The cell of a rule's dollars, whose fields begin with `prefix`, else with its bucket."""
    if bucket == "possible":
        row = {**row, "estimated": False}
    name = prefix or bucket
    return {"rule": cell(row, "rule", usd=f"{name}_usd", most=f"{name}_up_to_usd")}


def people(row: Mapping[str, str], fields: Mapping[str, str] = TEXTS) -> Cells:
    """The cells of a row for people."""
    return {name: read(name, row[field]) for name, field in fields.items()}
