"""The commands in the documents exist: the programs parse each word, option and value of them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from infra.deploy import main as deploy
from sageaudit.cli.main import cli
from sageaudit.cli.options import DefaultGroup
from tests.house.test_docs import DOCUMENTS, ROOT
from tools.try_account.__main__ import main as try_account

PAGES = [*DOCUMENTS, *sorted((ROOT / "docs" / "rules").glob("*.md"))]
TARGETS = set(
    re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)
PARSERS = {"deploy": deploy, "try": try_account}
"""The commands of the targets that take ARGS."""
_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(sageaudit|make) ")


def block_lines(document: Path) -> Iterator[str]:
    """Yields the lines of a document's blocks."""
    text = document.read_text(encoding="utf-8").replace("\\\n", " ")
    for block in _BLOCK.findall(text):
        yield from map(str.strip, block.splitlines())


def backtick_lines(document: Path) -> Iterator[str]:
    """Yields the texts in backticks; an option at the end gets a value, as it may lack one."""
    for words in re.findall(r"`([^`]+)`", _BLOCK.sub("", document.read_text(encoding="utf-8"))):
        line = " ".join(words.split())
        yield f"{line} VALUE" if re.search(r"\s--[a-z-]+$", line) else line


def parse_error(line: str) -> str | None:
    """Returns why a command cannot be parsed; None if it can, or if it is not ours."""
    program, *words = shlex.split(line, comments=True)
    try:
        {"make": _make, "sageaudit": _sageaudit}[program](words)
    except click.ClickException as error:
        return f"{line}: {error.format_message()}"
    return None


def _sageaudit(words: list[str]) -> None:
    """Parses a command. Files need not exist, and values are not checked, as they are examples."""
    command: click.Command = cli
    context = click.Context(cli, **cli.context_settings)
    while isinstance(command, DefaultGroup) or (
        isinstance(command, click.Group) and words and not words[0].startswith("-")
    ):
        command.parse_args(context, words)  # `prices TYPE` is `prices show TYPE`
        arguments = [*context._protected_args, *context.args]
        _, subcommand, words = command.resolve_command(context, arguments)
        assert subcommand is not None
        command, context = subcommand, click.Context(subcommand, context)
    command.make_parser(context).parse_args([*words])


def _make(words: list[str]) -> None:
    for word in words:
        name, is_variable, value = word.partition("=")
        if name == "ARGS":
            command = PARSERS[words[0]]
            command.make_parser(click.Context(command)).parse_args(shlex.split(value))
        elif not is_variable and name not in TARGETS:
            raise click.UsageError(f"there is no target {name}")


@pytest.mark.parametrize("document", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_a_document_is_read(document: Path) -> None:
    """The parsers are those of the command line, `make`, and `make deploy`."""
    commands = filter(_COMMAND.match, (*block_lines(document), *backtick_lines(document)))
    assert [why for line in commands if (why := parse_error(line))] == []


@pytest.mark.parametrize(
    "line",
    [
        "sageaudit scann",
        "sageaudit scan --hop",
        "sageaudit export -o",
        "make coffee",
        'make deploy ARGS="--where here"',
        "make try ARGS=--bootstrap",
    ],
)
def test_a_command_that_there_is_not_is_refused(line: str) -> None:
    """Mistakes in commands of `sageaudit` and of `make` are found."""
    assert parse_error(line) is not None
