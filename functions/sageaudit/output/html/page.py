"""The frame of a page, its sections, and the findings of an audit. Equal data gives equal bytes.

The page loads and sends nothing: its content security policy allows only its own style sheet and
script. Without the script the page still shows all rows and every fix.
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
from sageaudit.output.html.contents import RuleExplanation
from sageaudit.output.html.legend import rule_details
from sageaudit.output.html.markup import (
    Child,
    Markup,
    data_table,
    join,
    render_pieces,
    tag,
    tag_pieces,
)
from sageaudit.output.text.finding import FindingParts, finding_parts, step_parts
from sageaudit.output.text.fix_code import CODE_WIDTH, DIALECTS, fix_text
from sageaudit.output.text.untrusted import cut_middle
from sageaudit.output.text.words import assignment_line, old_value_text

_MAX_FACT_LENGTH = 240
_MAX_SHORT_FINDINGS = 6
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
"""SVG paths of the icons."""
_THEMES = (("moon", "Dark"), ("sun", "Light"))
"""Each theme's icon and label. The style sheet shows only those of the theme that is not in use."""


def page(title: str, main: Child, *, generated_at: datetime, version: str) -> Iterator[str]:
    """Yields the text of the page, to be written as UTF-8."""
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
    skip_link = tag("a", "Skip to the report", href="#main", class_="skip")
    themes = (tag("span", _shape(icon), f" {name}", class_=icon) for icon, name in _THEMES)
    theme_button = tag("button", themes, type="button", id="theme", hidden=True)
    header = tag("header", tag("span", "sageaudit", class_="brand"), theme_button, class_="top")
    origin_text = f"Written by sageaudit {version} on {generated_at:%Y-%m-%d %H:%M} UTC. "
    footer = tag("footer", tag("p", origin_text))
    script = tag("script", _asset("page.js"))
    main_part = tag_pieces("main", main, id="main", tabindex=-1)
    return tag_pieces("body", skip_link, _shapes(), header, main_part, footer, script)


def _policy() -> str:
    return (
        f"default-src 'none'; style-src '{_hash('page.css')}'; script-src '{_hash('page.js')}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> Markup:
    lines = resources.files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    return Markup("\n".join(filter(None, map(str.strip, lines))))


def _hash(name: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()}"


def _shapes() -> Markup:
    symbols = (
        tag("symbol", tag("path", d=path), id=f"s-{name}", viewBox="0 0 12 12")
        for name, path in _SHAPES.items()
    )
    return tag("svg", symbols, width=0, height=0, aria_hidden="true", class_="off")


def _shape(name: str) -> Markup:
    return tag("svg", tag("use", href=f"#s-{name}"), width=12, height=12, aria_hidden="true")


def section(title: str, *parts: Child, id_: str | None = None, note: Child = None) -> Markup | None:
    """Returns a section with a heading, or None if its parts are empty."""
    content = join(parts)
    return join(section_pieces(title, content, id_=id_, note=note)) if content else None


def section_pieces(
    title: str, *parts: Child, id_: str | None = None, note: Child = None
) -> tuple[Child, ...]:
    """Returns a section in pieces, even without content."""
    note_tag = tag("p", note, class_="note") if note else None
    return tag_pieces("section", tag("h2", title), note_tag, *parts, id=id_)


def tiles(*figures: tuple[str, str, str, str]) -> Markup:
    """Returns tiles for amounts: (class, title, amount, note). The first tile is large."""
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


def findings(
    document: AuditDocument, rules: Mapping[str, RuleExplanation], *, short: bool
) -> Markup | None:
    """Returns the findings, counted ones first, or None without findings.

    With `short` only the first findings are shown, without facts, and with the titles of their
    rules instead of the explanations.
    """
    all_findings, repeated_sentence = finding_parts(document)
    listed = all_findings[:_MAX_SHORT_FINDINGS] if short else all_findings
    omitted = len(all_findings) - len(listed)
    omitted_note = f"+{omitted} more, in the job's own report" if omitted else None
    elements = [
        *(_finding(finding, document["job"]["kind"], rules, short=short) for finding in listed),
        *(tag("p", note, class_="note") for note in (omitted_note, repeated_sentence) if note),
    ]
    return join(elements) if elements else None


def _finding(
    finding: FindingParts, kind: str, rules: Mapping[str, RuleExplanation], *, short: bool
) -> Markup:
    title = tag(
        "h4" if short else "h3",
        _badge(finding.severity),
        tag("span", finding.rule, class_="rule"),
        tag("span", finding.dollars or "", class_="usd"),
    )
    rule_title = rules[finding.rule].title if finding.rule in rules else None
    sources = join([_facts(finding), rule_details(finding.rule, rules)]) if not short else None
    return tag(
        "article",
        title,
        tag("p", rule_title, f" ({finding.id}, {finding.confidence})", class_="note"),
        tag("p", finding.summary),
        tag("p", finding.not_counted_because, class_="note")
        if finding.not_counted_because
        else (_fixes(finding, kind), _caveat(finding), sources),
        class_="finding aside" if finding.not_counted_because else "finding",
    )


def _badge(severity: str) -> Markup:
    name = Severity(severity).value
    return tag("span", _shape(name), name, class_=f"sev {name}")


def _caveat(finding: FindingParts) -> Markup | None:
    if not finding.caveat:
        return None
    return tag("p", tag("strong", "Caveat: "), finding.caveat, class_="caution")


def _fixes(finding: FindingParts, kind: str) -> Iterator[Markup]:
    fixes = [_fix(kind, heading, parameters) for heading, parameters in finding.alternatives]
    yield from fixes[:1]
    if alternatives := fixes[1:]:
        count = len(alternatives)
        summary = "Another way" if count == 1 else f"{count} other ways"
        yield tag("details", tag("summary", summary), alternatives, class_="data ways")


def _fix(kind: str, heading: str, parameters: Sequence[FixDocument]) -> Markup:
    changes = (
        tag(
            "li",
            tag("code", assignment_line(parameter)),
            " ",
            tag("span", old_value_text(parameter), class_="dim"),
        )
        for parameter in parameters
    )
    if not parameters:
        return tag("div", step_text(heading), class_="fix")
    code = tag("ul", changes), code_blocks(kind, parameters)
    return tag("div", tag("p", tag("strong", heading)), *code, class_="fix")


def step_text(text: str) -> Markup | None:
    """Returns the text of a first step, with its items as a list; None without a text."""
    paragraph, *items = step_parts(text)
    listed = tag("ul", (tag("li", item) for item in items)) if items else None
    return join([tag("p", tag("strong", paragraph)), listed]) if paragraph else None


def code_blocks(kind: str, parameters: Sequence[FixDocument], *, width: int = CODE_WIDTH) -> Markup:
    """Returns the parameters as code to paste, in each dialect.

    `kind`: the value of a JobKind. `width`: the length from which a call has several lines.
    """
    return join(
        tag(
            "pre",
            tag("b", dialect),
            tag("code", _escaped_lines(fix_text(kind, parameters, dialect, width=width))),
            data_d=dialect,
        )
        for dialect in DIALECTS
    )


def _escaped_lines(code: str) -> Markup:
    return Markup("\n".join(join([line]) for line in code.split("\n")))


def _facts(finding: FindingParts) -> Markup | None:
    if not finding.facts:
        return None
    rows = ((label, cut_middle(value, _MAX_FACT_LENGTH)) for label, value in finding.facts)
    return data_table(("Fact", "Value"), rows, finding.rule)
