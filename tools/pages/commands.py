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

This page has the help that each command prints with `-h`. Commands print data to stdout, and
everything else to stderr.
"""


def page() -> str:
    """Returns the whole page: the groups of commands, and the help of each command."""
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
    """Yields the words of a command, then those of each subcommand."""
    yield words
    if isinstance(command, click.Group):
        for name in command.commands:
            yield [*words, name]


def _help(words: list[str]) -> str:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [*words, "--help"], prog_name="sageaudit")
    return result.output.rstrip()


def _block(text: str) -> str:
    return f"```text\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
