"""Accepted findings, by the policy or a tag on the job: they stay visible, without dollars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from sageaudit.domain.bill.finding import Exemption
from sageaudit.domain.policy.policy import Policy

TAG = "sageaudit:ignore"
"""`gpu-underused spot-not-used until=2027-01-31`; tag values take no comma, the date may lack."""


def exemptions(
    policy: Policy, family: str, tags: Mapping[str, str], rules: Iterable[str], today: date
) -> tuple[dict[str, Exemption], list[str]]:
    """The exemptions that hold today, by rule, and a warning for each one that cannot be read."""
    known, warnings = set(rules), []
    held = {
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
            warnings.append(
                f"the tag {TAG} is not heeded: it takes rule names, and until=YYYY-MM-DD"
            )
        elif until is None or until >= today:
            exemption = Exemption("tag", until, f"tag {TAG}")
            held.update({name: exemption for name in names if name not in held})
    return held, warnings


def _until(words: list[str]) -> date | None:
    """The one date, or None. Raises ValueError: what cannot be read never exempts for ever."""
    if not words:
        return None
    [word] = words
    return date.fromisoformat(word.removeprefix("until="))
