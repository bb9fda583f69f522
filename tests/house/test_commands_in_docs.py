"""The documents' commands are those that there are: each word, option and value is read by them."""

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

PAGES = [*DOCUMENTS, *sorted((ROOT / "docs" / "rules").glob("*.md"))]
TARGETS = set(
    re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)
_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(sageaudit|make) ")


def pasted(document: Path) -> Iterator[str]:
    """The lines of a document's blocks."""
    text = document.read_text(encoding="utf-8").replace("\\\n", " ")
    for block in _BLOCK.findall(text):
        yield from map(str.strip, block.splitlines())


def named(document: Path) -> Iterator[str]:
    """What stands in backticks; an option there may be without its value."""
    for words in re.findall(r"`([^`]+)`", _BLOCK.sub("", document.read_text(encoding="utf-8"))):
        line = " ".join(words.split())
        yield f"{line} VALUE" if re.search(r"\s--[a-z-]+$", line) else line


def refused(line: str) -> str | None:
    """Why a command cannot be read; None where it can, and of what is no command of ours."""
    program, *words = shlex.split(line, comments=True)
    try:
        {"make": _make, "sageaudit": _sageaudit}[program](words)
    except click.ClickException as error:
        return f"{line}: {error.format_message()}"
    return None


def _sageaudit(words: list[str]) -> None:
    """Files need not be there, and no value is checked: what they are depends on the reader."""
    command: click.Command = cli
    context = click.Context(cli, **cli.context_settings)
    while isinstance(command, DefaultGroup) or (
        isinstance(command, click.Group) and words and not words[0].startswith("-")
    ):
        command.parse_args(context, words)  # `prices TYPE` is `prices show TYPE`
        given = [*context._protected_args, *context.args]
        _, found, words = command.resolve_command(context, given)
        assert found is not None
        command, context = found, click.Context(found, context)
    command.make_parser(context).parse_args([*words])


def _make(words: list[str]) -> None:
    for word in words:
        name, is_variable, value = word.partition("=")
        if name == "ARGS":
            deploy.make_parser(click.Context(deploy)).parse_args(shlex.split(value))
        elif not is_variable and name not in TARGETS:
            raise click.UsageError(f"there is no target {name}")


@pytest.mark.parametrize("document", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_a_document_is_read(document: Path) -> None:
    """By the command line, `make`, and `make deploy`."""
    found = filter(_COMMAND.match, (*pasted(document), *named(document)))
    assert [why for line in found if (why := refused(line))] == []


@pytest.mark.parametrize(
    "line",
    [
        "sageaudit scann",
        "sageaudit scan --hop",
        "sageaudit export -o",
        "make coffee",
        'make deploy ARGS="--where here"',
    ],
)
def test_a_command_that_there_is_not_is_refused(line: str) -> None:
    """Of the command line, and of `make`."""
    assert refused(line) is not None
