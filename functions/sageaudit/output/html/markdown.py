"""The report as Markdown for a pull request: headline, findings, the dearest jobs. Under 60 KB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Sums
from sageaudit.output.html.contents import AccountReport
from sageaudit.output.text.amounts import TITLES, of_document, of_head, of_rule, of_sums
from sageaudit.output.text.finding import FindingParts, findings_of
from sageaudit.output.text.headline import account_headline, headline, judged_words, period_words
from sageaudit.output.text.idle_capacity import IDLE_LABEL, idle_sentence
from sageaudit.output.text.notes import (
    family_words,
    price_dates,
    price_note,
    ran_on,
    when,
)
from sageaudit.output.text.untrusted import markdown, markdown_code
from sageaudit.output.text.words import NO_OWNER, assignment, before, capitalised

_JOBS, _RULES, _FINDINGS, _FIXES = 10, 15, 15, 4
_NAME, _SENTENCE, _FIX = 100, 400, 200
"""Characters: 15 findings with 4 fixes each, of the longest texts, are under 60 KB."""


def job_markdown(document: AuditDocument) -> str:
    """One job: the headline, its costs, its findings."""
    job = document["job"]
    lines = [f"### {markdown_code(job['name'], _NAME)}", ""]
    if document["unauditable"] is not None:
        why = markdown(document["unauditable"], _SENTENCE)
        return _text([*lines, f"**Could not be audited:** {why}"])
    facts = (ran_on(job), when(job), f"owner {job['owner'] or 'not known'}")
    amounts = [markdown(str(figure)) for figure in of_document(document)[:4]]
    lines += [
        f"**{markdown(capitalised(headline(document)))}.**",
        "",
        markdown(", ".join(part for part in facts if part), _SENTENCE),
        "",
        *_table(("Cost", *TITLES[1:4]), [amounts], from_right=0),
        "",
    ]
    findings, repeated = findings_of(document)
    found = [finding for finding in findings if finding.set_aside is None]
    rows = [_finding(one) for one in found[:_FINDINGS]]
    if rows:
        lines += _table(("Severity", "Finding", "Dollars", "Why", "Fix"), rows)
        lines += _more(len(found) - len(rows), "finding")
    idle = idle_sentence(document)
    idle_note = f"{IDLE_LABEL}: {idle}" if idle else None
    notes = [repeated, *document["not_judged"], idle_note, price_note(document)]
    lines += ["", *(f"- {markdown(capitalised(note), _SENTENCE)}" for note in notes if note)]
    return _text(lines)


def account_markdown(report: AccountReport) -> str:
    """An account: the headline, its sums, rules with findings, the dearest jobs."""
    total = report.total
    dates = price_dates([one.document for one in report.details.values()])
    facts = (report.scope, period_words(report.since, report.until), judged_words(total), dates)
    lines = [
        "### SageMaker jobs: what they cost and what was avoidable",
        "",
        f"**{markdown(account_headline(total))}.**",
        "",
        markdown("; ".join(fact for fact in facts if fact), _SENTENCE),
        "",
        *_table(TITLES, [[markdown(str(figure)) for figure in of_sums(total)]], from_right=0),
        "",
        *_rules(total),
        "",
        *_jobs(report.heads, report.left_out),
    ]
    return _text(lines)


def _rules(total: Sums) -> list[str]:
    """The rules with findings, the most avoidable and lost dollars first."""
    ranked = ranked_rules(total)
    rows = [
        (
            markdown(name, _NAME),
            f"{rule.findings:,}",
            *(markdown(str(one)) for one in of_rule(rule, estimated=bool(total.estimated))),
        )
        for name, rule in ranked[:_RULES]
    ]
    if not rows:
        return ["No rule found anything."]
    titles = ("Rule", "Findings", "Avoidable", "Lost", "Possible")
    return [*_table(titles, rows, from_right=1), *_more(len(ranked) - len(rows), "rule")]


def _jobs(heads: Sequence[Head], left_out: int) -> list[str]:
    titles = ("Job", "Spend", "Avoidable", "Lost", "Top finding", "Family", "Owner")
    return [
        "The jobs with the most avoidable and lost dollars:",
        "",
        *_table(titles, map(_job, heads[:_JOBS]), from_right=1, to_right=4),
        *_more(len(heads) + left_out - _JOBS, "job"),
    ]


def _job(head: Head) -> tuple[str, ...]:
    return (
        markdown_code(head.name, _NAME),
        *(markdown(str(figure)) for figure in of_head(head)[:3]),
        markdown(head.top_rule or "-", _NAME),
        markdown(family_words(head.family), _NAME),
        markdown(head.owner or NO_OWNER, _NAME),
    )


def _finding(finding: FindingParts) -> tuple[str, ...]:
    fixes = [
        f"{markdown_code(assignment(fix), _FIX)} {markdown(before(fix), _NAME)}"
        for _, way in finding.ways[:1]
        for fix in way[:_FIXES]
    ]
    first = next((title for title, _ in finding.ways), "")
    return (
        finding.severity,
        markdown(f"{finding.rule} ({finding.id})", _NAME),
        markdown(finding.dollars or "-"),
        markdown(finding.summary, _SENTENCE),
        "<br>".join(fixes) or markdown(first, _SENTENCE) or "-",
    )


def _table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    from_right: int | None = None,
    to_right: int | None = None,
) -> list[str]:
    """The columns from `from_right` up to `to_right` hold numbers."""
    places = range(len(titles))
    right = set(places[from_right:to_right]) if from_right is not None else set()
    rule = ["--:" if place in right else "---" for place in places]
    return [f"| {' | '.join(row)} |" for row in (titles, rule, *rows)]


def _more(hidden: int, word: str) -> list[str]:
    """What the table leaves out, in a paragraph of its own."""
    if hidden <= 0:
        return []
    return ["", f"+{hidden:,} more {word}{'' if hidden == 1 else 's'}."]


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"
