"""Reads a request's file: its JSON, and the line of each key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct, field

from sageaudit.adapters.files import text_file
from sageaudit.domain.request.request import Path as Place
from sageaudit.errors import BadUsage

_LARGE = 2**20
"""Above this number of characters, a file's keys are checked before it is parsed."""
_MAX_CHARACTERS = 4 * 2**20
"""The most characters of a file that is not a Terraform plan. AWS takes 1 MB of a template or
definition; the rest is indentation."""
_PLAN_KEYS = {"format_version", "terraform_version", "planned_values", "configuration"}
"""Keys at the beginning of a Terraform plan, which may be as large as any file."""
_FIRST_PART = 2**16
"""How many characters at a large file's beginning are searched for keys."""
_HINT = "give one request, definition or template, or the output of `terraform show -json`"
TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|[{}\[\]:,]|[^\s{}\[\]:,"]+')
"""A token of JSON. A string that is cut off ends where the text ends; otherwise each quote in it
would be tried as a beginning."""
_TERRAFORM_CODE = re.compile(
    r"(?:\s|#[^\n]*\n|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
    r"(?:terraform|locals|(?:provider|module|variable|output)\s+\S+|(?:resource|data)\s+\S+\s+\S+)\s*\{"
)


class RequestFile(Struct, frozen=True):
    """A parsed file.

    `text` is empty if it has no line numbers: YAML, and large plans, which nobody edits.
    """

    name: str
    document: Any
    text: str

    def line_numbers(self) -> tuple[dict[Place, int], list[Place]]:
        """Returns the line (from 1) of each key and list item by path, and the repeated keys.

        Keys inside a repeated key are not reported as repeated.
        """
        numbers: dict[Place, int] = {}
        repeated_places: dict[Place, None] = {}
        line, position = 1, 0
        for place, member in scan(self.text):
            line += self.text.count("\n", position, member.key_start)
            position = member.key_start
            if place in numbers and not any(
                place[:n] in repeated_places for n in range(len(place))
            ):
                repeated_places[place] = None
            numbers[place] = line
        return numbers | {(): 1}, list(repeated_places)


class Member(Struct):
    """Positions in the text of a key (of a list's item: none) and of its value."""

    key_start: int
    key_end: int
    start: int
    end: int = 0
    children: list[Place] = field(default_factory=list)


def scan(text: str) -> Iterator[tuple[Place, Member]]:
    """Yields each value's path and positions, in their order. The path of the whole is `()`.

    The end and the children are known only after all values.
    """
    stack: list[tuple[Place, Member, bool]] = []
    key: tuple[str | int, int, int] = ("", 0, 0)
    is_key_next = False
    for token in TOKEN.finditer(text):
        word, start, end = token[0], token.start(), token.end()
        if is_key_next and word.startswith('"'):
            key, is_key_next = (json.loads(word), start, end), False
            continue
        if word in {":", ","}:
            is_key_next = word == "," and not stack[-1][2]
            continue
        if word in {"}", "]"}:
            stack.pop()[1].end = end
            is_key_next = False
            continue
        place: Place = ()
        position = (start, start)
        if stack:
            around, parent, is_list = stack[-1]
            place = (*around, len(parent.children) if is_list else key[0])
            parent.children.append(place)
            position = position if is_list else key[1:]
        member = Member(*position, start, end)
        yield place, member
        if word in {"{", "["}:
            stack.append((place, member, word == "["))
            is_key_next = word == "{"


def read(path: str, check_keys: Callable[[Any], None]) -> RequestFile:
    """Reads a file, or standard input for "-". Raises BadUsage that names the file.

    `check_keys` raises MalformedData for a list, or for an object with wrong keys. Before a large
    file is parsed, `check_keys` is called with its first keys.
    """
    return _parse(path, text_file.read_text(path, _HINT), check_keys)


def parse(path: str, content: bytes, check_keys: Callable[[Any], None]) -> RequestFile:
    """Parses another content of a file. Arguments and errors: see `read`."""
    return _parse(path, text_file.decode_text(content, path, _HINT), check_keys)


def _parse(path: str, text: str, check_keys: Callable[[Any], None]) -> RequestFile:
    name = text_file.display_name(path)
    if _TERRAFORM_CODE.match(text, 0, _FIRST_PART):
        raise BadUsage(f"{name}: is Terraform code: plan it, and give `terraform show -json PLAN`")
    is_plan = False
    if len(text) > _LARGE:
        keys = dict.fromkeys(_first_keys(text))
        check_keys([] if text.lstrip().startswith("[") else keys)
        is_plan = not _PLAN_KEYS.isdisjoint(keys)
        if len(text) > _MAX_CHARACTERS and not is_plan:
            raise BadUsage(f"{name}: is larger than {_MAX_CHARACTERS // 2**20} MB: {_HINT}")
    document = text_file.parse_json(text, name, _HINT)
    is_json = text.lstrip().startswith(("{", "["))
    return RequestFile(name, document, text if is_json and not is_plan else "")


def _first_keys(text: str) -> Iterator[str]:
    depth, key_next = 0, False
    for match in TOKEN.finditer(text, 0, _FIRST_PART):
        word = match[0]
        if key_next and depth == 1 and word.startswith('"'):
            yield word[1:-1]
        depth += (word in "{[") - (word in "}]")
        key_next = word in "{,"
