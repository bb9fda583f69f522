"""The phases of a run as one line of time, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, PhaseDocument
from sageaudit.domain.job.duration import duration
from sageaudit.output.html.figure import Column, drawing, figure, table
from sageaudit.output.html.markup import Child, Markup, tag
from sageaudit.output.text.estimate import about
from sageaudit.output.text.money import usd

_HEIGHT = 30
_SHOWN = 24
_COLOURS = 6
"""Classes p0 to p5 of the style sheet."""


def timeline(document: AuditDocument, *, short: bool) -> Markup | None:
    """The phases in order; None where none is known. `short` leaves out the table."""
    phases = document["phases"]
    whole = sum((phase["seconds"] or Decimal(0) for phase in phases), Decimal(0))
    if not phases or not whole:
        return None
    colours = _colours(phases)
    rects: list[Markup] = []
    at = Decimal(0)
    for phase in phases:
        seconds = phase["seconds"] or Decimal(0)
        rects += _rect(phase, at / whole, seconds / whole, colours)
        at += seconds
    said = ", ".join(f"{phase['name']} {duration(phase['seconds'])}" for phase in phases[:_SHOWN])
    svg = drawing(f"Phases in order: {said}", _HEIGHT, rects, class_="chart line")
    caption = f"Phases, {duration(whole)} in all"
    if short:
        return figure(caption, svg, tag("p", said, class_="note"))
    return figure(caption, svg, _table(document, colours))


def _colours(phases: Sequence[PhaseDocument]) -> dict[str, str]:
    names = dict.fromkeys(phase["name"] for phase in phases)
    return {name: f"p{number % _COLOURS}" for number, name in enumerate(names)}


def _rect(
    phase: PhaseDocument, start: Decimal, share: Decimal, colours: dict[str, str]
) -> list[Markup]:
    if not share:
        return []
    place = {"x": f"{float(start * 100):.2f}%", "width": f"{float(share * 100):.2f}%"}
    title = f"{phase['name']}: {duration(phase['seconds'])}"
    return [
        tag(
            "rect",
            tag("title", title),
            height=_HEIGHT,
            class_=_kind(phase, colours),
            **place,
        )
    ]


def _kind(phase: PhaseDocument, colours: dict[str, str]) -> str:
    """The classes of a phase's colour; paler where it is not billed."""
    return colours[phase["name"]] + ("" if phase["billed"] else " free")


def _table(document: AuditDocument, colours: dict[str, str]) -> Markup:
    phases = document["phases"]
    rows: list[tuple[Child, ...]] = [
        (
            (tag("i", class_=_kind(phase, colours)), phase["name"]),
            duration(phase["seconds"]),
            _cost(document, phase),
        )
        for phase in phases[:_SHOWN]
    ]
    if len(phases) > _SHOWN:
        rows.append((f"+{len(phases) - _SHOWN} more", "", ""))
    columns = (Column("Phase"), Column("Time", number=True), Column("Cost", number=True))
    return table(columns, rows, "Phases")


def _cost(document: AuditDocument, phase: PhaseDocument) -> str:
    if not phase["billed"]:
        return "not billed"
    if document["bill"]["basis"] == "prepaid":
        return "prepaid"
    estimated = bool(document["bill"]["estimated"]) and bool(phase["usd"])
    return about(usd(phase["usd"]), estimated=estimated)
