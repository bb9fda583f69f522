"""`sageaudit demo`: writes the history of a made-up company, and says what to ask it."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path

import click

from sageaudit.adapters.history import opened as histories
from sageaudit.cli import asking
from sageaudit.cli.messages import print_message
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.example import run as example_history

EXAMPLE_COMMANDS = (
    ("by week", "what it spent, and how much of that was avoidable or lost"),
    ("top --limit 5", "the most wasteful jobs"),
    ("show speech-encoder-24", "why one of them cost so much, and what to change"),
    ("advice", "what was advised"),
    ("savings", "what followed advice saved, by the bills before and after"),
    ("changes --since 7d", "which families cost more, cost less, are new or gone"),
    ("history --owner ana --since 7d", "the newest audits of one person's jobs"),
    ("report -o example.html", "the last 30 days as a page"),
)
"""What the example answers, and what each question is about."""
_EPILOG = """\b
Examples:
  sageaudit demo
  sageaudit demo --history example.db"""


@click.command(epilog=_EPILOG)
@click.option(
    "--history",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; by default example-company.db in your data folder. An earlier example is"
    " replaced, a history with other audits never.",
)
def demo(path: Path | None) -> None:
    """Writes the history of a made-up company, to try the commands on.

    The example company ran about 300 jobs in the eight weeks until yesterday. Its jobs are made up
    and audited as recorded jobs are; AWS is not asked. Your own history is not touched.
    """
    if path is None:
        path = example_history.default_path()
        histories.create_private_folder(path.parent)
    example_history.remove_example(path)
    last_day = asking.utc_now().date() - timedelta(days=1)
    with histories.open_history(path, None, None, None, create=True, warn=print_message) as opened:
        audits = example_history.record_example(opened.history, last_day)
        count = sum(1 for _ in asking.with_progress(audits, "made-up job", "auditing"))
    click.echo(
        f"The example company is made up: {count_text(count, 'audit')} of its jobs, the last of"
        f" {last_day}.\nWritten to {for_terminal(str(path))}\n\nAsk it:"
    )
    for words, about in EXAMPLE_COMMANDS:
        click.echo(f"\n# {about}\n{example_command(words, path)}")


def example_command(words: str, path: Path) -> str:
    """The command that asks this history, to be pasted into a shell."""
    return f"sageaudit {words} --history {for_terminal(shlex.quote(str(path)))}"
