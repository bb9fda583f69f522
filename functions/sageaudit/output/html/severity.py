"""How bad a finding is: as a word, a shape and a colour, so that none of them is needed."""

from __future__ import annotations

from sageaudit.domain.bill.finding import Severity
from sageaudit.output.html.markup import Markup, tag

_SHAPES = {
    Severity.HIGH: "M6 1 11.5 11H.5Z",
    Severity.MEDIUM: "M6 .5 11.5 6 6 11.5.5 6Z",
    Severity.LOW: "M2 2H10V10H2Z",
    Severity.INFO: "M6 1A5 5 0 1 1 6 11A5 5 0 1 1 6 1Z",
}


def shapes() -> Markup:
    """The shapes, drawn once for the whole page."""
    symbols = (
        tag("symbol", tag("path", d=path), id=f"s-{severity.value}", viewBox="0 0 12 12")
        for severity, path in _SHAPES.items()
    )
    return tag("svg", symbols, width=0, height=0, aria_hidden="true", class_="off")


def badge(severity: str) -> Markup:
    """`▲ high`."""
    known = Severity(severity).value
    shape = tag("svg", tag("use", href=f"#s-{known}"), width=12, height=12, aria_hidden="true")
    return tag("span", shape, known, class_=f"sev {known}")
