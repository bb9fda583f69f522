"""The cards of what to change first: each has one change, its dollars and the families with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.output.html.contents import (
    MAX_CARD_FAMILIES,
    AccountReport,
    FamilyChange,
    TopChange,
)
from sageaudit.output.html.job_table import family_name
from sageaudit.output.html.legend import rule_with_title
from sageaudit.output.html.markup import Child, Markup, breakable_path, join, tag
from sageaudit.output.html.page import code_blocks, section, step_text
from sageaudit.output.text.amounts import rule_amounts
from sageaudit.output.text.finding import FindingParts, make_finding_parts, short_caveat
from sageaudit.output.text.money import ROUND_DOWN, Figure, sum_figures
from sageaudit.output.text.words import capitalised, changed_value, count_text
from sageaudit.structs import replace

_MONTH_DAYS = 30
_MIN_DAYS = 7
"""An amount is projected to a month only if the report covers at least this many days."""
_CODE_WIDTH = 38
"""A card fits this many characters of code."""
_ZERO = Decimal(0)
_TRIAL_NOTE = "Worth a trial run; in no total."


def change_cards(report: AccountReport) -> Markup | None:
    """Returns the section with the cards, or None without a change."""
    if not report.top_changes:
        return None
    cards = tag("div", (_card(report, change) for change in report.top_changes), class_="cards")
    return section("What to change first", cards, id_="to-do", note=_limit_note(report))


def _limit_note(report: AccountReport) -> str | None:
    wasteful = sum(1 for sums in report.family_sums.sums.values() if sums.waste_usd)
    if wasteful <= MAX_CARD_FAMILIES:
        return None
    return (
        f"At most {MAX_CARD_FAMILIES} of {wasteful:,} families are in the cards, those with the"
        " most dollars."
    )


def _card(report: AccountReport, change: TopChange) -> Markup:
    example = change.example
    finding = make_finding_parts(example.fix.finding)
    kind = report.summaries[example.summary_index].kind
    is_group = len(change.families) > 1
    families_text = f" in {len(change.families):,} families" if is_group else None
    example_link = tag("a", example.fix.job, href=f"#j{example.summary_index}")
    caveats = Counter(_caveat(family.fix.finding) for family in change.families)
    is_monthly = _is_monthly(report, change)
    return tag(
        "article",
        tag("h3", _headline(report, example), tag("span", families_text, class_="dim")),
        None if is_group else tag("p", _family(example), class_="note"),
        tag("p", _amount(report, change, is_monthly=is_monthly), class_="amount"),
        None if change.is_counted else tag("p", _TRIAL_NOTE, class_="note"),
        _families(report, change, is_monthly=is_monthly, has_caveats=len(caveats) > 1)
        if is_group
        else None,
        tag("p", ("E.g. ", example_link, ": ") if is_group else None, finding.summary),
        _caveat_line(caveats),
        _fix(finding, kind),
        _rules(report, change, None if is_group else example_link),
        class_="card",
    )


def _fix(finding: FindingParts, kind: str) -> Iterator[Markup | None]:
    """Yields the first step, if there is one, and the code of the first fix."""
    for heading, parameters in finding.alternatives:
        if parameters:
            yield tag("div", code_blocks(kind, parameters, width=_CODE_WIDTH), class_="fix")
            return
        yield step_text(heading)


def _headline(report: AccountReport, example: FamilyChange) -> Child:
    """Returns `ml.p3.2xlarge → ml.g4dn.4xlarge`. Without a parameter, returns the rule's words."""
    finding = example.fix.finding
    if not finding["fix"]:
        explanation = report.rules.get(finding["rule"])
        return explanation.title.removesuffix(".") if explanation else finding["rule"]
    value = changed_value(finding["fix"])
    others = f" and {count_text(value.others, 'more parameter')}" if value.others else None
    return [
        f"{value.name}: " if value.name else None,
        tag("span", value.old, class_="value"),
        " → ",
        tag("span", value.new, class_="value"),
        tag("span", others, class_="dim") if others else None,
    ]


def _family(family: FamilyChange) -> Markup:
    name = breakable_path(family_name(family.family))
    return tag("bdi", name, class_="pick", data_c="Family")


def _amount(report: AccountReport, change: TopChange, *, is_monthly: bool) -> Markup:
    sums = [_rule_sums(report, family) for family in change.families]
    figure = _figure(report, change, sum(sums, RuleSums()), is_monthly=is_monthly)
    bucket = change.example.fix.finding["bucket"]
    words = f"{bucket if change.is_counted else 'may be saved'}{' a month' if is_monthly else ''}"
    return join([tag("strong", str(figure)), f" {words}"])


def _is_monthly(report: AccountReport, change: TopChange) -> bool:
    """Returns whether the card's dollars are a month's: each family then has several findings."""
    sums = [_rule_sums(report, family) for family in change.families]
    usd = _figure(report, change, sum(sums, RuleSums()), is_monthly=False).usd or _ZERO
    days = _days(report)
    has_several = all(rule_sums.findings > 1 for rule_sums in sums)
    return has_several and days >= _MIN_DAYS and usd * _MONTH_DAYS / days >= 1


def _days(report: AccountReport) -> int:
    return (report.until - max(report.since, min(report.days, default=report.since))).days + 1


def _figure(
    report: AccountReport, change: TopChange, rule_sums: RuleSums, *, is_monthly: bool
) -> Figure:
    avoidable, lost, possible = rule_amounts(rule_sums)
    figure = sum_figures((avoidable, lost)) if change.is_counted else possible
    if not is_monthly or figure.usd is None:
        return figure
    days = _days(report)
    return replace(
        figure,
        usd=figure.usd * _MONTH_DAYS / days,
        upper_usd=(figure.upper_end or _ZERO) * _MONTH_DAYS / days,
        rounding=ROUND_DOWN,
    )


def _rule_sums(report: AccountReport, family: FamilyChange) -> RuleSums:
    return _sums(report, family).rules.get(family.fix.finding["rule"], RuleSums())


def _sums(report: AccountReport, family: FamilyChange) -> Sums:
    return report.family_sums.sums[family.family]


def _families(
    report: AccountReport, change: TopChange, *, is_monthly: bool, has_caveats: bool
) -> Markup:
    """Returns the folded list of a card's families, each with its own dollars."""

    def cells(family: FamilyChange) -> Iterator[Child]:
        rule_sums = _rule_sums(report, family)
        figure = _figure(report, change, rule_sums, is_monthly=is_monthly)
        jobs_text = count_text(_sums(report, family).jobs, "job")
        yield from (_family(family), f": {figure}, in {rule_sums.findings:,} of {jobs_text}")
        caveat = _caveat(family.fix.finding)
        yield tag("span", f". {caveat}", class_="dim") if has_caveats and caveat else None

    rows = (tag("li", cells(family)) for family in change.families)
    summary = tag("summary", "Its families")
    return tag("details", summary, tag("ul", rows), class_="data")


def _caveat(finding: FindingDocument) -> str:
    caveat = capitalised(short_caveat(finding))
    return caveat if not caveat or caveat.endswith(".") else f"{caveat}."


def _caveat_line(caveats: Counter[str]) -> Markup | None:
    """Returns the caveat of most families. `caveats`: the number of families with each."""
    caveat, count = max(caveats.items(), key=lambda item: (bool(item[0]), item[1]))
    if not caveat:
        return None
    label = f"Caveat in {count:,} of {caveats.total():,} families: "
    label = label if len(caveats) > 1 else "Caveat: "
    return tag("p", tag("strong", label), caveat, class_="caution")


def _rules(report: AccountReport, change: TopChange, example_link: Child) -> Iterator[Markup]:
    """Yields a line for each rule: its title, and how many jobs have the finding."""
    by_rule: dict[str, list[FamilyChange]] = {}
    for family in change.families:
        by_rule.setdefault(family.fix.finding["rule"], []).append(family)
    for rule, families in by_rule.items():
        findings = sum(_rule_sums(report, family).findings for family in families)
        jobs = sum(_sums(report, family).jobs for family in families)
        example: Sequence[Child] = ()
        if example_link:
            example = (", e.g. " if findings > 1 else " ", example_link)
        found = f"({findings:,} of {count_text(jobs, 'job')})"
        # without a parameter, the title is the headline
        explanations = report.rules if families[0].fix.finding["fix"] else {}
        yield tag("p", rule_with_title(rule, explanations), f" {found}", *example, class_="note")
