"""Exemptions: findings accepted by the policy or by a tag stay visible but are in no total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from sageaudit.domain.bill.finding import Exemption, RuleName
from sageaudit.domain.policy.policy import Policy

TAG = "sageaudit:ignore"
"""`gpu-underused spot-not-used until=2027-01-31`: rule names separated by spaces, since tag values
take no comma; the date is optional."""


def exemptions(
    policy: Policy, family: str, tags: Mapping[str, str], rules: Iterable[RuleName], today: date
) -> tuple[dict[str, Exemption], list[str]]:
    """The exemptions in force today, by rule, and a warning for what the tag may not or cannot say.

    A tag is ignored for the rules that the policy does not let a tag accept.
    """
    known = {rule.name: rule for rule in rules}
    in_force = {
        row.rule: row.exemption
        for row in policy.exemptions
        if row.family in {None, family}
        and (row.exemption.until is None or row.exemption.until >= today)
    }
    if TAG not in tags:
        return in_force, []
    words = tags[TAG].split()
    names, until = [word for word in words if "=" not in word], None
    try:
        until = _until([word for word in words if "=" in word])
    except ValueError:
        names = []
    if not names or not set(names) <= known.keys():
        return in_force, [f"the tag {TAG} is ignored: it takes rule names, and until=YYYY-MM-DD"]
    if until is not None and until < today:
        return in_force, []
    asked = [name for name in dict.fromkeys(names) if name not in in_force]
    refused = [name for name in asked if not _may_accept(policy, known[name], known)]
    accepted = Exemption("tag", until, f"tag {TAG}")
    by_tag = {name: accepted for name in asked if name not in refused}
    return in_force | by_tag, [_refusal(refused)] if refused else []


def _may_accept(policy: Policy, rule: RuleName, known: Mapping[str, RuleName]) -> bool:
    """As the policy says; else as the cards say of it and of all that it includes: whoever may tag
    a job could hide what it lost.
    """
    if policy.tags_may_accept is not None:
        return rule.name in policy.tags_may_accept
    included = [known[name] for name in rule.subsumes if name in known]
    return all(one.tag_accepts for one in (rule, *included))


def _refusal(names: list[str]) -> str:
    return (
        f"the tag {TAG} is ignored for {', '.join(names)}: the policy does not let a job's own tag"
        " accept that (tags.may_accept)"
    )


def _until(words: list[str]) -> date | None:
    """The date, or None. ValueError for an invalid date, which must not exempt without end."""
    if not words:
        return None
    [word] = words
    return date.fromisoformat(word.removeprefix("until="))
