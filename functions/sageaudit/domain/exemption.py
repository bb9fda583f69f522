"""Accepted findings, by the policy or a tag on the job: they stay visible, without dollars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from sageaudit.domain.finding import Exemption
from sageaudit.domain.policy import Policy

TAG = "sageaudit:exempt"
"""`gpu-underused spot-not-used until=2027-01-31`; tag values take no comma."""


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
        names = [word for word in words if "=" not in word]
        until = _until(words)
        if until is None or not set(names) <= known or not names:
            warnings.append(
                f"the tag {TAG} is ignored: it takes rule names and until=YYYY-MM-DD, at most"
                " once each"
            )
        elif until >= today:
            exemption = Exemption("tag", until, f"tag {TAG}")
            held.update({name: exemption for name in names if name not in held})
    return held, warnings


def _until(words: list[str]) -> date | None:
    """The one date; None when absent or unreadable, since no tag exempts for ever."""
    dates = [word.removeprefix("until=") for word in words if "=" in word]
    try:
        return date.fromisoformat(dates[0]) if len(dates) == 1 else None
    except ValueError:
        return None
