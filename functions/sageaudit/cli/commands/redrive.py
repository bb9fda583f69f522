"""`sageaudit redrive`: shows the dead letters of a stack, and sends them again or deletes them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.history.dynamo.stream_position import StreamPosition, decisions_at
from sageaudit.cli import options
from sageaudit.cli.exits import Exit, exit_of
from sageaudit.cli.messages import echo_json, say
from sageaudit.cli.support.account.accounts import open_session
from sageaudit.cli.support.doctor.permissions import STACK
from sageaudit.cli.support.redrive import deleting, redrive_queues, view
from sageaudit.cli.support.redrive.dead_letters import Kind, region_of, table_of
from sageaudit.cli.support.redrive.deleting import KeptLetters
from sageaudit.cli.support.redrive.redrive_queues import RedriveQueues
from sageaudit.cli.support.redrive.redriving import (
    HOLD_S,
    BatchReader,
    Fate,
    Held,
    Plan,
    Rules,
    move,
    planned,
)
from sageaudit.cli.support.scan.interruption import Interruption
from sageaudit.cli.support.scan.view import may_ask
from sageaudit.errors import AwsError, BadUsage, SageauditError
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.text.words import counted

_LINE_EVERY_S = 10.0
_EPILOG = """\b
Examples:
  sageaudit redrive notices --dry-run
  sageaudit redrive notices --reason channel_broken --limit 1
  sageaudit redrive finished --stack SageAudit --region eu-west-1 --yes
  sageaudit redrive undecided --from URL --to URL
  sageaudit redrive finished --delete --dry-run"""


@click.command(epilog=_EPILOG)
@click.argument("kind", type=click.Choice([kind.value for kind in Kind]))
@click.option("--dry-run", is_flag=True, help="Show what would be done; do nothing.")
@click.option("--reason", metavar="WORD", help="Only letters with this reason.")
@click.option("--limit", type=options.ROWS, help="Take at most so many, the oldest first.")
@click.option("--all", "everything", is_flag=True, help="Move also what will be refused again.")
@click.option(
    "--delete",
    is_flag=True,
    help="Delete instead: what was refused for good, or with --reason all letters of that reason.",
)
@click.option(
    "--keep",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="New file for what is deleted; by default in the current folder.",
)
@click.option("--yes", is_flag=True, help="Do not ask before letters are moved or deleted.")
@click.option("--stack", metavar="NAME", help=f"Stack to find the queues by; default {STACK}.")
@click.option("--from", "source", metavar="URL", help="Queue of dead letters, in place of --stack.")
@click.option(
    "--to",
    "targets",
    metavar="URL",
    multiple=True,
    help="Queue to send to, with --from; for notices CHANNEL=URL, once for each channel.",
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
    everything: bool,
    delete: bool,
    keep: Path | None,
    yes: bool,
    stack: str | None,
    source: str | None,
    targets: tuple[str, ...],
    region: str | None,
    profile: str | None,
    output: str,
    no_color: bool,
) -> int:
    """Shows dead letters and why; sends them again, or deletes them.

    finished: jobs that were not audited. undecided: audits without a decision whether to post.
    notices: messages that were not posted. Each letter is sent to its work queue as a new message,
    then deleted.
    """
    if reason == "":
        raise BadUsage("--reason is empty: name a reason, as --dry-run shows them")
    kind_asked, rules, now = Kind(kind), Rules(reason, limit, everything), datetime.now(UTC)
    if delete:
        _check_delete(rules, targets, sure=yes or dry_run)
    elif keep:
        raise BadUsage("--keep names the file for what --delete deletes: give both, or neither")
    queues = _queues(
        open_session(profile, region), kind_asked, stack, source, targets, delete=delete
    )
    session = open_session(profile, queues.region)
    kept = _kept(queues, keep, now, dry_run=dry_run) if delete else None
    held = Held(queues.dead_letters, kind_asked, time.monotonic)
    say(f"reading the dead letters in {queues.dead_letters.name} ({queues.region})")
    error: SageauditError | None = None
    with Interruption(say) as interruption:
        try:
            held.read(now, wished=lambda: interruption.wished)
            plans = _planned(held, queues, session, rules, deleting_them=delete)
            found = _found(held, queues, plans, dry_run=dry_run, deleting_them=delete)
            if dry_run:
                _release(held)
            if output == "table":
                view.show(found, now, console_for(no_color=no_color))
            if not dry_run and not interruption.wished:
                _ask(found, interruption, output, yes=yes)
                error = _do(found.plans, held, queues, kept, interruption)
        finally:
            _release(held)
    if kept is not None and kept.made:
        found = replace(found, kept_in=str(kept.path))
    return _end(replace(found, interrupted=interruption.wished), error, output)


def _check_delete(rules: Rules, targets: tuple[str, ...], *, sure: bool) -> None:
    """Raises BadUsage."""
    if rules.everything and rules.reason is None:
        raise BadUsage(
            "--delete --all would also delete what can still succeed: leave out --all, or name a"
            " --reason"
        )
    if targets:
        raise BadUsage("--delete sends nothing: leave out --to")
    if not sure and not may_ask():
        raise BadUsage("cannot ask without a terminal: give --yes, or --dry-run to see first")


def _kept(queues: RedriveQueues, keep: Path | None, now: datetime, *, dry_run: bool) -> KeptLetters:
    dead_letters = queues.dead_letters
    path = keep or deleting.default_file(dead_letters.name, now)
    kept = KeptLetters(path, dead_letters.url)
    if not dry_run:
        kept.check_free()
    return kept


def _planned(
    held: Held, queues: RedriveQueues, session: Any, rules: Rules, *, deleting_them: bool
) -> list[Plan]:
    letters, reader = held.letters.values(), _batch_reader(session, queues)
    if deleting_them:
        return deleting.doomed(letters, rules, reader)
    return planned(letters, queues.work, rules, reader)


def _do(
    plans: Sequence[Plan],
    held: Held,
    queues: RedriveQueues,
    kept: KeptLetters | None,
    interruption: Interruption,
) -> SageauditError | None:
    if kept is None:
        return move(plans, held, queues.work, _Watch(interruption, "moved"))
    return deleting.delete(plans, held, kept, _Watch(interruption, "deleted"))


def _found(
    held: Held, queues: RedriveQueues, plans: Sequence[Plan], *, dry_run: bool, deleting_them: bool
) -> view.Redriven:
    chosen = {plan.letter.message.message_id for plan in plans}
    letters = held.letters.values()
    others = Counter(one.reason for one in letters if one.message.message_id not in chosen)
    name = queues.dead_letters.name
    return view.Redriven(
        held.kind, name, queues.region, plans, others, dry_run, held.more, deleting_them
    )


def _release(held: Held) -> None:
    """Lets others receive the letters that are still here, now or later."""
    letters = len(held.letters)
    try:
        held.release()
    except AwsError as error:
        say(
            f"{counted(letters, 'letter')} could not be shown to others again at once: they can be"
            f" received again in {HOLD_S // 60} minutes ({error})"
        )


def _ask(found: view.Redriven, interruption: Interruption, output: str, *, yes: bool) -> None:
    """Where somebody can answer. Raises Abort."""
    going = sum(plan.fate in {Fate.MOVES, Fate.DELETES} for plan in found.plans)
    if not going or yes or not may_ask():
        return
    warned = view.warning(found)
    if output == "json" and warned is not None:
        say(warned)
    letters = counted(going, "letter")
    question = f"Delete {letters} for ever?" if found.deleting else f"Send {letters} again?"
    try:
        with interruption.question():
            click.confirm(question, abort=True, err=True)
    except click.Abort:
        say(f"nothing was {'deleted' if found.deleting else 'moved'}")
        raise


class _Watch:
    """Says now and then how far it is, and whether to go on."""

    def __init__(self, interruption: Interruption, done: str) -> None:
        self._interruption = interruption
        self._done = done
        self._said = time.monotonic()

    def stops(self, done: int, letters: int) -> bool:
        """Whether somebody wished the end, asked before each batch."""
        if time.monotonic() - self._said >= _LINE_EVERY_S:
            self._said = time.monotonic()
            say(f"{self._done} {done:,} of {counted(letters, 'letter')}")
        return self._interruption.wished


def _end(found: view.Redriven, error: SageauditError | None, output: str) -> int:
    if output == "json":
        echo_json(view.document(replace(found, error=None if error is None else str(error))))
    for line in view.result_lines(found):
        say(line)
    if error is not None:
        say(str(error))
        return int(exit_of(error))
    if found.interrupted:
        return int(Exit.INTERRUPTED)
    failed = any(plan.fate is Fate.FAILED for plan in found.plans)
    return int(Exit.FAILURE if failed else Exit.DONE)


def _queues(
    session: Any,
    kind: Kind,
    stack: str | None,
    source: str | None,
    targets: tuple[str, ...],
    *,
    delete: bool,
) -> RedriveQueues:
    if bool(source) != bool(targets) and not delete:
        raise BadUsage("--from and --to belong together: give both, or find the queues by --stack")
    if source:
        if stack:
            raise BadUsage("give either --stack, or --from and --to")
        return redrive_queues.of_urls(session, kind, source, targets)
    return redrive_queues.of_stack(session, stack or STACK, kind)


def _batch_reader(session: Any, queues: RedriveQueues) -> BatchReader:
    def read(position: StreamPosition) -> list[str]:
        if region_of(position) != queues.region:
            raise ValueError("its stream is of another region")
        if queues.table is not None and table_of(position) != queues.table:
            raise ValueError("its stream is of another table")
        return decisions_at(client(session, "dynamodbstreams", queues.region), position)

    return read
