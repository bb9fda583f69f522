"""`sageaudit redrive`: shows the dead letters of a stack, and sends them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.history.codec import moment_text
from sageaudit.cli import options
from sageaudit.cli.messages import echo_json, may_ask, say
from sageaudit.cli.views.formats import moment
from sageaudit.errors import AwsError, BadUsage
from sageaudit.exits import Exit, exit_of
from sageaudit.output.terminal.layout import console_for, plain_table
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import counted
from sageaudit.workflows.doctor.permissions import STACK
from sageaudit.workflows.redrive import (
    HOLD_S,
    DeadLetter,
    Fate,
    LetterKind,
    RedriveQueues,
    move,
    planned,
    queues_of,
)
from sageaudit.workflows.redrive import read as read_letters

_WHYS = 3
"""Different sentences shown for one reason."""
_NAMES = {
    LetterKind.FINISHED: "jobs that were not audited",
    LetterKind.UNDECIDED: "audits without a decision whether to post",
    LetterKind.NOTICES: "notices that were not posted",
}
_EPILOG = """\b
Examples:
  sageaudit redrive notices --dry-run
  sageaudit redrive notices --reason channel_broken --limit 1
  sageaudit redrive finished --stack SageAudit --region eu-west-1 --yes"""


@click.command(epilog=_EPILOG)
@click.argument("kind", type=click.Choice([kind.value for kind in LetterKind]))
@click.option("--dry-run", is_flag=True, help="Show what would be done; do nothing.")
@click.option(
    "--reason", metavar="WORD", help="Only letters with this reason, also those refused for good."
)
@click.option("--limit", type=options.ROWS, help="Send at most so many, the oldest first.")
@click.option("--yes", is_flag=True, help="Do not ask before letters are sent.")
@click.option(
    "--stack", metavar="NAME", default=STACK, show_default=True, help="Stack to find the queues by."
)
@click.option("--region", help="AWS region of the stack; by default that of your AWS settings.")
@options.PROFILE
@options.OUTPUT
@options.NO_COLOR
def redrive(
    kind: str,
    dry_run: bool,
    reason: str | None,
    limit: int | None,
    yes: bool,
    stack: str,
    region: str | None,
    profile: str | None,
    output: str,
    no_color: bool,
) -> int:
    """Shows dead letters and why; sends them again.

    finished: jobs that were not audited. undecided: audits without a decision whether to post, and
    messages that did not reach their queue. notices: messages that were not posted. Each letter is
    sent to its work queue as a new message, then deleted.
    """
    if reason == "":
        raise BadUsage("--reason is empty: name a reason, as --dry-run shows them")
    session, asked, now = open_session(profile, region), LetterKind(kind), datetime.now(UTC)
    queues = queues_of(session, stack, asked)
    say(f"reading the dead letters in {queues.dead_letters.name} ({session.region_name})")
    letters: list[DeadLetter] = []
    error: AwsError | None = None
    try:
        letters, more = read_letters(queues.dead_letters, asked, now)
        chosen = planned(letters, queues, reason, limit)
        if output == "table":
            _show(chosen, asked, console_for(no_color=no_color))
        if not dry_run:
            _ask(chosen, yes=yes)
            error = move(chosen, queues)
    finally:
        _show_again(letters, queues)
    others = len(letters) - len(chosen)
    if output == "json":
        failed = None if error is None else str(error)
        asked_for = {"schema": 1, "kind": kind, "dry_run": dry_run, "error": failed, "more": more}
        echo_json(asked_for | {"other_reasons": others} | _document(chosen))
    for line in _result_lines(chosen, queues, dry_run=dry_run):
        say(line)
    if others:
        say(f"{counted(others, 'letter')} of other reasons: left alone")
    if more:
        say("there are more letters: run the same command again")
    if error is not None:
        say(str(error))
        return int(exit_of(error))
    failed_one = any(letter.fate is Fate.FAILED for letter in chosen)
    return int(Exit.FAILURE if failed_one else Exit.DONE)


def _ask(letters: Sequence[DeadLetter], *, yes: bool) -> None:
    """Where somebody can answer. Raises Abort."""
    going = sum(letter.fate is Fate.MOVES for letter in letters)
    if going and not yes and may_ask():
        click.confirm(f"Send {counted(going, 'letter')} again?", abort=True, err=True)


def _show_again(letters: list[DeadLetter], queues: RedriveQueues) -> None:
    """Lets others receive the letters that are still here."""
    left = [one.message.receipt_handle for one in letters if one.fate is not Fate.MOVED]
    try:
        queues.dead_letters.show_again(left)
    except AwsError as error:
        say(f"others can receive these letters again in {HOLD_S // 60} minutes only ({error})")


def _show(letters: Sequence[DeadLetter], kind: LetterKind, console: Console) -> None:
    """Prints the letters by reason, then each of them, the oldest first."""
    console.print(Text(f"{counted(len(letters), 'dead letter')}: {_NAMES[kind]}", "bold"))
    for reason, count in Counter(letter.reason for letter in letters).most_common():
        console.print(Text(f"{count:,} {terminal(reason)}"))
        whys = Counter(letter.why for letter in letters if letter.reason == reason)
        for why, times in whys.most_common(_WHYS):
            console.print(Text(f"  {times:,}: {terminal(why) or 'no sentence was given'}"))
    if letters:
        table = plain_table("First sent", "Letter", unbroken={"First sent"})
        for letter in letters:
            table.add_row(Text(moment(letter.first_sent_at)), Text(_line(letter)))
        console.print(table)


def _line(letter: DeadLetter) -> str:
    """`moves slack: train-bert v2, channel_broken`, and why it does not move."""
    channel = f"{letter.channel}: " if letter.channel else ""
    name = (letter.job or "unreadable").rpartition("/")[2]
    version = f" v{letter.version}" if letter.version else ""
    note = f"; {letter.note}" if letter.note else ""
    return terminal(f"{letter.fate} {channel}{name}{version}, {letter.reason}{note}")


def _result_lines(
    letters: Sequence[DeadLetter], queues: RedriveQueues, *, dry_run: bool
) -> Iterator[str]:
    """How it went, in sentences."""
    fates = Counter(letter.fate for letter in letters)
    if dry_run:
        goes = counted(fates[Fate.MOVES], "letter")
        yield f"--dry-run: {goes} would move, {fates[Fate.STAYS]:,} would stay"
        return
    to = sorted({queues.work[one.channel].name for one in letters if one.fate is Fate.MOVED})
    moved = f"moved {counted(fates[Fate.MOVED], 'letter')}"
    words = [f"{moved} to {' and '.join(to)}" if to else moved]
    words += [f"{fates[Fate.STAYS]:,} stay"] if fates[Fate.STAYS] else []
    words += [f"{fates[Fate.FAILED]:,} failed"] if fates[Fate.FAILED] else []
    yield ", ".join(words)
    notes = (one.note for one in letters if one.fate in {Fate.FAILED, Fate.MOVED} and one.note)
    for note, count in Counter(notes).most_common(_WHYS):
        yield f"{count:,}: {note}"


def _document(letters: Sequence[DeadLetter]) -> dict[str, Any]:
    fates = Counter(letter.fate for letter in letters)
    return {
        "counts": {fate.value: fates[fate] for fate in Fate},
        "letters": [_letter(letter) for letter in letters],
    }


def _letter(letter: DeadLetter) -> dict[str, Any]:
    return {
        "message_id": letter.message.message_id,
        "job": letter.job,
        "version": letter.version,
        "channel": letter.channel or None,
        "reason": letter.reason,
        "why": letter.why,
        "first_sent_at": moment_text(letter.first_sent_at),
        "deleted_at": moment_text(letter.deleted_at),
        "fate": letter.fate.value,
        "note": letter.note or None,
    }
