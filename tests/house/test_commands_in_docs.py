"""The documents' commands are those that there are: each word, option and value is read by them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from infra.deploy import main as deploy
from sageaudit.cli.main import commands
from tests.house.test_docs import DOCUMENTS, ROOT

PAGES = [*DOCUMENTS, *sorted((ROOT / "docs" / "rules").glob("*.md"))]
TARGETS = set(
    re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)
_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|[\s(|])((?:sageaudit|make) [^|>]*)")


def lines(document: Path) -> Iterator[str]:
    """The commands of a document's blocks, and those in backticks, without their comments."""
    text = document.read_text(encoding="utf-8").replace("\\\n", " ")
    pasted = [line for block in _BLOCK.findall(text) for line in block.splitlines()]
    quoted = re.findall(r"`([^`]+)`", _BLOCK.sub("", text))
    for line in (*pasted, *(" ".join(words.split()) for words in quoted)):
        if found := re.match(r"(?:\$ )?((?:sageaudit|make) .*)", line.strip()):
            yield found[1]


def refused(line: str) -> str | None:
    """Why the command of a line cannot be read; None where it can."""
    program, *words = shlex.split(line, comments=True)
    try:
        if program == "make":
            _make(words)
        else:
            _sageaudit(words)
    except (click.ClickException, ValueError) as error:
        return f"{line}: {error.format_message() if isinstance(error, click.ClickException) else error}"
    return None


def _sageaudit(words: list[str]) -> None:
    """Files need not be there, and no value is checked: what they are depends on the reader."""
    command: click.Command = commands
    context = click.Context(commands, info_name="sageaudit")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, context)
    command.make_parser(context).parse_args(list(words))


def _make(words: list[str]) -> None:
    for word in words:
        name, is_variable, value = word.partition("=")
        if name == "ARGS":
            deploy.make_parser(click.Context(deploy)).parse_args(shlex.split(value))
        elif not is_variable and name not in TARGETS:
            raise ValueError(f"no target {name}")


@pytest.mark.parametrize("document", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_a_document_is_read(document: Path) -> None:
    """By the command line, `make`, and `make deploy`."""
    assert [why for line in lines(document) if (why := refused(line))] == []
