"""A rule's page: its docstring under its name, then its thresholds."""

from __future__ import annotations

from sageaudit.rules.card import Rule


def page(rule: Rule) -> str:
    """Markdown, as docs/rules and `sageaudit rules NAME` show it."""
    title, _, body = rule.page.partition("\n")
    lines = [f"# {rule.name.name} ({rule.name.id})", "", f"**{title}**", body.rstrip()]
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
