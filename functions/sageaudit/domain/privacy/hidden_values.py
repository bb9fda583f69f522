"""Where the values that a user gave a job stand in a text that the job wrote.

A value is found behind its own name, in any place where it is long or mixed, and in part where the
text was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from sageaudit.domain.privacy.readings import Reading

_SHORT = 3
"""A value of so few characters is looked for only where no other sign touches it."""
_EMBEDDED = 10
"""From so many characters on, a mixed value is found inside a word too."""
_LEAST_CUT = 4
"""Characters of a value that must be left at a cut to be known as its part."""
_MOST_CUTS = 64
_SOFT = re.compile(r"(\s+|\\+)")
"""What a text may write otherwise than the value."""
_WRAP = r"(?:[ \t]{0,40}\n[ \t\n]{0,40})?"
"""A line's end in the middle of a value, as terminals write it."""
_LEAST_WRAPPED, _MOST_WRAPPED = 8, 1000
_NAME = re.compile(r"\w+(?:[.\-]+\w+)*")
_BETWEEN = re.compile(r"""[\s"'`=:,;()\[\]{}<>|\\*>-]{1,24}(?:value[\s"'`=:\\]{1,12})?""")
_CUT = re.compile(
    r"…|\.{3}|\*{3,}|•{3,}|\[truncated|\(truncated|\"[\s,]{0,3}command |<snip|\[\.\.\."
)


@dataclass(frozen=True, slots=True)
class UserValues:
    """What to hide: `named` by key, behind that key; `anywhere` in any place, longest first."""

    named: Mapping[str, frozenset[str]]
    anywhere: tuple[str, ...]

    def places(self, reading: Reading) -> Iterator[tuple[int, int]]:
        """The places of all values in one reading of a text."""
        if self.named:
            yield from self._behind_their_names(reading.lower)
        for needle in self.anywhere:
            yield from _occurrences(needle, reading.lower)
            yield from _wrapped(needle, reading)
        if self.anywhere:
            yield from self._cut_off(reading.lower)

    def _behind_their_names(self, text: str) -> Iterator[tuple[int, int]]:
        for start, end in _names(text, self.named):
            values = self._of_name(text[start:end])
            between = _BETWEEN.match(text, end) if values else None
            for value in values if between else ():
                yield from _behind(text, end, between.end(), value) if between else ()

    def _of_name(self, name: str) -> frozenset[str]:
        normal = name.strip("_").replace("-", "_")
        return self.named.get(normal) or self.named.get(normal.rpartition(".")[2]) or frozenset()

    def _cut_off(self, text: str) -> Iterator[tuple[int, int]]:
        cuts = list(islice(_CUT.finditer(text), _MOST_CUTS))
        befores = [*(cut.start() for cut in cuts), len(text.rstrip())]
        afters = [0, *(cut.end() for cut in cuts)]
        for needle in self.anywhere:
            for before in befores:
                yield from _start_of(needle, text, before)
            for after in afters:
                yield from _end_of(needle, text, after)


NOTHING = UserValues({}, ())


def _names(text: str, named: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Where a key may stand: each word, and each place of a key that is no word."""
    yield from (hit.span() for hit in _NAME.finditer(text))
    for name in named:
        if _NAME.fullmatch(name) is None:
            for hit in re.finditer(re.escape(name), text):
                yield hit.span()


def _behind(text: str, end: int, latest: int, value: str) -> Iterator[tuple[int, int]]:
    """The value behind its name, with nothing but signs between; cut off by the text's end too."""
    at = text.find(value, end + 1, latest + len(value))
    if at >= 0:
        after = at + len(value)
        if not text[after : after + 1].isalnum() or not value[-1].isalnum():
            yield at, after
        return
    rest = text[latest:].rstrip() if len(text) - latest < len(value) else ""
    if rest and value.startswith(rest):
        yield latest, latest + len(rest)


def _occurrences(needle: str, text: str) -> Iterator[tuple[int, int]]:
    """A value in a text, with any blanks for its blanks and any number of its backslashes."""
    pieces = _SOFT.split(needle)
    if not all(piece in text for piece in pieces[::2]):
        return
    written = "".join(map(_written, pieces))
    before, after = _edges(needle)
    for hit in re.finditer(f"{before}{written}{after}", text):
        yield hit.span()


def _wrapped(needle: str, reading: Reading) -> Iterator[tuple[int, int]]:
    """A value that goes on in the next line."""
    unwrapped = reading.unwrapped
    if unwrapped is None or not _LEAST_WRAPPED <= len(needle) <= _MOST_WRAPPED:
        return
    if "".join(needle.split()) not in unwrapped:
        return
    before, after = _edges(needle)
    letters = (r"\s{1,40}" if letter.isspace() else re.escape(letter) for letter in needle)
    for hit in re.finditer(f"{before}{_WRAP.join(letters)}{after}", reading.lower):
        yield hit.span()


def _written(piece: str) -> str:
    if piece.isspace():
        return r"\s{1,40}"
    return r"\\{1,64}" if piece.startswith("\\") else re.escape(piece)


def _edges(needle: str) -> tuple[str, str]:
    """What must not touch a value for it to be that value, as regular expressions."""
    if len(needle) <= _SHORT:
        return r"(?<![\w./:-])", r"(?![\w/-]|[.:]\w|://)"
    if len(needle) >= _EMBEDDED and not needle.isalpha():
        return "", ""
    before = r"(?<![^\W_])" if needle[0].isalnum() else ""
    return before, r"(?![^\W_])" if needle[-1].isalnum() else ""


def _start_of(needle: str, text: str, end: int) -> Iterator[tuple[int, int]]:
    """The start of a value at a cut: its first characters stand right before `end`."""
    tail = text[max(0, end - _LEAST_CUT) : end]
    if len(tail) < _LEAST_CUT:
        return
    at = needle.rfind(tail, 0, len(needle) - 1)
    while at >= 0:
        length = at + _LEAST_CUT
        if text.endswith(needle[:length], 0, end) and _apart(text, end - length - 1, needle):
            yield end - length, end
            return
        at = needle.rfind(tail, 0, at + _LEAST_CUT - 1)


def _end_of(needle: str, text: str, start: int) -> Iterator[tuple[int, int]]:
    """The end of a value at a cut: its last characters stand right after `start`."""
    head = text[start : start + _LEAST_CUT]
    if len(head) < _LEAST_CUT:
        return
    at = needle.find(head, 1)
    while at >= 0:
        length = len(needle) - at
        if text.startswith(needle[at:], start) and _apart(text, start + length, needle):
            yield start, start + length
            return
        at = needle.find(head, at + 1)


def _apart(text: str, place: int, needle: str) -> bool:
    """True where the character at a place does not continue a word with the value."""
    if len(needle) >= _EMBEDDED and not needle.isalpha():
        return True
    return not (0 <= place < len(text) and text[place].isalnum())
