"""The page: its frame, its sections, and the findings of an audit; equal data gives equal bytes.

The frame is head, policy, toolbar, main part and footer. The page loads and sends nothing: its
policy allows its one style sheet and its one script alone. Without the script everything is there
too: all rows, and every fix in every dialect.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import resources

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.html.markup import (
    Child,
    Markup,
    data_table,
    join,
    render_pieces,
    tag,
    tag_pieces,
)
from sageaudit.output.text.finding import FindingParts, finding_parts
from sageaudit.output.text.fix_code import DIALECTS, fix_text
from sageaudit.output.text.untrusted import cut_middle
from sageaudit.output.text.words import assignment_line, old_value_text

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
_THEMES = (("moon", "Dark"), ("sun", "Light"))
"""What the button changes to; the style sheet shows the one that is not there yet."""


def page(title: str, main: Child, *, generated_at: datetime, version: str) -> Iterator[str]:
    """The text of the page in pieces, to be written as UTF-8."""
    yield "<!doctype html>\n"
    yield from render_pieces(
        tag_pieces("html", _head(title), _body(main, generated_at, version), lang="en")
    )
    yield "\n"


def _head(title: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", _asset("page.css")),
    )


def _body(main: Child, generated_at: datetime, version: str) -> Child:
    skip = tag("a", "Skip to the report", href="#main", class_="skip")
    themes = (tag("span", _shape(to), f" {name}", class_=to) for to, name in _THEMES)
    theme = tag("button", themes, type="button", id="theme", hidden=True)
    bar = tag("header", tag("span", "sageaudit", class_="brand"), theme, class_="top")
    made = f"Written by sageaudit {version} on {generated_at:%Y-%m-%d %H:%M} UTC. "
    what = (
        "Avoidable dollars are measured or derived; of a range, the low end counts. Lost dollars "
        "were paid for a run without a result. Possible savings are worth a trial and in no "
        "total. Idle capacity was paid for and not used; it is no saving and in no total."
    )
    footer = tag("footer", tag("p", what), tag("p", made))
    script = tag("script", _asset("page.js"))
    whole = tag_pieces("main", main, id="main", tabindex=-1)
    return tag_pieces("body", skip, _shapes(), bar, whole, footer, script)


def _policy() -> str:
    """Nothing is loaded or sent; the style and the script are known by their hashes."""
    return (
        f"default-src 'none'; style-src '{_hash('page.css')}'; script-src '{_hash('page.js')}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> Markup:
    """The style sheet or the script, without the line breaks' indents."""
    lines = resources.files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    return Markup("\n".join(filter(None, map(str.strip, lines))))


def _hash(name: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()}"


def _shapes() -> Markup:
    """The shapes of severities and of the themes, drawn once for the whole page."""
    symbols = (
        tag("symbol", tag("path", d=path), id=f"s-{name}", viewBox="0 0 12 12")
        for name, path in _SHAPES.items()
    )
    return tag("svg", symbols, width=0, height=0, aria_hidden="true", class_="off")


def _shape(name: str) -> Markup:
    """One of the shapes, as large as a letter."""
    return tag("svg", tag("use", href=f"#s-{name}"), width=12, height=12, aria_hidden="true")


def section(title: str, *parts: Child, id_: str | None = None, note: Child = None) -> Markup | None:
    """A part of the page under a heading; None where there is nothing to show."""
    shown = join(parts)
    return join(section_pieces(title, shown, id_=id_, note=note)) if shown else None


def section_pieces(
    title: str, *parts: Child, id_: str | None = None, note: Child = None
) -> tuple[Child, ...]:
    """The same in pieces, of what is something to show."""
    below = tag("p", note, class_="note") if note else None
    return tag_pieces("section", tag("h2", title), below, *parts, id=id_)


def tiles(*figures: tuple[str, str, str, str]) -> Markup:
    """The figures of the first screen, each (class, title, figure, note); the first is large."""
    return tag(
        "dl",
        (
            tag(
                "div",
                tag("dt", title),
                tag("dd", figure, class_="amount"),
                tag("dd", note, class_="dim") if note else None,
                class_=kind,
            )
            for kind, title, figure, note in figures
        ),
        class_="tiles",
    )


def findings(document: AuditDocument, *, short: bool) -> Markup | None:
    """All findings, those that count first. `short`: the first, without their facts."""
    found, repeated = finding_parts(document)
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
        tag("p", finding.not_counted_because, class_="note")
        if finding.not_counted_because
        else (_fixes(finding, kind), _caveat(finding), None if short else _facts(finding)),
        class_="finding aside" if finding.not_counted_because else "finding",
    )


def _badge(severity: str) -> Markup:
    """`▲ high`."""
    known = Severity(severity).value
    return tag("span", _shape(known), known, class_=f"sev {known}")


def _caveat(finding: FindingParts) -> Markup | None:
    if not finding.caveat:
        return None
    return tag("p", tag("strong", "Caveat: "), finding.caveat, class_="caution")


def _fixes(finding: FindingParts, kind: str) -> Iterator[Markup]:
    """The best way; the others are folded away."""
    ways = [_fix(kind, title, way) for title, way in finding.alternatives]
    yield from ways[:1]
    if others := ways[1:]:
        word = "Another way" if len(others) == 1 else f"{len(others)} other ways"
        yield tag("details", tag("summary", word), others, class_="data ways")


def _fix(kind: str, title: str, way: Sequence[FixDocument]) -> Markup:
    """The parameters in plain words, then the code; the script shows one dialect at a time."""
    changes = (
        tag(
            "li",
            tag("code", assignment_line(fix)),
            " ",
            tag("span", old_value_text(fix), class_="dim"),
        )
        for fix in way
    )
    heading = tag("p", tag("strong", title))
    return tag(
        "div", heading, *((tag("ul", changes), code_blocks(kind, way)) if way else ()), class_="fix"
    )


def code_blocks(kind: str, way: Sequence[FixDocument]) -> Markup:
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
    rows = ((name, cut_middle(fact, _FACT)) for name, fact in finding.facts)
    return data_table(("Fact", "Value"), rows, finding.rule)
