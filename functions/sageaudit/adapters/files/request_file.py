"""Reads a request's file: JSON, and the line of each key in it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from sageaudit.adapters.files.local_files import wrong_format_reason, wrong_format_reason_of_bytes
from sageaudit.domain.request.request import Path as Place
from sageaudit.errors import BadUsage

STDIN = "-"
MAX_BYTES = 64 * 1024 * 1024
"""The most bytes of a file; a Terraform plan of thousands of resources has a few MB."""
_LARGE = 2**20
"""The number of characters above which a file's keys are checked before it is parsed."""
_FIRST_PART = 2**16
"""The number of characters at a large file's beginning in which keys are searched."""
_HINT = "give the JSON of one request, of a pipeline definition, or of `terraform show -json`"
TOO_DEEPLY_NESTED = "has too many brackets inside each other"
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


class RequestFile(Struct, frozen=True):
    """A parsed file of a request, pipeline or plan."""

    name: str
    document: Any
    text: str

    def line_numbers(self) -> tuple[dict[Place, int], list[Place]]:
        """Returns the line (from 1) of each key and list item by path, and the repeated keys.

        Does not list keys inside a repeated key again.
        """
        numbers: dict[Place, int] = {(): 1}
        repeated_places: dict[Place, None] = {}
        # The current key or index of each level, and whether the level is a list.
        stack: list[tuple[str | int | None, bool]] = []
        line, position, key_next = 1, 0, False
        for match in _TOKEN.finditer(self.text):
            line += self.text.count("\n", position, match.start())
            position, word = match.start(), match[0]
            if stack and stack[-1][1] and word not in {"]", ","}:
                numbers.setdefault(tuple(_steps(stack)), line)
            if word in {"{", "["}:
                stack.append((0 if word == "[" else None, word == "["))
                key_next = word == "{"
            elif word in {"}", "]"}:
                stack.pop()
                key_next = False
            elif word == ",":
                if stack[-1][1]:
                    stack[-1] = (int(stack[-1][0] or 0) + 1, True)
                key_next = not stack[-1][1]
            elif word != ":" and key_next:
                stack[-1] = (json.loads(word), False)
                place = tuple(_steps(stack))
                if place in numbers and not any(
                    place[:n] in repeated_places for n in range(len(place))
                ):
                    repeated_places[place] = None
                numbers[place] = line
                key_next = False
        return numbers, list(repeated_places)


def display_name(path: str) -> str:
    """Returns the file's name for messages."""
    return "standard input" if path == STDIN else path


def read(path: str, check_keys: Callable[[Any], None]) -> RequestFile:
    """Reads a file, or stdin for "-". Raises BadUsage with one sentence that names the file.

    `check_keys` raises MalformedData for a list, or for an object with wrong keys. For a large file
    it is called on the first keys, before the whole file is parsed.
    """
    name = display_name(path)
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1) if path == STDIN else _bytes(Path(path))
    except OSError as error:
        reason = wrong_format_reason(Path(path), _HINT) or f"cannot be read ({error.strerror})"
        raise BadUsage(f"{name}: {reason}") from error
    if len(data) > MAX_BYTES:
        raise BadUsage(f"{name}: is larger than {MAX_BYTES // 2**20} MB: no request is as large")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = (
            wrong_format_reason_of_bytes(path, data, _HINT)
            or "is not text in UTF-8: give a file with JSON"
        )
        raise BadUsage(f"{name}: {reason}") from error
    if not text.strip():
        raise BadUsage(f"{name}: is empty: give a file with JSON")
    if len(text) > _LARGE:
        check_keys([] if text.lstrip().startswith("[") else dict.fromkeys(_first_keys(text)))
    try:
        document = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise BadUsage(f"{name}: {TOO_DEEPLY_NESTED}") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        reason = (
            wrong_format_reason_of_bytes(path, data, _HINT) or f"is not JSON ({where}: {error.msg})"
        )
        raise BadUsage(f"{name}: {reason}") from error
    except ValueError as error:
        reason = str(error).partition(";")[0]  # the rest is advice for Python programmers
        raise BadUsage(f"{name}: is not JSON ({reason})") from error
    return RequestFile(name, document, text)


def _first_keys(text: str) -> Iterator[str]:
    """Yields the top-level keys in the first part of the text."""
    depth, key_next = 0, False
    for match in _TOKEN.finditer(text, 0, _FIRST_PART):
        word = match[0]
        if key_next and depth == 1 and word.startswith('"'):
            yield word[1:-1]
        depth += (word in "{[") - (word in "}]")
        key_next = word in "{,"


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number in JSON")


def _steps(stack: list[tuple[str | int | None, bool]]) -> list[str | int]:
    return [step for step, _ in stack if step is not None]
