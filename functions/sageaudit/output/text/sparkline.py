"""Draws a series from a finding's evidence as one line of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from sageaudit.output.text.finding import SERIES
from sageaudit.output.text.words import number

_BLOCKS, _GAP = "▁▂▃▄▅▆▇█", "·"
_PLAIN_BLOCKS, _PLAIN_GAP = "_.:-=+*#", "?"
"""For outputs that take ASCII only."""
_WHOLE_PERCENT = Decimal(100)
_MINUTE_S = 60


def sparklines(
    evidence: Mapping[str, object], width: int | None = None, *, ascii_only: bool = False
) -> Iterator[str]:
    """`GPUUtilization  ▁▁▇█▇·▂  0 to 93%, 5 min each`: one line for each metric.

    When the line is wider than `width`, the marks get a line of their own: cutting would lose the
    end of the run, which often matters most.
    """
    drawn = evidence.get(SERIES)
    for row in drawn if isinstance(drawn, list) else []:
        values = row["values"]
        known = [value for value in values if value is not None]
        if known:
            unit = "%" if row["unit"] == "percent" else ""
            top = _WHOLE_PERCENT if unit else max(known)
            low = Decimal(0) if unit else min(known)
            marks = "".join(_mark(value, low, top, ascii_only=ascii_only) for value in values)
            span = " to ".join(dict.fromkeys(number(end(known), 1) for end in (min, max))) + unit
            legend = f"{span}, {_width(row['period_s'])} each"
            line = f"{row['metric']}  {marks}  {legend}"
            yield from (
                [line]
                if width is None or len(line) <= width
                else [f"{row['metric']}  {legend}", marks]
            )


def marks(values: Sequence[Decimal | None], *, ascii_only: bool = False) -> str:
    """One mark for each amount, from 0 to the largest."""
    top = max((value for value in values if value is not None), default=Decimal(0))
    return "".join(_mark(value, Decimal(0), top, ascii_only=ascii_only) for value in values)


def _mark(value: Decimal | None, low: Decimal, top: Decimal, *, ascii_only: bool) -> str:
    blocks, gap = (_PLAIN_BLOCKS, _PLAIN_GAP) if ascii_only else (_BLOCKS, _GAP)
    if value is None:
        return gap
    share = (value - low) / (top - low) if top > low else Decimal(0)
    return blocks[min(int(share * len(blocks)), len(blocks) - 1)]


def _width(period_s: int) -> str:
    minutes = Decimal(period_s) / _MINUTE_S
    return f"{number(minutes, 1)} min" if minutes >= 1 else f"{period_s} s"
