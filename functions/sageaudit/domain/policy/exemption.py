"""Exemptions: findings accepted by the policy or by a tag stay visible but are in no total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from sageaudit.domain.bill.finding import Exemption
from sageaudit.domain.policy.policy import Policy

TAG = "sageaudit:ignore"
"""`gpu-underused spot-not-used until=2027-01-31`: rule names separated by spaces, since tag values
take no comma; the date is optional."""


def exemptions(
    policy: Policy, family: str, tags: Mapping[str, str], rules: Iterable[str], today: date
) -> tuple[dict[str, Exemption], list[str]]:
    """The exemptions in force today, by rule, and a warning where the tag cannot be read."""
    known, warnings = set(rules), []
    in_force = {
        row.rule: row.exemption
        for row in policy.exemptions
        if row.family in {None, family}
        and (row.exemption.until is None or row.exemption.until >= today)
    }
    if TAG in tags:
        words = tags[TAG].split()
        names, until = [word for word in words if "=" not in word], None
        try:
            until = _until([word for word in words if "=" in word])
        except ValueError:
            names = []
        if not names or not set(names) <= known:
            warnings.append(f"the tag {TAG} is ignored: it takes rule names, and until=YYYY-MM-DD")
        elif until is None or until >= today:
            exemption = Exemption("tag", until, f"tag {TAG}")
            in_force.update({name: exemption for name in names if name not in in_force})
    return in_force, warnings


def _until(words: list[str]) -> date | None:
    """The date, or None. ValueError for an invalid date, which must not exempt without end."""
    if not words:
        return None
    [word] = words
    return date.fromisoformat(word.removeprefix("until="))
