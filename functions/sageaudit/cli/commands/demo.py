"""`sageaudit demo`: writes the history of an example company, and prints commands to try."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path

import click

from sageaudit.adapters.history import opened as histories
from sageaudit.cli import clock, query_output
from sageaudit.cli.messages import print_message
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.example import run as example_history

EXAMPLE_COMMANDS = (
    ("by week", "what it spent, and how much of that was avoidable or lost"),
    ("top --limit 5", "the most wasteful jobs"),
    ("show speech-encoder-24", "why one of them cost so much, and what to change"),
    ("advice", "the open recommendations"),
    (
        "savings",
        "how much the recommendations saved that you followed, from the bills before and after",
    ),
    ("changes --since 7d", "which families cost more, cost less, are new or gone"),
    ("history --owner ana --since 7d", "the newest audits of one person's jobs"),
    ("report --since 27d -o example.html", "four weeks as a page, beside the four weeks before"),
)
"""Commands to try, and what each one shows."""
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
    " replaced; a history with other audits never is.",
)
def demo(path: Path | None) -> None:
    """Writes the history of an example company, to try the commands on.

    The company ran about 300 jobs in the eight weeks until yesterday. The jobs are made up, and
    audited like recorded jobs, without calls to AWS. Your own history is not changed.
    """
    if path is None:
        path = example_history.default_path()
        histories.create_private_folder(path.parent)
    example_history.remove_example(path)
    last_day = clock.utc_now().date() - timedelta(days=1)
    with histories.open_history(path, None, None, None, create=True, warn=print_message) as source:
        audits = example_history.record_example(source.history, last_day)
        count = sum(1 for _ in query_output.with_progress(audits, "made-up job", "auditing"))
    click.echo(
        f"The example company is made up. The history has {count_text(count, 'audit')} of its jobs;"
        f" the last job ended on {last_day}.\nWritten to {for_terminal(str(path))}\n\nTry:"
    )
    for command_line, description in EXAMPLE_COMMANDS:
        click.echo(f"\n# {description}\n{example_command(command_line, path)}")


def example_command(command_line: str, path: Path) -> str:
    """Returns the command for this history, to be pasted into a shell."""
    return f"sageaudit {command_line} --history {for_terminal(shlex.quote(str(path)))}"
