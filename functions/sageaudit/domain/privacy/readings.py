r"""How a text reads without tricks, each reading with the way back to the text itself.

A secret or its key may be written in escapes (`\u0070`, `\x70`, `%70`, `&#112;`), in full-width
letters, or with characters between its letters that nobody sees. Each reading takes one layer of
that away. What is found in a reading is hidden in the text; everything else stays as it was.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

_LAYERS = 5
"""Most layers of escapes: JSON in JSON in a log line has three."""
_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)
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
_ESCAPES = frozenset("\\%&")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_HEXADECIMAL = ("braced", "u", "long", "x", "percent", "percent_u")
_UNSEEN = frozenset({"Cf", "Cc", "Mn", "Me"})
"""Unicode's categories of characters that change no letter: format, control, marks."""
_FILLERS = frozenset("\u115f\u1160\u2800")
"""Letters and signs that are drawn as nothing: Hangul's fillers (U+3164 becomes U+1160), Braille's
blank."""


@dataclass(frozen=True)
class Reading:
    """One reading of a text, and the pieces in which it differs from the reading before it.

    Piece `i` is `begins[i]` to `stops[i]` here and `old_begins[i]` to `old_stops[i]` there.
    """

    text: str
    before: Reading | None = None
    begins: Sequence[int] = ()
    stops: Sequence[int] = ()
    old_begins: Sequence[int] = ()
    old_stops: Sequence[int] = ()

    @cached_property
    def lower(self) -> str:
        """The reading in lower case, character by character."""
        low = self.text.lower()
        return low if len(low) == len(self.text) else "".join(map(_lower, self.text))

    @cached_property
    def unwrapped(self) -> str | None:
        """The reading in lower case without any blanks; None where it is one line."""
        return "".join(self.lower.split()) if "\n" in self.text.strip() else None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of the reading, not an empty one, stands in the text itself."""
        if self.before is None:
            return start, end
        return self.before.span(self._old(start)[0], self._old(end - 1)[1])

    def _old(self, place: int) -> tuple[int, int]:
        """Start and end, in the reading before, of what the character at `place` stands for."""
        piece = bisect_right(self.begins, place) - 1
        if piece < 0:
            return place, place + 1
        if place < self.stops[piece]:
            return self.old_begins[piece], self.old_stops[piece]
        old = self.old_stops[piece] + place - self.stops[piece]
        return old, old + 1


def readings(text: str) -> tuple[Reading, ...]:
    """All readings that differ: as written, then without one layer of escapes after the other."""
    written = Reading(text)
    found = [_folded(written)]
    if "\x1b" in text or "\x9b" in text:
        found.append(_folded(_replaced(written, _ANSI, lambda _: "")))
    for _ in range(_LAYERS):
        last = found[-1]
        if not _ESCAPES & set(last.text):
            break
        decoded = _folded(_replaced(last, _ESCAPE, _meant))
        if decoded.text == last.text:
            break
        found.append(decoded)
    return tuple(found)


def folded(text: str) -> str:
    """A text as readings show it: compatible letters alike, without characters nobody sees."""
    return _folded(Reading(text)).text


def _folded(reading: Reading) -> Reading:
    text = reading.text
    if text.isascii() and text.isprintable():
        return reading
    changed = {char: new for char in set(text) if (new := _plain(char)) != char}
    if not changed:
        return reading
    odd = re.compile(f"[{''.join(map(re.escape, changed))}]")
    return _replaced(reading, odd, lambda hit: changed[hit[0]])


def _plain(char: str) -> str:
    if char.isspace():
        return "\n" if char in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029" else " "
    parts = unicodedata.normalize("NFKD", char)
    return "".join(
        part for part in parts if unicodedata.category(part) not in _UNSEEN and part not in _FILLERS
    )


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


def _replaced(
    reading: Reading, pattern: re.Pattern[str], new_of: Callable[[re.Match[str]], str]
) -> Reading:
    """The reading with every hit of the pattern written otherwise."""
    begins: list[int] = []
    stops: list[int] = []
    old_begins: list[int] = []
    old_stops: list[int] = []
    grown = 0

    def replace(hit: re.Match[str]) -> str:
        nonlocal grown
        new, (start, end) = new_of(hit), hit.span()
        begins.append(start + grown)
        grown += len(new) - (end - start)
        stops.append(end + grown)
        old_begins.append(start)
        old_stops.append(end)
        return new

    text = pattern.sub(replace, reading.text)
    return Reading(text, reading, begins, stops, old_begins, old_stops) if begins else reading


def _lower(char: str) -> str:
    low = char.lower()
    return low if len(low) == 1 else char
