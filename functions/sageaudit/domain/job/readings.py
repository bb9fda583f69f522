"""The readings of a text: how it reads without tricks, each with the way back to the text itself.

A secret or its key may be written in escapes (`\\u0070`, `\\x70`, `%70`, `&#112;`), in full-width
letters, or with characters between its letters that nobody sees. Each reading takes one layer of
that away. What is found in a reading is hidden in the text; everything else stays as it was.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

_LAYERS = 5
"""Most layers of escapes: JSON in JSON in a log line has three."""
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_ESCAPE = re.compile(
    r"""(?x)
      (?<!\\)\\++(?:
          u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\+u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})
        | u\{(?P<braced>[0-9a-fA-F]{1,6})\} | u(?P<u>[0-9a-fA-F]{4}) | U(?P<long>[0-9a-fA-F]{8})
        | x(?P<x>[0-9a-fA-F]{2}) | (?P<octal>[0-7]{3}) | (?P<letter>[nrt]) | (?P<sign>[^\w\s])
      )
    | %(?P<percent>[0-7][0-9a-fA-F])
    | (?P<utf8>%[c-fC-F][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){1,3})
    | %u(?P<percent_u>[0-9a-fA-F]{4})
    | (?P<entity>&(?:\#[0-9]{1,7};?|\#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,30};))
    """
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_HEXADECIMAL = ("braced", "u", "long", "x", "percent", "percent_u")
_UNSEEN = frozenset({"Cf", "Cc", "Mn", "Me"})
"""Unicode's categories of characters that change no letter: format, control, marks."""


@dataclass(frozen=True)
class Reading:
    """One reading; character `i` stands for `starts[i]` to `ends[i]` of the text itself."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    @cached_property
    def lower(self) -> str:
        """The reading in lower case, character by character."""
        low = self.text.lower()
        return low if len(low) == len(self.text) else "".join(map(_lower, self.text))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of the reading, not an empty one, stands in the text itself."""
        return self.starts[start], self.ends[end - 1]


def readings(text: str) -> tuple[Reading, ...]:
    """All readings that differ: as written, then without one layer of escapes after the other."""
    found = [_folded(Reading(text, range(len(text)), range(1, len(text) + 1)))]
    if (coloured := _ANSI.search(text)) is not None:
        plain = Reading(text, range(len(text)), range(1, len(text) + 1))
        found.append(_folded(_without(plain, _ANSI, coloured.start())))
    for _ in range(_LAYERS):
        last = found[-1]
        decoded = _folded(_replaced(last, _unescaped(last.text)))
        if decoded.text == last.text:
            break
        found.append(decoded)
    return tuple(found)


def folded(text: str) -> str:
    """A text as readings show it: compatible letters alike, without characters nobody sees."""
    return _folded(Reading(text, range(len(text)), range(1, len(text) + 1))).text


def _folded(reading: Reading) -> Reading:
    text = reading.text
    if text.isascii() and text.isprintable():
        return reading
    changed = {char: new for char in set(text) if (new := _plain(char)) != char}
    if not changed:
        return reading
    odd = re.compile(f"[{''.join(map(re.escape, changed))}]")
    return _replaced(
        reading, ((hit.start(), hit.end(), changed[hit[0]]) for hit in odd.finditer(text))
    )


def _plain(char: str) -> str:
    if char.isspace():
        return "\n" if char in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029" else " "
    parts = unicodedata.normalize("NFKD", char)
    return "".join(part for part in parts if unicodedata.category(part) not in _UNSEEN)


def _without(reading: Reading, pattern: re.Pattern[str], first: int) -> Reading:
    hits = pattern.finditer(reading.text, first)
    return _replaced(reading, ((hit.start(), hit.end(), "") for hit in hits))


def _unescaped(text: str) -> Iterator[tuple[int, int, str]]:
    if "\\" not in text and "%" not in text and "&" not in text:
        return
    for hit in _ESCAPE.finditer(text):
        new = _meant(hit)
        if new != hit[0]:
            yield hit.start(), hit.end(), new


def _meant(hit: re.Match[str]) -> str:
    kind, written = hit.lastgroup or "", hit[hit.lastgroup or 0]
    if kind == "low":
        return chr(0x10000 + ((int(hit["high"], 16) - 0xD800) << 10) + int(written, 16) - 0xDC00)
    if kind in _HEXADECIMAL:
        code = int(written, 16)
        return chr(code) if code <= 0x10FFFF else hit[0]  # noqa: PLR2004 - Unicode's last one
    if kind == "octal":
        return chr(int(written, 8))
    if kind == "letter":
        return _LETTERS[written]
    if kind == "utf8":
        return bytes.fromhex(written.replace("%", "")).decode("utf-8", "replace")
    return html.unescape(written) if kind == "entity" else written


def _replaced(reading: Reading, changes: Iterable[tuple[int, int, str]]) -> Reading:
    """The reading with some parts written otherwise. `changes`: start, end, new text, in order."""
    texts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for start, end, new in changes:
        texts += (reading.text[done:start], new)
        starts += reading.starts[done:start]
        ends += reading.ends[done:start]
        starts += [reading.starts[start]] * len(new)
        ends += [reading.ends[end - 1]] * len(new)
        done = end
    if not texts:
        return reading
    texts.append(reading.text[done:])
    starts += reading.starts[done:]
    ends += reading.ends[done:]
    return Reading("".join(texts), starts, ends)


def _lower(char: str) -> str:
    low = char.lower()
    return low if len(low) == 1 else char
