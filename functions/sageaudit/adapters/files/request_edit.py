"""Changes values in a JSON file, and nothing else: indentation, order and line ends stay."""

from __future__ import annotations

import codecs
import json
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from sageaudit.adapters.files.local_files import atomic_write
from sageaudit.adapters.files.request_file import Member, scan
from sageaudit.domain.request.request import Path as Place
from sageaudit.errors import BadUsage
from sageaudit.output.text.words import setting_text

_DEFAULT_INDENT = "  "


class Edit(Struct, frozen=True):
    """A change of one value. Missing objects around it are added.

    `new`: the new value; None removes the key. `new_key`: the right name of a misspelled key, which
    keeps its value.
    """

    place: Place
    new: Any = None
    new_key: str | None = None


class EditableFile(Struct, frozen=True):
    """A JSON file in UTF-8, as it was read."""

    path: Path
    content: bytes

    @classmethod
    def read(cls, path: str, text: str) -> EditableFile:
        """Returns the file with this text. Raises BadUsage if it cannot be changed in place."""
        file = Path(path)
        try:
            content, mode = file.read_bytes(), file.stat().st_mode
        except OSError as error:
            raise BadUsage(f"{path}: cannot be read ({error.strerror})") from error
        if content.removeprefix(codecs.BOM_UTF8) != text.encode("utf-8", "replace"):
            raise BadUsage(f"{path}: is not written to, since it is not UTF-8: save it as UTF-8")
        if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise BadUsage(f"{path}: is not written to, since it is read-only")
        return cls(file, content)

    def save(self, text: str) -> None:
        """Replaces the file. Raises BadUsage if it cannot be written, or has changed meanwhile."""
        mark = codecs.BOM_UTF8 if self.content.startswith(codecs.BOM_UTF8) else b""
        with atomic_write(self.path) as temporary:
            temporary.write_bytes(mark + text.encode())
            if self.path.read_bytes() != self.content:
                raise BadUsage(f"{self.path}: has changed meanwhile, so it is not written to")


def edit_json(text: str, edits: Sequence[Edit]) -> str:
    """Returns the text of a JSON object with the edits, in their order; renamed keys come last.

    Keys of the text must not be repeated.
    """
    for edit in sorted(edits, key=lambda edit: edit.new_key is not None):
        members = dict(scan(text))
        member = members.get(edit.place)
        if edit.new_key is not None:
            if member is not None:
                new_key = json.dumps(edit.new_key, ensure_ascii=False)
                text = text[: member.key_start] + new_key + text[member.key_end :]
        elif edit.new is None:
            text = _remove(text, members, edit.place)
        elif member is not None:
            old_is_text = text[member.start] == '"' and not isinstance(edit.new, str)
            new = setting_text(str(edit.new) if old_is_text else edit.new)
            text = text[: member.start] + new + text[member.end :]
        else:
            text = _insert(text, members, edit)
    return text


def _remove(text: str, members: dict[Place, Member], place: Place) -> str:
    if place not in members or not place:
        return text
    member = members[place]
    siblings = members[place[:-1]].children
    index = siblings.index(place)
    if index + 1 < len(siblings):
        return text[: member.key_start] + text[members[siblings[index + 1]].key_start :]
    if index:
        return text[: members[siblings[index - 1]].end] + text[member.end :]
    around = members[place[:-1]]
    return text[: around.start + 1] + text[around.end - 1 :]


def _insert(text: str, members: dict[Place, Member], edit: Edit) -> str:
    """Adds a value after the last one of the nearest object around it, written like that one."""
    place = edit.place
    while place not in members:
        place = place[:-1]
    around, names = members[place], edit.place[len(place) :]
    if text[around.start] != "{" or any(isinstance(name, int) for name in names):
        return text  # an item of a list that is not there
    margin, unit, colon = _margin(text, around.start), _DEFAULT_INDENT, ": "
    if samples := around.children or members[()].children:  # written as the last one of them
        sample = members[samples[-1]]
        colon = text[sample.key_end : sample.start]
        outer = margin if around.children else ""
        unit = _margin(text, sample.key_start).removeprefix(outer) or unit
    is_multiline = "\n" in (text[around.start : around.end] if around.children else text)
    line_start = ("\r\n" if "\r\n" in text else "\n") + margin
    if not is_multiline:
        line_start = unit = ""
    pair, value = "", setting_text(edit.new)
    for depth, name in reversed(list(enumerate(names, start=1))):
        pair = f"{json.dumps(name, ensure_ascii=False)}{colon}{value}"
        value = f"{{{line_start}{unit * depth}{pair}{line_start}{unit * (depth - 1)}}}"
    if around.children:
        start = members[around.children[-1]].end
        comma = "," if is_multiline or colon == ":" else ", "
        return f"{text[:start]}{comma}{line_start}{unit}{pair}{text[start:]}"
    return f"{text[: around.start + 1]}{line_start}{unit}{pair}{line_start}{text[around.end - 1 :]}"


def _margin(text: str, position: int) -> str:
    """Returns the white space at the beginning of the line of this position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]
