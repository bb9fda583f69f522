"""Tables with a bar in each row: a waterfall, and sums by name. The table is the data itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.output.html.figure import scrolling
from sageaudit.output.html.markup import Child, Markup, join, tag
from sageaudit.output.text.money import cents, share

_HUNDRED = 100
_NOTHING = "$0.00"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar in USD, and the class that colours it."""

    usd: Decimal
    kind: str


@dataclass(frozen=True, slots=True)
class BarRow:
    """A name, its bar from `start_usd` on, and its other cells."""

    name: Child
    pieces: Sequence[Piece]
    cells: Sequence[Child]
    start_usd: Decimal = Decimal(0)
    strong: bool = False


def bar_table(label: str, titles: Sequence[str], rows: Sequence[BarRow]) -> Markup:
    """`titles`: of the name's column, then of the cells; the bar stands between them."""
    most = max((_end(row) for row in rows), default=Decimal(0))
    first, *others = titles
    heads = [
        tag("th", first, scope="col"),
        tag("td", class_="bar"),
        *(tag("th", title, scope="col", class_="n") for title in others),
    ]
    body = (_row(row, most) for row in rows)
    whole = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), class_="bars")
    return scrolling(label, whole)


def waterfall(
    label: str, whole: tuple[str, Decimal], steps: Iterable[tuple[Child, Decimal, str]], rest: str
) -> Markup:
    """From the whole down to what was needed: each step is (name, dollars, class)."""
    name, total = whole
    rows = [BarRow(name, (Piece(total, "spent"),), (cents(total), ""), strong=True)]
    left = total
    for step, amount, kind in steps:
        left -= amount
        low, size = (left, amount) if amount >= 0 else (left + amount, -amount)
        shown = _less(amount)
        part = share(amount, total) if total and amount > 0 else ""
        rows.append(BarRow(step, (Piece(size, kind),), (shown, part), start_usd=low))
    part = share(left, total) if total and left >= 0 else ""
    rows.append(BarRow(rest, (Piece(left, "needed"),), (cents(left), part), strong=True))
    return bar_table(label, ("Step", "USD", "of the cost"), rows)


def _less(amount: Decimal) -> str:
    """What a step takes away; a fix that costs something adds it back."""
    shown = cents(abs(amount))
    return shown if amount < 0 or shown.startswith("<") else f"−{shown}"


def _end(row: BarRow) -> Decimal:
    return row.start_usd + sum((piece.usd for piece in row.pieces), Decimal(0))


def _row(row: BarRow, most: Decimal) -> Markup:
    cells = (tag("td", cell, class_="n z" if cell == _NOTHING else "n") for cell in row.cells)
    return tag(
        "tr",
        tag("th", row.name, scope="row"),
        tag("td", _bar(row, most), class_="bar"),
        join(cells),
        class_="strong" if row.strong else None,
    )


def _bar(row: BarRow, most: Decimal) -> Markup | None:
    if most <= 0:
        return None
    at, rects = row.start_usd, []
    for piece in row.pieces:
        if piece.usd > 0:
            rects.append(
                tag(
                    "rect",
                    x=f"{percent(at, most)}%",
                    width=f"{percent(piece.usd, most)}%",
                    height=14,
                    class_=piece.kind,
                )
            )
            at += piece.usd
    return tag("svg", rects, width="100%", height=14, aria_hidden="true") if rects else None


def percent(part: Decimal, whole: Decimal) -> str:
    """A share of the width to a hundredth of a percent; the least part is still seen."""
    share_of = round(float(part / whole) * _HUNDRED, 2)
    return f"{max(share_of, 0):g}"
