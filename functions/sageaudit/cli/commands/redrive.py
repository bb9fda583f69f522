"""`sageaudit redrive`: shows the dead letters of a deployed stack, and sends them again."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import click

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.dynamo.stream_position import StreamPosition, decisions_at
from sageaudit.cli import options
from sageaudit.cli.exits import Exit, exit_of
from sageaudit.cli.messages import echo_json, say
from sageaudit.cli.sources import redrive_queues
from sageaudit.cli.sources.dead_letters import Kind, region_of, table_of
from sageaudit.cli.sources.interruption import Interruption
from sageaudit.cli.sources.permissions import STACK
from sageaudit.cli.sources.redrive_queues import RedriveQueues
from sageaudit.cli.sources.redriving import HOLD_S, BatchReader, Fate, Held, Rules, move, planned
from sageaudit.cli.sources.session import open_session
from sageaudit.cli.views import redrive as view
from sageaudit.cli.views.layout import console_for
from sageaudit.cli.views.scan import may_ask
from sageaudit.errors import AwsError, BadUsage
from sageaudit.text.words import counted

_LINE_EVERY_S = 10.0
_EPILOG = """\b
Examples:
  sageaudit redrive notices --dry-run
  sageaudit redrive notices --reason channel_broken --limit 1
  sageaudit redrive finished --stack SageAudit --region eu-west-1 --yes
  sageaudit redrive undecided --from URL --to URL"""


@click.command(epilog=_EPILOG)
@click.argument("kind", type=click.Choice([kind.value for kind in Kind]))
@click.option("--dry-run", is_flag=True, help="Show the letters and what would move; move nothing.")
@click.option("--reason", metavar="WORD", help="Only letters with this reason.")
@click.option("--limit", type=options.ROWS, help="Move at most so many letters, the oldest first.")
@click.option("--all", "everything", is_flag=True, help="Move also what will be refused again.")
@click.option("--yes", is_flag=True, help="Do not ask before letters are moved.")
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
    yes: bool,
    stack: str | None,
    source: str | None,
    targets: tuple[str, ...],
    region: str | None,
    profile: str | None,
    output: str,
    no_color: bool,
) -> int:
    """Shows dead letters with their reasons, and sends them again.

    finished: jobs that were not audited. undecided: audits without a decision. notices: messages
    that were not posted. Each letter is sent to its work queue as a new message, then deleted.
    """
    if reason == "":
        raise BadUsage("--reason is empty: name a reason, as --dry-run shows them")
    kind_asked = Kind(kind)
    queues = _queues(open_session(profile, region), kind_asked, stack, source, targets)
    session = open_session(profile, queues.region)
    now = datetime.now(UTC)
    held = Held(queues.dead_letters, kind_asked, time.monotonic)
    say(f"reading the dead letters in {queues.dead_letters.name} ({queues.region})")
    error = None
    with Interruption(say) as interruption:
        try:
            held.read(now, wished=lambda: interruption.wished)
            found = _found(held, queues, session, Rules(reason, limit, everything), dry_run=dry_run)
            if dry_run:
                _release(held)
            if output == "table":
                view.show(found, now, console_for(no_color=no_color))
            if not dry_run and not interruption.wished:
                _ask(found, interruption, output, yes=yes)
                error = move(found.plans, held, queues.work, _Watch(interruption))
        finally:
            _release(held)
    return _end(replace(found, interrupted=interruption.wished), error, output)


def _found(
    held: Held, queues: RedriveQueues, session: Any, rules: Rules, *, dry_run: bool
) -> view.Redriven:
    plans = planned(held.letters.values(), queues.work, rules, _batch_reader(session, queues))
    others = len(held.letters) - len(plans)
    name = queues.dead_letters.name
    return view.Redriven(held.kind, name, queues.region, plans, others, dry_run, held.more)


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
    moving = sum(plan.fate is Fate.MOVES for plan in found.plans)
    if not moving or yes or not may_ask():
        return
    posted = view.posts_line(found.plans)
    if output == "json" and posted is not None:
        say(posted)
    try:
        with interruption.question():
            click.confirm(f"Send {counted(moving, 'letter')} again?", abort=True, err=True)
    except click.Abort:
        say("nothing was moved")
        raise


class _Watch:
    """Says now and then how far it is, and whether to go on."""

    def __init__(self, interruption: Interruption) -> None:
        self._interruption = interruption
        self._said = time.monotonic()

    def stops(self, done: int, letters: int) -> bool:
        """Whether somebody wished the end, asked before each batch."""
        if time.monotonic() - self._said >= _LINE_EVERY_S:
            self._said = time.monotonic()
            say(f"moved {done:,} of {counted(letters, 'letter')}")
        return self._interruption.wished


def _end(found: view.Redriven, error: AwsError | None, output: str) -> int:
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
    session: Any, kind: Kind, stack: str | None, source: str | None, targets: tuple[str, ...]
) -> RedriveQueues:
    if bool(source) != bool(targets):
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
