"""Dead letters on the terminal: why they are there, what becomes of each, and what that posts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.cells import set_cell_size
from rich.console import Console
from rich.text import Text

from sageaudit.adapters.history.moments import moment_text
from sageaudit.cli.support.history.formats import moment
from sageaudit.cli.support.redrive.dead_letters import DeadLetter, Kind
from sageaudit.cli.support.redrive.deleting import MAY_SUCCEED
from sageaudit.cli.support.redrive.redriving import Fate, Plan
from sageaudit.domain.job.duration import duration
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import counted

_WHYS = 3
"""Different sentences shown for one reason."""
_ABOUT, _REASON, _FATE, _FATE_DELETING = 34, 17, 6, 7
"""Columns of the list on 80 characters; the first takes half of what is wider."""
_WIDTH, _WIDEST_ABOUT = 80, 90
_NAMES = {
    Kind.FINISHED: "jobs that were not audited",
    Kind.UNDECIDED: "audits without a decision whether to post",
    Kind.NOTICES: "notices that were not posted",
}
_WORDS = {
    Fate.MOVES: "moves",
    Fate.MOVED: "moved",
    Fate.STAYS: "stays",
    Fate.FAILED: "failed",
    Fate.TWICE: "moved",
    Fate.DELETES: "delete",
    Fate.DELETED: "deleted",
}


@dataclass(frozen=True, slots=True)
class Redriven:
    """What is shown: the queue, the letters that were asked for, and how it went."""

    kind: Kind
    queue: str
    region: str
    plans: Sequence[Plan]
    others: Mapping[str, int]
    """How many letters have which other reasons than the one asked for."""
    dry_run: bool
    more: bool
    """Whether letters are left that this run did not read."""
    deleting: bool = False
    kept_in: str | None = None
    """The file with the letters that were deleted."""
    interrupted: bool = False
    error: str | None = None


def posts(plans: Iterable[Plan]) -> Counter[str]:
    """By channel, how many notices are sent again; one that is there twice is posted once."""
    ids = {
        (plan.target, plan.letter.subject.notice_id or plan.letter.message.message_id)
        for plan in plans
        if plan.target and plan.fate in {Fate.MOVES, Fate.MOVED, Fate.TWICE}
    }
    return Counter(channel for channel, _ in ids)


def posts_line(plans: Sequence[Plan]) -> str | None:
    """What moving notices posts, or None where none moves."""
    by_channel = posts(plans)
    if not by_channel:
        return None
    parts = [f"{count:,} on {channel}" for channel, count in sorted(by_channel.items())]
    return (
        f"This posts at most {counted(by_channel.total(), 'message')}: {', '.join(parts)}."
        " A notice that was sent before is not posted again."
    )


def deletes_line(plans: Sequence[Plan]) -> str | None:
    """What deleting may lose, or None where all of it was refused for good."""
    notes = [plan.note for plan in plans if plan.fate is Fate.DELETES]
    hopeful = notes.count(MAY_SUCCEED)
    if not hopeful:
        return None
    return f"{hopeful:,} of {counted(len(notes), 'letter')} may still succeed if sent again."


def show(found: Redriven, now: datetime, console: Console) -> None:
    """Prints the letters by reason, then each of them, then what moving them posts."""
    letters = [plan.letter for plan in found.plans]
    title = f"{counted(len(letters), 'dead letter')}: {_NAMES[found.kind]}, {found.region}"
    console.print(Text(title, "bold"))
    if not letters:
        return
    table = plain_table(
        "Letters", "Reason", "First sent", "Last sent", "Deleted in", right={"Letters"}
    )
    for reason, group in _groups(letters):
        sent = [letter.first_sent_at for letter in group]
        left = _left(min(letter.deleted_at for letter in group), now)
        row = (f"{len(group):,}", terminal(reason), moment(min(sent)), moment(max(sent)), left)
        table.add_row(*map(Text, row))
    console.print(table)
    for reason, group in _groups(letters):
        for line in _whys(reason, group):
            console.print(Text(line))
    console.print()
    for plan in found.plans:
        letter_line = _line(plan, console.width, _FATE_DELETING if found.deleting else _FATE)
        console.print(letter_line, no_wrap=True, overflow="ellipsis", crop=True)
    warned = warning(found)
    if warned is not None:
        console.print()
        console.print(Text(warned))


def warning(found: Redriven) -> str | None:
    """What to know before one says yes."""
    return deletes_line(found.plans) if found.deleting else posts_line(found.plans)


def _groups(letters: Iterable[DeadLetter]) -> list[tuple[str, list[DeadLetter]]]:
    """Letters by reason, the most first."""
    groups: dict[str, list[DeadLetter]] = {}
    for letter in letters:
        groups.setdefault(letter.reason, []).append(letter)
    return sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def _whys(reason: str, group: Sequence[DeadLetter]) -> Iterator[str]:
    whys = Counter(letter.why for letter in group)
    for why, count in whys.most_common(_WHYS):
        times = f" ({count:,})" if len(whys) > 1 else ""
        yield f"{terminal(reason)}{times}: {terminal(why) or 'no sentence was given'}"
    if len(whys) > _WHYS:
        yield f"{terminal(reason)}: and {counted(len(whys) - _WHYS, 'other sentence')}"


def _left(deleted_at: datetime, now: datetime) -> str:
    seconds = (deleted_at - now).total_seconds()
    return duration(Decimal(math.floor(seconds))) if seconds > 0 else "now"


def about(plan: Plan) -> str:
    """The job or notice or audit, in a few words."""
    subject = plan.letter.subject
    channel = f"{subject.channel}: " if subject.channel else ""
    return channel + subject.words


def _line(plan: Plan, width: int, fate: int) -> Text:
    why = "; ".join(filter(None, (plan.note, plan.letter.why)))
    wide = min(_ABOUT + max(width - _WIDTH, 0) // 2, _WIDEST_ABOUT)
    parts = ((about(plan), wide), (plan.letter.reason, _REASON), (_WORDS[plan.fate], fate))
    line = "".join(set_cell_size(middle(terminal(text), room - 1), room) for text, room in parts)
    return Text(set_cell_size(line + terminal(why), width).rstrip())


def result_lines(found: Redriven) -> Iterator[str]:
    """How it went, in sentences."""
    fates = Counter(plan.fate for plan in found.plans)
    if found.dry_run:
        goes = counted(fates[Fate.MOVES] + fates[Fate.DELETES], "letter")
        would = "would be deleted" if found.deleting else "would move"
        yield f"--dry-run: {goes} {would}, {fates[Fate.STAYS]:,} would stay"
    else:
        went = fates[Fate.MOVED] + fates[Fate.TWICE] + fates[Fate.DELETED]
        words = [f"{'deleted' if found.deleting else 'moved'} {counted(went, 'letter')}"]
        words += [f"{fates[Fate.STAYS]:,} stay"] if fates[Fate.STAYS] else []
        words += [f"{fates[Fate.FAILED]:,} failed"] if fates[Fate.FAILED] else []
        yield ("interrupted: " if found.interrupted else "") + ", ".join(words)
    if found.kept_in is not None:
        yield f"what was deleted is kept in {found.kept_in}: the bodies may quote names"
    failed = Counter(plan.note for plan in found.plans if plan.fate is Fate.FAILED)
    for note, count in failed.most_common(_WHYS):
        yield f"failed ({count:,}): {note}"
    if fates[Fate.TWICE]:
        yield (
            f"{fates[Fate.TWICE]:,} of them could not be deleted here: run the same command again;"
            " a second copy does no harm"
        )
    if found.others:
        reasons = ", ".join(f"{count:,} {terminal(name)}" for name, count in found.others.items())
        others = counted(sum(found.others.values()), "letter")
        yield f"{others} of other reasons: left alone ({reasons})"
    if found.more:
        yield "there are more letters: run the same command again"


def document(found: Redriven) -> dict[str, Any]:
    """The same as JSON."""
    letters = [plan.letter for plan in found.plans]
    fates = Counter(plan.fate for plan in found.plans)
    return {
        "schema": 1,
        "kind": found.kind.value,
        "queue": found.queue,
        "region": found.region,
        "dry_run": found.dry_run,
        "deleting": found.deleting,
        "kept_in": found.kept_in,
        "interrupted": found.interrupted,
        "error": found.error,
        "more": found.more,
        "other_reasons": sum(found.others.values()),
        "counts": {fate.value: fates[fate] for fate in Fate},
        "reasons": [_reason(reason, group) for reason, group in _groups(letters)],
        "posts_at_most": dict(sorted(posts(found.plans).items())),
        "letters": [_letter(plan) for plan in found.plans],
    }


def _reason(reason: str, group: Sequence[DeadLetter]) -> dict[str, Any]:
    sent = [letter.first_sent_at for letter in group]
    whys = Counter(letter.why for letter in group).most_common()
    return {
        "reason": reason,
        "letters": len(group),
        "oldest_first_sent_at": moment_text(min(sent)),
        "newest_first_sent_at": moment_text(max(sent)),
        "first_deleted_at": moment_text(min(letter.deleted_at for letter in group)),
        "whys": [{"why": why, "letters": count} for why, count in whys],
    }


def _letter(plan: Plan) -> dict[str, Any]:
    letter, subject = plan.letter, plan.letter.subject
    return {
        "message_id": letter.message.message_id,
        "job": None if subject.job is None else subject.job.arn,
        "version": subject.version,
        "notice_id": subject.notice_id,
        "channel": subject.channel,
        "reason": letter.reason,
        "why": letter.why,
        "refusal": subject.refusal,
        "first_sent_at": moment_text(letter.first_sent_at),
        "deleted_at": moment_text(letter.deleted_at),
        "received": letter.received,
        "fate": plan.fate.value,
        "note": plan.note or None,
    }
