"""The findings of an audit, each with its reason, its fix in every dialect, and its facts."""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.fixes.dialects import DIALECTS, fix_text
from sageaudit.output.html.figure import Column, data
from sageaudit.output.html.markup import Markup, join, tag
from sageaudit.output.html.severity import badge
from sageaudit.output.text.facts import unsaid
from sageaudit.output.text.finding_order import in_order, set_aside
from sageaudit.output.text.saving import counted_dollars, effect
from sageaudit.output.text.sparkline import plain_facts
from sageaudit.output.text.untrusted import middle
from sageaudit.output.text.words import assignment, before, label, value

_FACT = 240
_SHORT_FINDINGS = 6
"""Findings of one job in an account's report; the job's own report has all."""


def findings(document: AuditDocument, *, short: bool) -> Markup | None:
    """All findings, those that count first. `short`: the first, without their facts."""
    told = [one for one in in_order(document["findings"]) if not one.get("said_of")]
    said = [one for one in document["findings"] if one.get("said_of")]
    if not told and not said:
        return None
    shown = told[:_SHORT_FINDINGS] if short else told
    rest = f"+{len(told) - len(shown)} more: sageaudit report shows them for this job alone"
    return join(
        [
            *(_finding(document, finding, short=short) for finding in shown),
            tag("p", rest, class_="note") if len(told) > len(shown) else None,
            _as_before(said),
        ]
    )


def _as_before(said: list[FindingDocument]) -> Markup | None:
    """Advice that an earlier run of the family was given is only named."""
    if not said:
        return None
    rules = ", ".join(finding["rule"] for finding in said)
    run = f"As for {said[0]['said_of']}, an earlier run of the family: "
    return tag("p", run, rules, class_="note")


def _finding(document: AuditDocument, finding: FindingDocument, *, short: bool) -> Markup:
    aside = set_aside(finding)
    title = tag(
        "h4" if short else "h3",
        badge(finding["severity"]),
        tag("span", finding["rule"], class_="rule"),
        tag("span", _dollars(document, finding), class_="usd"),
    )
    card = f"{finding['id']}, {finding['confidence']}"
    parts = (
        [tag("p", aside, class_="note")]
        if aside
        else [
            *_fixes(document, finding),
            _caution(finding),
            None if short else _facts(finding),
        ]
    )
    return tag(
        "article",
        title,
        tag("p", finding["summary"], " ", tag("span", f"({card})", class_="dim")),
        parts,
        class_="finding aside" if aside else "finding",
    )


def _dollars(document: AuditDocument, finding: FindingDocument) -> str:
    said = None if set_aside(finding) else counted_dollars(finding, document["bill"]["total_usd"])
    return said or ""


def _caution(finding: FindingDocument) -> Markup | None:
    if not finding["caution"]:
        return None
    return tag("p", tag("strong", "Caveat: "), finding["caution"], class_="caution")


def _fixes(document: AuditDocument, finding: FindingDocument) -> Iterator[Markup]:
    ways = [way for way in (finding["fix"], *finding["alternatives"]) if way]
    saves = effect(finding, document["bill"]["total_usd"])
    lost = Bucket(finding["bucket"]) is Bucket.LOST
    if not ways:
        return
    yield _fix(document["job"]["kind"], ways[0], f"Fix, {saves}" if saves and not lost else "Fix")
    if others := [_fix(document["job"]["kind"], way, "Or") for way in ways[1:]]:
        word = "Another way" if len(others) == 1 else f"{len(others)} other ways"
        yield tag("details", tag("summary", word), others, class_="data ways")


def _fix(kind: str, way: list[FixDocument], title: str) -> Markup:
    """The parameters in plain words, then the code; the script shows one dialect at a time."""
    changes = [
        tag("li", tag("code", assignment(fix)), " ", tag("span", before(fix), class_="dim"))
        for fix in way
    ]
    code = [
        tag(
            "pre",
            tag("b", dialect),
            tag("code", _lines(fix_text(kind, way, dialect))),
            data_d=dialect,
        )
        for dialect in DIALECTS
    ]
    return tag("div", tag("p", tag("strong", f"{title}:")), tag("ul", changes), code, class_="fix")


def _lines(code: str) -> Markup:
    """Code keeps its lines and indents; what is in a line is escaped as any text."""
    return Markup("\n".join(join([line]) for line in code.split("\n")))


def _facts(finding: FindingDocument) -> Markup | None:
    facts = unsaid(finding["summary"], plain_facts(finding["evidence"]))
    if not facts:
        return None
    rows = ((label(key), middle(value(key, fact), _FACT)) for key, fact in facts)
    return data((Column("Fact"), Column("Value", number=True)), rows, finding["rule"])
