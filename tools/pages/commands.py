"""Writes docs/commands.md, the reference of all commands, from their help: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.testing import CliRunner

from sageaudit.cli.main import COMMAND_GROUPS, cli
from tools.pages import DOCS

PAGE = DOCS / "commands.md"
_HEAD = """\
# Commands

Each part is the help that a command prints with `-h`. Data goes to stdout, all else to stderr.
"""


def page() -> str:
    """The whole page: the groups of the help, and the help of each command."""
    parts = [_HEAD, _block(_help([]))]
    for title, names in COMMAND_GROUPS.items():
        parts.append(f"## {title}\n")
        for name in names:
            for words in _paths(
                [name], cli.get_command(click.Context(cli, **cli.context_settings), name)
            ):
                parts += [f"### sageaudit {' '.join(words)}\n", _block(_help(words))]
    return "\n".join(parts)


def _paths(words: list[str], command: click.Command | None) -> Iterator[list[str]]:
    """A command, then each of its subcommands."""
    yield words
    if isinstance(command, click.Group):
        for name in command.commands:
            yield [*words, name]


def _help(words: list[str]) -> str:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [*words, "--help"], prog_name="sageaudit")
    return done.output.rstrip()


def _block(text: str) -> str:
    return f"```text\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
