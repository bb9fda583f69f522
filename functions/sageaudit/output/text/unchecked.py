"""What an audit could not check, as lines for people: by rule and by metric, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import NotApplicableDocument
from sageaudit.output.text.headline import still_runs
from sageaudit.output.text.words import counted

_BY_POLICY = "policy"


def unchecked(document: AuditDocument) -> list[str]:
    """`rule, rule: reason`, then `metrics: metric: reason`; nothing of a job that still runs."""
    if still_runs(document):
        return []  # the headline has said that nothing is judged yet
    rules = [f"{unknown['rule']}: {unknown['reason']}" for unknown in document["unknown"]]
    missing = document["audit"]["coverage"]["missing"]
    return [*_grouped(rules), *(f"metrics: {sentence}" for sentence in _grouped(missing))]


def not_applicable(rules: list[NotApplicableDocument], elsewhere: str) -> str:
    """Names the rules that the policy excludes, and counts those that do not apply to the job.

    `elsewhere` says where the reasons of the counted ones are.
    """
    excluded = [
        f"{rule['rule']}: {rule['reason']}" for rule in rules if _BY_POLICY in rule["reason"]
    ]
    others = len(rules) - len(excluded)
    counted_rules = [f"{counted(others, 'rule')} ({elsewhere})"] if others else []
    return f"Not applicable: {'; '.join([*_grouped(excluded), *counted_rules])}"


def _grouped(sentences: Iterable[str]) -> Iterator[str]:
    """Groups metrics or rules by their reason, as `a, b: reason`."""
    by_reason: dict[str, list[str]] = {}
    for sentence in sentences:
        metric, colon, reason = sentence.partition(": ")
        by_reason.setdefault(reason or metric, []).extend([metric] if colon else [])
    for reason, metrics in by_reason.items():
        yield f"{', '.join(metrics)}: {reason}" if metrics else reason
