"""Why a figure that was told changed: what differs between two versions of one run's audit."""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.output.text.money import usd
from sageaudit.output.text.notice import counted_findings
from sageaudit.output.text.words import counted

_MOST = 4


def what_changed(before: AuditDocument, now: AuditDocument) -> tuple[str, ...]:
    """Short clauses, the causes first; none where the two do not say."""
    clauses = [
        *_cost(before, now),
        *_judged(before, now),
        *_children(before, now),
        *_findings(before, now),
        *_by_whom(before, now),
    ]
    return tuple(clauses[:_MOST])


def _cost(before: AuditDocument, now: AuditDocument) -> list[str]:
    was_usd, is_usd = before["bill"]["total_usd"], now["bill"]["total_usd"]
    if usd(was_usd) == usd(is_usd):
        return []
    return [f"the run's cost is {usd(is_usd)}, was {usd(was_usd)}"]


def _judged(before: AuditDocument, now: AuditDocument) -> list[str]:
    if before["judged"] == now["judged"]:
        return []
    if now["judged"] == Judged.YES:
        return ["all of it could be judged now"]
    return ["less of it could be judged now"] if before["judged"] == Judged.YES else []


def _children(before: AuditDocument, now: AuditDocument) -> list[str]:
    was, came = len(before["children"] or ()), len(now["children"] or ())
    return [f"{counted(came - was, 'training job')} came later"] if came > was else []


def _findings(before: AuditDocument, now: AuditDocument) -> list[str]:
    """Rules whose counted dollars changed, the largest change first."""
    was, are = _dollars(before), _dollars(now)
    none = Decimal(0)

    def by_size(rule: str) -> tuple[Decimal, str]:
        return -abs((are.get(rule) or none) - (was.get(rule) or none)), rule

    rules = was.keys() | are.keys()
    changed = (rule for rule in rules if usd(was.get(rule)) != usd(are.get(rule)))
    return [_finding(rule, was, are) for rule in sorted(changed, key=by_size)]


def _finding(rule: str, was: dict[str, Decimal | None], are: dict[str, Decimal | None]) -> str:
    if rule not in are:
        return f"{rule} ({usd(was[rule])}) is no longer found"
    if rule not in was:
        return f"{rule} ({usd(are[rule])}) is found now"
    return f"{rule} is {usd(are[rule])}, was {usd(was[rule])}"


def _dollars(document: AuditDocument) -> dict[str, Decimal | None]:
    return {finding["rule"]: finding["saving_usd"] for finding in counted_findings(document)}


def _by_whom(before: AuditDocument, now: AuditDocument) -> list[str]:
    names = {"ruleset": "the rules changed", "policy": "the policy changed"}
    was, known = before["audit"], now["audit"]
    return [said for key, said in names.items() if was.get(key) != known.get(key)]
