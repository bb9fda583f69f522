"""The findings of an audit on a page, each with its reason, its fix in every dialect, its facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.html.markup import Markup, data, join, tag
from sageaudit.output.text.finding import FindingParts, findings_of
from sageaudit.output.text.fix_code import DIALECTS, fix_text
from sageaudit.output.text.untrusted import middle
from sageaudit.output.text.words import assignment, before

_FACT = 240
_SHORT_FINDINGS = 6
"""Findings of one job in an account's report; the job's own report has all."""
_SHAPES: Mapping[str, str] = {
    Severity.HIGH: "M6 1 11.5 11H.5Z",
    Severity.MEDIUM: "M6 .5 11.5 6 6 11.5.5 6Z",
    Severity.LOW: "M2 2H10V10H2Z",
    Severity.INFO: "M6 1A5 5 0 1 1 6 11A5 5 0 1 1 6 1Z",
    "sun": "M6 3.2A2.8 2.8 0 1 1 6 8.8A2.8 2.8 0 1 1 6 3.2ZM5.5 0H6.5V2H5.5ZM5.5 10H6.5V12H5.5Z"
    "M0 5.5H2V6.5H0ZM10 5.5H12V6.5H10ZM1.4 2.1 2.1 1.4 3.5 2.8 2.8 3.5ZM9.9 1.4 10.6 2.1 9.2 3.5"
    " 8.5 2.8ZM1.4 9.9 2.1 10.6 3.5 9.2 2.8 8.5ZM8.5 9.2 9.9 10.6 10.6 9.9 9.2 8.5Z",
    "moon": "M10.8 8A5.2 5.2 0 1 1 5 1A4.2 4.2 0 0 0 10.8 8Z",
}
"""How bad a finding is: a word, a shape and a colour, so that none of them is needed."""


def shapes() -> Markup:
    """The shapes of severities and of the themes, drawn once for the whole page."""
    symbols = (
        tag("symbol", tag("path", d=path), id=f"s-{name}", viewBox="0 0 12 12")
        for name, path in _SHAPES.items()
    )
    return tag("svg", symbols, width=0, height=0, aria_hidden="true", class_="off")


def findings(document: AuditDocument, *, short: bool) -> Markup | None:
    """All findings, those that count first. `short`: the first, without their facts."""
    found, repeated = findings_of(document)
    shown = found[:_SHORT_FINDINGS] if short else found
    rest = f"+{len(found) - len(shown)} more, in the report of this job alone"
    notes = (rest if len(found) > len(shown) else None, repeated)
    parts = [
        *(_finding(one, document["job"]["kind"], short=short) for one in shown),
        *(tag("p", words, class_="note") for words in notes if words),
    ]
    return join(parts) if parts else None


def _finding(finding: FindingParts, kind: str, *, short: bool) -> Markup:
    title = tag(
        "h4" if short else "h3",
        _badge(finding.severity),
        tag("span", finding.rule, class_="rule"),
        tag("span", finding.dollars or "", class_="usd"),
    )
    card = tag("span", f"({finding.id}, {finding.confidence})", class_="dim")
    return tag(
        "article",
        title,
        tag("p", finding.summary, " ", card),
        tag("p", finding.set_aside, class_="note")
        if finding.set_aside
        else (_fixes(finding, kind), _caveat(finding), None if short else _facts(finding)),
        class_="finding aside" if finding.set_aside else "finding",
    )


def shape(name: str) -> Markup:
    """One of the shapes, as large as a letter."""
    return tag("svg", tag("use", href=f"#s-{name}"), width=12, height=12, aria_hidden="true")


def _badge(severity: str) -> Markup:
    """`▲ high`."""
    known = Severity(severity).value
    return tag("span", shape(known), known, class_=f"sev {known}")


def _caveat(finding: FindingParts) -> Markup | None:
    if not finding.caveat:
        return None
    return tag("p", tag("strong", "Caveat: "), finding.caveat, class_="caution")


def _fixes(finding: FindingParts, kind: str) -> Iterator[Markup]:
    """The best way; the others are folded away."""
    ways = [_fix(kind, title, way) for title, way in finding.ways]
    yield from ways[:1]
    if others := ways[1:]:
        word = "Another way" if len(others) == 1 else f"{len(others)} other ways"
        yield tag("details", tag("summary", word), others, class_="data ways")


def _fix(kind: str, title: str, way: Sequence[FixDocument]) -> Markup:
    """The parameters in plain words, then the code; the script shows one dialect at a time."""
    changes = (
        tag("li", tag("code", assignment(fix)), " ", tag("span", before(fix), class_="dim"))
        for fix in way
    )
    heading = tag("p", tag("strong", title))
    return tag(
        "div", heading, *((tag("ul", changes), codes(kind, way)) if way else ()), class_="fix"
    )


def codes(kind: str, way: Sequence[FixDocument]) -> Markup:
    """The parameters to paste, in each dialect."""
    return join(
        tag("pre", tag("b", one), tag("code", _lines(fix_text(kind, way, one))), data_d=one)
        for one in DIALECTS
    )


def _lines(code: str) -> Markup:
    """Code keeps its lines and indents; what is in a line is escaped as any text."""
    return Markup("\n".join(join([line]) for line in code.split("\n")))


def _facts(finding: FindingParts) -> Markup | None:
    if not finding.facts:
        return None
    rows = ((name, middle(fact, _FACT)) for name, fact in finding.facts)
    return data(("Fact", "Value"), rows, finding.rule)
