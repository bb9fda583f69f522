"""Explains words where they stand: those of amounts and findings, and the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sageaudit.domain.bill.counterfactual import SeverityLimits
from sageaudit.domain.bill.finding import Confidence, Severity
from sageaudit.output.html.contents import RuleExplanation
from sageaudit.output.html.markup import Markup, join, tag

_LIMITS = SeverityLimits()
_WORDS: Sequence[tuple[str, str]] = (
    (
        "Judged",
        (
            "The rules had the metrics that they need. Partly: some were missing. Not judged:"
            " what was avoidable is unknown, which is not $0.00."
        ),
    ),
    (
        "Avoidable",
        "Dollars that a fix would have saved. If the saving is a range, its low end is counted.",
    ),
    ("Lost", "Dollars that were paid for runs without a result."),
    ("Possible", "Savings that are worth a trial, and not in the totals."),
    (
        "Idle capacity",
        (
            "The value, at list price, of hours in which a GPU or vCPU did not work. It is not a"
            " saving: a part may be in avoidable or lost, and the rest is in no total."
        ),
    ),
    (
        f"{Severity.HIGH}, {Severity.MEDIUM}, {Severity.LOW}".capitalize(),
        (
            f"The severity of a finding, by what it costs one run: from ${_LIMITS.high_usd}, from"
            f" ${_LIMITS.medium_usd}, or less. The policy can set other limits, and a severity for"
            " each rule."
        ),
    ),
    (Severity.INFO.capitalize(), "The severity of a finding without dollars."),
    (
        Confidence.MEASURED.capitalize(),
        "Time or capacity that was billed and produced nothing.",
    ),
    (
        Confidence.DERIVED.capitalize(),
        "Worked out by billing the changed run again, under an assumption that the finding states.",
    ),
    (Confidence.HEURISTIC.capitalize(), "A suggestion with a reason, to try first."),
)


def legend() -> Markup:
    """Returns the folded legend of a page."""
    rows = (tag("div", tag("dt", word), tag("dd", text)) for word, text in _WORDS)
    summary = tag("summary", "What these words mean: judged, avoidable, severity, derived")
    return tag("details", summary, tag("dl", rows), class_="data words", id="words")


def rule_with_title(rule: str, rules: Mapping[str, RuleExplanation]) -> Markup:
    """Returns a rule's name, and what it finds. An unknown rule has only its name."""
    name = tag("span", rule, class_="rule")
    return join([name, ": ", rules[rule].title]) if rule in rules else name


def rule_details(rule: str, rules: Mapping[str, RuleExplanation]) -> Markup | None:
    """Returns the folded explanation of one rule; None for an unknown rule."""
    if rule not in rules:
        return None
    summary = tag("summary", f"About the rule {rule}")
    return tag("details", summary, _explanation(rules[rule]), class_="data")


def rules_details(names: Iterable[str], rules: Mapping[str, RuleExplanation]) -> Markup | None:
    """Returns the folded explanations of several rules; None if all are unknown."""
    known = [name for name in names if name in rules]
    if not known:
        return None
    rows = (
        tag("div", tag("dt", name), tag("dd", rules[name].title, _explanation(rules[name])))
        for name in known
    )
    summary = tag("summary", "What each rule checks, and when it is wrong")
    return tag("details", summary, tag("dl", rows), class_="data words", id="rules")


def _explanation(explanation: RuleExplanation) -> Markup:
    parts = (("What it checks", explanation.checks), ("When it is wrong", explanation.errors))
    return join(_section(heading, lines) for heading, lines in parts if lines)


def _section(heading: str, lines: Sequence[str]) -> Markup:
    # A rule's page is Markdown, but for its code spans that of a plain text.
    paragraph, *items = (line.replace("`", "") for line in lines)
    listed = tag("ul", (tag("li", item.removeprefix("- ")) for item in items)) if items else None
    return join([tag("p", tag("strong", f"{heading}: "), paragraph), listed])
