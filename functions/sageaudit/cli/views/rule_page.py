"""A rule's page as Markdown and as plain text, and the rule as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from textwrap import fill
from typing import Any

from msgspec.structs import asdict

from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES
from sageaudit.errors import BadUsage
from sageaudit.rules import catalogue
from sageaudit.rules.card import (
    AccountCase,
    Case,
    FamilyCase,
    JobCase,
    RequestCase,
    RollUpCase,
    Rule,
)
from sageaudit.rules.judge import BUSY_GPU_PERCENT
from sageaudit.rules.page_sections import page_sections

SCOPE_LABELS: dict[type[Any], str] = {
    JobCase: "one job",
    FamilyCase: "one job and the earlier runs of its family",
    RollUpCase: "a tuning job and its training jobs",
    AccountCase: "an account's runs (`sageaudit account`)",
    RequestCase: "a request before its job runs (`sageaudit check`)",
    Case: "a job, a tuning job, or a request before its job runs",
}
_WIDTH = 100


def find_rule(name: str) -> Rule:
    """Returns the rule with this name or id. Raises BadUsage if there is none."""
    all_rules, key = catalogue.load(), name.lower().replace("_", "-")
    matching_rule = next(
        (rule for rule in all_rules if key in {rule.info.name, rule.info.id.lower()}), None
    )
    if matching_rule is None:
        suggestion = did_you_mean(key, [rule.info.name for rule in all_rules]) or ";"
        raise BadUsage(f"there is no rule {name}{suggestion} `sageaudit rules` lists them all")
    return matching_rule


def rule_page(rule: Rule) -> str:
    """Returns a rule's page as Markdown, as a terminal renders it for `sageaudit rules NAME`.

    docs/rules adds how often the rule was right.
    """
    lines = [f"# {rule.info.name} ({rule.info.id})", "", f"**{rule.title}**"]
    for heading, text in docstring_sections(rule.page):
        lines += ["", f"## {heading}", text]
    lines += ["", "## When it judges", *(f"- {line}" for line in _judging_lines(rule))]
    if rule.thresholds:
        lines += [
            "",
            "## Thresholds",
            f"Set them in `policy.toml` under `[rules.{rule.info.name}]`.",
            "",
            "| key | default | unit | why | source |",
            "|---|--:|---|---|---|",
        ]
        lines += [
            f"| `{threshold.key}` | {threshold.value:g} | {threshold.unit} | {threshold.why}"
            f" | {threshold.source} |"
            for threshold in rule.thresholds
        ]
    return "\n".join(lines) + "\n"


def rule_text(rule: Rule) -> str:
    """Returns a rule's page as plain text, for a pipe: a line for each paragraph and item."""
    lines = [f"{rule.info.name} ({rule.info.id})", rule.title]
    for heading, parts in page_sections(rule.page).items():
        lines += ["", heading, *parts]
    lines += ["", "When it judges", *(f"- {line}" for line in _judging_lines(rule))]
    if rule.thresholds:
        lines += ["", f"Thresholds, set in policy.toml under [rules.{rule.info.name}]"]
        lines += [
            f"- {threshold.key} = {threshold.value:g} {threshold.unit}: {threshold.why}"
            f" (source: {threshold.source})"
            for threshold in rule.thresholds
        ]
    return "\n".join(lines).replace("`", "") + "\n"


def rule_document(rule: Rule) -> dict[str, Any]:
    """Returns a rule as --output json prints it. Keys are always present and never removed."""
    return {
        "id": rule.info.id,
        "name": rule.info.name,
        "title": rule.title,
        "scope": SCOPE_LABELS[rule.scope],
        "kinds": sorted(kind.value for kind in rule.kinds),
        "on": rule.is_on_by_default,
        "sent_to_channels": rule.info.sent_to_channels,
        "report_once_per_family": rule.report_once_per_family,
        "needs": [metric.value for metric in rule.required_metrics],
        "min_active_minutes": rule.min_active_minutes if rule.required_metrics else None,
        "min_earlier_runs": rule.min_earlier_runs,
        "includes": sorted(rule.info.subsumes),
        "thresholds": [asdict(threshold) for threshold in rule.thresholds],
    }


def rules_document(all_rules: tuple[Rule, ...]) -> dict[str, Any]:
    """Returns all rules as --output json prints them."""
    return {"schema": 1, "rules": [rule_document(rule) for rule in all_rules]}


def docstring_sections(docstring: str) -> list[tuple[str, str]]:
    """Returns the heading and text of each section of a rule's docstring, in their order."""
    return [(heading, _wrap(parts)) for heading, parts in page_sections(docstring).items()]


def _wrap(parts: Iterable[str]) -> str:
    """Returns a paragraph, and the list after it if there is one, as Markdown."""
    paragraph, *items = (
        fill(
            part,
            _WIDTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for part, indent in zip(parts, chain([""], repeat("  ")), strict=False)
    )
    return "\n\n".join([paragraph, "\n".join(items)]) if items else paragraph


def _judging_lines(rule: Rule) -> list[str]:
    # What most rules share is left out.
    kinds = ", ".join(sorted(kind.value for kind in rule.kinds))
    lines = [f"Judges {SCOPE_LABELS[rule.scope]}; kinds of job: {kinds}.", *_request_support(rule)]
    if rule.report_once_per_family:
        lines.append(
            "A finding is shown for a family's first run only; for later runs it is stored."
        )
    if not rule.is_on_by_default:
        lines.append("The rule is off by default; the policy turns it on with `rules.on`.")
    if rule.required_metrics:
        lines += _metric_lines(rule)
    if rule.can_pool_runs:
        lines.append(
            f"A run of under {MIN_ACTIVE_MINUTES} active minutes is judged together with the last "
            "runs of its family."
        )
    if rule.compares_hosts:
        lines.append(
            'Compares hosts, so the rule answers "unknown" if the job has several instance groups.'
        )
    if rule.skips_busy_gpu:
        lines.append(f"Does not apply if mean GPU use is {BUSY_GPU_PERCENT}% or more.")
    if rule.min_earlier_runs:
        lines.append(f"Needs {rule.min_earlier_runs} earlier runs of the family.")
    if rule.info.subsumes:
        names = ", ".join(sorted(rule.info.subsumes))
        lines.append(
            f"Includes the findings of: {names}. Those findings are shown under this rule's "
            "finding, without dollars."
        )
    if not rule.info.sent_to_channels:
        lines.append("Findings are stored and shown, and not sent to channels.")
    return lines


def _metric_lines(rule: Rule) -> Iterator[str]:
    # Also says what active minutes are.
    metrics = " and ".join(metric.value for metric in rule.required_metrics)
    minutes = "minutes of work" if rule.uses_whole_run else "active minutes"
    yield (
        f"Needs {metrics} with at least {rule.min_coverage:.0%} of the expected points, at least "
        f"{rule.min_active_minutes:g} {minutes}, and a point at least every {rule.max_period_s} s."
    )
    if not rule.uses_whole_run:
        yield "Active minutes are those from the run's first work to its last."


def _request_support(rule: Rule) -> list[str]:
    if rule.request_severity is None or rule.scope in {Case, RequestCase}:
        return []
    return ["Also judges requests before they run (`sageaudit check`)."]
