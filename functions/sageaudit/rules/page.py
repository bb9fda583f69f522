"""A rule's page: its docstring under its name, then what its card says."""

from __future__ import annotations

from sageaudit.rules.card import AccountCase, FamilyCase, JobCase, Rule, TuningCase

SCOPES = {
    JobCase: "one job",
    FamilyCase: "one job and the earlier runs of its family",
    TuningCase: "a tuning job and its training jobs",
    AccountCase: "an account's runs (`sageaudit account`)",
}


def page(rule: Rule) -> str:
    """Markdown, as docs/rules and `sageaudit rules NAME` show it."""
    title, _, body = rule.page.partition("\n")
    lines = [f"# {rule.name.name} ({rule.name.id})", "", f"**{title}**", body.rstrip()]
    lines += ["", "## When it judges", *(f"- {line}" for line in _card(rule))]
    if rule.thresholds:
        lines += [
            "",
            "## Thresholds",
            f"Set them in `policy.toml` under `[rules.{rule.name.name}]`.",
            "",
            "| key | default | unit | why | source |",
            "|---|--:|---|---|---|",
        ]
        lines += [
            f"| `{t.key}` | {t.value:g} | {t.unit} | {t.why} | {t.source} |"
            for t in rule.thresholds
        ]
    return "\n".join(lines) + "\n"


def _card(rule: Rule) -> list[str]:
    """The card in sentences; what most rules share is left out."""
    kinds = ", ".join(sorted(kind.value for kind in rule.kinds))
    lines = [f"Looks at {SCOPES[rule.scope]}; kinds: {kinds}."]
    if not rule.on:
        lines.append("Off by default: the policy can list it under `rules.on`.")
    if rule.needs:
        metrics = ", ".join(metric.value for metric in rule.needs)
        minutes = "minutes of work" if rule.whole_run else "active minutes"
        lines.append(
            f"Needs {metrics}: {rule.min_coverage:.0%} of the points, "
            f"{rule.min_active_minutes:g} {minutes}, a point at least every "
            f"{rule.coarsest_period_s} s."
        )
    if rule.per_host:
        lines.append("Compares hosts: Unknown when the job has several instance groups.")
    if rule.about_cpu:
        lines.append("Does not apply while the GPU is busy (50% or more of its active time).")
    if rule.min_earlier:
        lines.append(f"Needs {rule.min_earlier} earlier runs of the family.")
    if rule.name.subsumes:
        names = ", ".join(sorted(rule.name.subsumes))
        lines.append(
            f"Includes the findings of: {names}. They are shown under it, without dollars."
        )
    if not rule.name.in_chat:
        lines.append("Stored and shown, never posted to chat.")
    return lines
