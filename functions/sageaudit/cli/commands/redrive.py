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
from sageaudit.cli.messages import can_ask, print_json, print_message
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
    receive_letters,
)

_MAX_EXPLANATIONS = 3
"""How many different explanations of one reason are shown."""
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
@click.option("--dry-run", is_flag=True, help="Show what would be done, but do nothing.")
@click.option(
    "--reason",
    metavar="WORD",
    help="Send only letters with this reason, even those that were refused for good.",
)
@click.option(
    "--limit", type=options.ROW_COUNT, help="Send at most this many letters, the oldest first."
)
@click.option("--yes", is_flag=True, help="Do not ask before letters are sent.")
@click.option(
    "--stack",
    metavar="NAME",
    default=DEFAULT_STACK,
    show_default=True,
    help="Stack whose queues to use.",
)
@options.region_option("AWS region of the stack; by default that of your AWS settings.")
@options.PROFILE_OPTION
@options.OUTPUT_OPTION
@options.NO_COLOR_OPTION
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
    """Shows dead letters and their reasons, and sends them again.

    finished: jobs that were not audited. undecided: audits without a decision whether to post, and
    messages that did not reach their queue. notices: messages that were not posted. Each letter is
    sent to its work queue as a new message, then deleted.
    """
    if reason == "":
        raise BadUsage("--reason is empty: name a reason that --dry-run shows")
    session, letter_kind, now = open_session(profile, region), LetterKind(kind), datetime.now(UTC)
    queues = find_queues(session, stack, letter_kind)
    print_message(f"reading the dead letters in {queues.dead_letters.name} ({session.region_name})")
    letters: list[DeadLetter] = []
    move_error: AwsError | None = None
    try:
        letters, has_more = receive_letters(queues.dead_letters, letter_kind, now)
        chosen_letters = plan_redrive(letters, queues, reason, limit)
        if output == "table":
            _show(chosen_letters, letter_kind, make_console(no_color=no_color))
        if not dry_run:
            _confirm(chosen_letters, yes=yes)
            move_error = move_letters(chosen_letters, queues)
    finally:
        _release_letters(letters, queues)
    other_count = len(letters) - len(chosen_letters)
    if output == "json":
        failed = None if move_error is None else str(move_error)
        header = {"schema": 1, "kind": kind, "dry_run": dry_run, "error": failed, "more": has_more}
        print_json(header | {"other_reasons": other_count} | _document(chosen_letters))
    for line in _result_lines(chosen_letters, queues, dry_run=dry_run):
        print_message(line)
    if other_count:
        print_message(f"{count_text(other_count, 'letter')} with other reasons: not sent")
    if has_more:
        print_message("there are more letters: run the same command again")
    if move_error is not None:
        print_message(str(move_error))
        return int(exit_for(move_error))
    has_failed = any(letter.status is LetterStatus.FAILED for letter in chosen_letters)
    return int(Exit.FAILURE if has_failed else Exit.DONE)


def _confirm(letters: Sequence[DeadLetter], *, yes: bool) -> None:
    """Asks whether to send the letters again. Raises Abort for a no.

    Returns without a question if `yes` is set, if no letter would be sent, or if there is no
    terminal.
    """
    count = sum(letter.status is LetterStatus.MOVES for letter in letters)
    if count and not yes and can_ask():
        click.confirm(f"Send {count_text(count, 'letter')} again?", abort=True, err=True)


def _release_letters(letters: list[DeadLetter], queues: RedriveQueues) -> None:
    """Makes the letters that were not moved visible to other receivers."""
    handles = [
        letter.message.receipt_handle
        for letter in letters
        if letter.status is not LetterStatus.MOVED
    ]
    try:
        queues.dead_letters.make_visible(handles)
    except AwsError as error:
        print_message(
            f"these letters stay hidden from others for {HIDDEN_S // 60} minutes ({error})"
        )


def _show(letters: Sequence[DeadLetter], kind: LetterKind, console: Console) -> None:
    console.print(Text(f"{count_text(len(letters), 'dead letter')}: {_NAMES[kind]}", "bold"))
    for reason, count in Counter(letter.reason for letter in letters).most_common():
        console.print(Text(f"{count:,} {for_terminal(reason)}"))
        explanations = Counter(letter.explanation for letter in letters if letter.reason == reason)
        for explanation, times in explanations.most_common(_MAX_EXPLANATIONS):
            console.print(Text(f"  {times:,}: {for_terminal(explanation) or 'no explanation'}"))
    if letters:
        table = plain_table("First sent", "Letter", unbroken={"First sent"})
        for letter in letters:
            table.add_row(Text(format_moment(letter.first_sent_at)), Text(_line(letter)))
        console.print(table)


def _line(letter: DeadLetter) -> str:
    """Returns a line such as `moves slack: train-bert v2, channel_broken`."""
    channel = f"{letter.channel}: " if letter.channel else ""
    subject = letter.subject or "unreadable"
    name = subject.rpartition("/")[2] if subject.startswith("arn:") else subject
    version = f" v{letter.version}" if letter.version else ""
    note = f"; {letter.note}" if letter.note else ""
    return for_terminal(f"{letter.status} {channel}{name}{version}, {letter.reason}{note}")


def _result_lines(
    letters: Sequence[DeadLetter], queues: RedriveQueues, *, dry_run: bool
) -> Iterator[str]:
    counts = Counter(letter.status for letter in letters)
    if dry_run:
        text = count_text(counts[LetterStatus.MOVES], "letter")
        yield f"--dry-run: {text} would move, {counts[LetterStatus.STAYS]:,} would stay"
        return
    queue_names = sorted(
        {
            queues.work_queues[letter.channel].name
            for letter in letters
            if letter.status is LetterStatus.MOVED
        }
    )
    moved_text = f"moved {count_text(counts[LetterStatus.MOVED], 'letter')}"
    parts = [f"{moved_text} to {' and '.join(queue_names)}" if queue_names else moved_text]
    parts += [f"{counts[LetterStatus.STAYS]:,} stay"] if counts[LetterStatus.STAYS] else []
    parts += [f"{counts[LetterStatus.FAILED]:,} failed"] if counts[LetterStatus.FAILED] else []
    yield ", ".join(parts)
    notes = (
        letter.note
        for letter in letters
        if letter.status in {LetterStatus.FAILED, LetterStatus.MOVED} and letter.note
    )
    for note, count in Counter(notes).most_common(_MAX_EXPLANATIONS):
        yield f"{count:,}: {note}"


def _document(letters: Sequence[DeadLetter]) -> dict[str, Any]:
    counts = Counter(letter.status for letter in letters)
    return {
        "counts": {status.value: counts[status] for status in LetterStatus},
        "letters": [_letter(letter) for letter in letters],
    }


def _letter(letter: DeadLetter) -> dict[str, Any]:
    return {
        "message_id": letter.message.message_id,
        "subject": letter.subject,
        "version": letter.version,
        "channel": letter.channel or None,
        "reason": letter.reason,
        "why": letter.explanation,
        "first_sent_at": moment_text(letter.first_sent_at),
        "deleted_at": moment_text(letter.deleted_at),
        "status": letter.status.value,
        "note": letter.note or None,
    }
