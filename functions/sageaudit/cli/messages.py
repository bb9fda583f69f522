"""Prints messages to stderr and JSON to stdout."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import TypeVar

import click

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.errors import HistoryFileError, SageauditError
from sageaudit.exits import Exit, exit_for
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.token_shapes import redact

T = TypeVar("T")
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that control a terminal or reverse a line."""


def print_message(text: str) -> None:
    """Prints one message to stderr, without control characters and tokens."""
    click.echo(f"sageaudit: {for_terminal(redact(text))}", err=True)


def can_ask() -> bool:
    """Returns True if a person can answer: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def print_json(value: object) -> None:
    """Prints one line of JSON. Control, format and separator characters are escaped.

    They are escaped in a pipe too, which may end at a terminal.
    """
    click.echo(json_line(value))


def json_line(value: object) -> str:
    """Returns one line of JSON with control, format and separator characters as escapes."""
    return escape_json(to_json(value))


def escape_json(text: str) -> str:
    """Returns JSON text with control, format and separator characters as escapes."""
    return _NOT_ASCII.sub(_escape_character, text)


def _escape_character(match: re.Match[str]) -> str:
    char = match[0]
    return json.dumps(char)[1:-1] if unicodedata.category(char) in _ESCAPED_CATEGORIES else char


def show_result(make_result: Callable[[], T], show: Callable[[T], Exit]) -> Exit:
    """Makes and shows one job's result, and returns its exit code.

    A failure does not stop the other jobs. Raises HistoryFileError, since every job would fail with
    it.
    """
    try:
        result = make_result()
    except HistoryFileError:
        raise
    except SageauditError as error:
        print_message(str(error))
        return exit_for(error)
    return show(result)
