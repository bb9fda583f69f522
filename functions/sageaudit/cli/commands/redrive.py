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
from sageaudit.cli.messages import may_ask, print_json, print_message
from sageaudit.cli.views.formats import format_moment
from sageaudit.errors import AwsError, BadUsage
from sageaudit.exits import Exit, exit_for
from sageaudit.output.terminal.layout import make_console, plain_table
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.doctor.permissions import DEFAULT_STACK
from sageaudit.workflows.redrive import (
    HIDDEN_S,
    DeadLetter,
    LetterKind,
    LetterStatus,
    RedriveQueues,
    find_queues,
    move_letters,
    plan_redrive,
)
from sageaudit.workflows.redrive import receive_letters as read_letters

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
@click.option("--limit", type=options.ROW_COUNT, help="Send at most so many, the oldest first.")
@click.option("--yes", is_flag=True, help="Do not ask before letters are sent.")
@click.option(
    "--stack",
    metavar="NAME",
    default=DEFAULT_STACK,
    show_default=True,
    help="Stack to find the queues by.",
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
    queues = find_queues(session, stack, asked)
    print_message(f"reading the dead letters in {queues.dead_letters.name} ({session.region_name})")
    letters: list[DeadLetter] = []
    error: AwsError | None = None
    try:
        letters, more = read_letters(queues.dead_letters, asked, now)
        chosen = plan_redrive(letters, queues, reason, limit)
        if output == "table":
            _show(chosen, asked, make_console(no_color=no_color))
        if not dry_run:
            _confirm(chosen, yes=yes)
            error = move_letters(chosen, queues)
    finally:
        _release_letters(letters, queues)
    others = len(letters) - len(chosen)
    if output == "json":
        failed = None if error is None else str(error)
        asked_for = {"schema": 1, "kind": kind, "dry_run": dry_run, "error": failed, "more": more}
        print_json(asked_for | {"other_reasons": others} | _document(chosen))
    for line in _result_lines(chosen, queues, dry_run=dry_run):
        print_message(line)
    if others:
        print_message(f"{count_text(others, 'letter')} of other reasons: left alone")
    if more:
        print_message("there are more letters: run the same command again")
    if error is not None:
        print_message(str(error))
        return int(exit_for(error))
    failed_one = any(letter.fate is LetterStatus.FAILED for letter in chosen)
    return int(Exit.FAILURE if failed_one else Exit.DONE)


def _confirm(letters: Sequence[DeadLetter], *, yes: bool) -> None:
    """Where somebody can answer. Raises Abort."""
    going = sum(letter.fate is LetterStatus.MOVES for letter in letters)
    if going and not yes and may_ask():
        click.confirm(f"Send {count_text(going, 'letter')} again?", abort=True, err=True)


def _release_letters(letters: list[DeadLetter], queues: RedriveQueues) -> None:
    """Lets others receive the letters that are still here."""
    left = [one.message.receipt_handle for one in letters if one.fate is not LetterStatus.MOVED]
    try:
        queues.dead_letters.make_visible(left)
    except AwsError as error:
        print_message(
            f"others can receive these letters again in {HIDDEN_S // 60} minutes only ({error})"
        )


def _show(letters: Sequence[DeadLetter], kind: LetterKind, console: Console) -> None:
    """Prints the letters by reason, then each of them, the oldest first."""
    console.print(Text(f"{count_text(len(letters), 'dead letter')}: {_NAMES[kind]}", "bold"))
    for reason, count in Counter(letter.reason for letter in letters).most_common():
        console.print(Text(f"{count:,} {for_terminal(reason)}"))
        whys = Counter(letter.why for letter in letters if letter.reason == reason)
        for why, times in whys.most_common(_WHYS):
            console.print(Text(f"  {times:,}: {for_terminal(why) or 'no sentence was given'}"))
    if letters:
        table = plain_table("First sent", "Letter", unbroken={"First sent"})
        for letter in letters:
            table.add_row(Text(format_moment(letter.first_sent_at)), Text(_line(letter)))
        console.print(table)


def _line(letter: DeadLetter) -> str:
    """`moves slack: train-bert v2, channel_broken`, and why it does not move."""
    channel = f"{letter.channel}: " if letter.channel else ""
    name = (letter.job or "unreadable").rpartition("/")[2]
    version = f" v{letter.version}" if letter.version else ""
    note = f"; {letter.note}" if letter.note else ""
    return for_terminal(f"{letter.fate} {channel}{name}{version}, {letter.reason}{note}")


def _result_lines(
    letters: Sequence[DeadLetter], queues: RedriveQueues, *, dry_run: bool
) -> Iterator[str]:
    """How it went, in sentences."""
    fates = Counter(letter.fate for letter in letters)
    if dry_run:
        goes = count_text(fates[LetterStatus.MOVES], "letter")
        yield f"--dry-run: {goes} would move, {fates[LetterStatus.STAYS]:,} would stay"
        return
    to = sorted(
        {queues.work_queues[one.channel].name for one in letters if one.fate is LetterStatus.MOVED}
    )
    moved = f"moved {count_text(fates[LetterStatus.MOVED], 'letter')}"
    words = [f"{moved} to {' and '.join(to)}" if to else moved]
    words += [f"{fates[LetterStatus.STAYS]:,} stay"] if fates[LetterStatus.STAYS] else []
    words += [f"{fates[LetterStatus.FAILED]:,} failed"] if fates[LetterStatus.FAILED] else []
    yield ", ".join(words)
    notes = (
        one.note
        for one in letters
        if one.fate in {LetterStatus.FAILED, LetterStatus.MOVED} and one.note
    )
    for note, count in Counter(notes).most_common(_WHYS):
        yield f"{count:,}: {note}"


def _document(letters: Sequence[DeadLetter]) -> dict[str, Any]:
    fates = Counter(letter.fate for letter in letters)
    return {
        "counts": {fate.value: fates[fate] for fate in LetterStatus},
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
