"""What the command line prints besides its views: messages to stderr, JSON to stdout."""

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

T = TypeVar("T")
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cn", "Zl", "Zp"})
"""Unicode's categories of characters that a terminal obeys, or that turn a line around."""


def print_message(text: str) -> None:
    """Prints one message to stderr, without control characters."""
    click.echo(f"sageaudit: {for_terminal(text)}", err=True)


def may_ask() -> bool:
    """Whether somebody is there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def print_json(value: object) -> None:
    """Prints one line of JSON that a terminal shows as it is: no character moves or colours it.

    Control, format and separator characters are JSON escapes, on a terminal and in a pipe (which
    may end at a terminal too); what a program reads is the same.
    """
    click.echo(json_line(value))


def json_line(value: object) -> str:
    """The line that `echo_json` prints."""
    return escape_json(to_json(value))


def escape_json(text: str) -> str:
    """JSON text in which control, format and separator characters are escapes."""
    return _NOT_ASCII.sub(_escape_character, text)


def _escape_character(hit: re.Match[str]) -> str:
    char = hit[0]
    return json.dumps(char)[1:-1] if unicodedata.category(char) in _UNSEEN else char


def show_result(make_result: Callable[[], T], show: Callable[[T], Exit]) -> Exit:
    """Shows one job's result as soon as it is known; a failure does not stop the other jobs.

    Raises HistoryFileError, which holds for every job.
    """
    try:
        result = make_result()
    except HistoryFileError:
        raise
    except SageauditError as error:
        print_message(str(error))
        return exit_for(error)
    return show(result)
