"""Findings that appear, vanish or change when the same runs are judged by another policy."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, stands
from sageaudit.domain.bill.finding import Bucket

_ZERO = Decimal(0)
_COUNTED = frozenset(bucket for bucket in Bucket if bucket.counted)
_POSSIBLE = frozenset({Bucket.POSSIBLE})


class Move(enum.Enum):
    """How one finding differs."""

    APPEARS = "appears"
    VANISHES = "vanishes"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class FindingMove:
    """One finding that differs.

    `moved_usd`: dollars added to the totals (avoidable, lost), negative when removed.
    `possible_usd`: the same for possible savings. `why`: such as "severity high -> low".
    """

    job: str
    rule: str
    move: Move
    moved_usd: Decimal
    possible_usd: Decimal
    why: str
    estimated: bool = False
    """Its dollars rest on an estimated rate."""


@dataclass(frozen=True, slots=True)
class RuleMoves:
    """One rule's moves over all runs."""

    rule: str
    appears: int
    vanishes: int
    changes: int
    moved_usd: Decimal
    possible_usd: Decimal
    estimated: bool = False
    """Some of its dollars rest on an estimated rate."""


def moves(before: AuditDocument, after: AuditDocument) -> Iterator[FindingMove]:
    """Compares two audits of one run, finding by finding."""
    old = {finding["rule"]: finding for finding in before["findings"]}
    new = {finding["rule"]: finding for finding in after["findings"]}
    for rule in sorted(old.keys() | new.keys()):
        was, is_now = old.get(rule), new.get(rule)
        move, why = _move(was, is_now)
        if move is not None:
            name = after["job"]["arn"] or after["job"]["name"]
            yield FindingMove(
                job=name,
                rule=rule,
                move=move,
                moved_usd=_usd(is_now, _COUNTED) - _usd(was, _COUNTED),
                possible_usd=_usd(is_now, _POSSIBLE) - _usd(was, _POSSIBLE),
                why=why,
                estimated=any(one["estimated"] for one in (was, is_now) if one),
            )


def by_rule(moved: Iterable[FindingMove]) -> list[RuleMoves]:
    """Summed by rule, the most dollars moved first."""
    rules: dict[str, list[FindingMove]] = {}
    for move in moved:
        rules.setdefault(move.rule, []).append(move)
    summed = [
        RuleMoves(
            rule=rule,
            appears=sum(row.move is Move.APPEARS for row in rows),
            vanishes=sum(row.move is Move.VANISHES for row in rows),
            changes=sum(row.move is Move.CHANGES for row in rows),
            moved_usd=sum((row.moved_usd for row in rows), _ZERO),
            possible_usd=sum((row.possible_usd for row in rows), _ZERO),
            estimated=any(row.estimated for row in rows),
        )
        for rule, rows in rules.items()
    ]
    return sorted(
        summed, key=lambda rule: (-abs(rule.moved_usd), -abs(rule.possible_usd), rule.rule)
    )


def _move(was: FindingDocument | None, is_now: FindingDocument | None) -> tuple[Move | None, str]:
    if was is None or is_now is None:
        return (Move.VANISHES, "") if is_now is None else (Move.APPEARS, "")
    if stands(was) != stands(is_now):
        return Move.CHANGES, f"{_standing_words(was)} -> {_standing_words(is_now)}"
    if was["severity"] != is_now["severity"]:
        return Move.CHANGES, f"severity {was['severity']} -> {is_now['severity']}"
    if was["saving_usd"] != is_now["saving_usd"]:
        return Move.CHANGES, "dollars"
    return None, ""


def _standing_words(finding: FindingDocument) -> str:
    if finding["exempt"]:
        return "exempt"
    other = finding["superseded_by"] or finding["subsumed_by"]
    return f"left to {other}" if other else "stands"


def _usd(finding: FindingDocument | None, buckets: frozenset[Bucket]) -> Decimal:
    """The finding's USD if it stands and is in one of these buckets, else 0."""
    if finding is None or Bucket(finding["bucket"]) not in buckets or not stands(finding):
        return _ZERO
    return finding["saving_usd"] or _ZERO
