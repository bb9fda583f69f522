"""The values that a user gave a job, and where they stand in a text that the job wrote.

SageMaker's training toolkit writes the whole command line into FailureReason. So every value of
the same answer's hyperparameters, environment, arguments and the like leaves every free text:
behind its own key in any case, elsewhere when it is long or mixed. Numbers, switches and fields
that are shown by design (the job's name, its instance type, its script) stay readable.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sageaudit.domain.job.entry_point import script
from sageaudit.domain.job.plain_values import is_plain, is_secretive
from sageaudit.domain.job.readings import Reading, folded, readings
from sageaudit.domain.job.telling_names import is_telling

PAIRS = frozenset(
    {
        "HyperParameters",
        "StaticHyperParameters",
        "TunedHyperParameters",
        "Environment",
        "RuleParameters",
        "HookParameters",
        "CollectionParameters",
        "ProfilingParameters",
    }
)
"""Keys of an answer, at any depth, whose values are the user's own pairs."""
WORDS = frozenset({"ContainerArguments", "ContainerEntrypoint"})
"""Keys of an answer that hold the words of a command."""
RANGES = frozenset({"ParameterRanges", "HyperParameterRanges"})
"""Keys of a tuning job's answer that hold the values to try."""
FREE_TEXTS = frozenset({"FailureReason", "ExitMessage", "StatusMessage", "StatusDetails"})
"""Keys of an answer that hold texts of the user's container."""
_MOST = 2000
"""Most values; the API takes 100 hyperparameters and 100 variables for each definition."""
_DEEPEST = 20
_DECODED_TIMES = 3
_LONGEST_DECODED = 20_000
_TELLING_LETTERS = 6
"""Letters from which on a password that is one word is hidden anywhere."""
_SHORT = 3
"""A value of so few characters is looked for only where no other sign touches it."""
_EMBEDDED = 10
"""From so many characters on, a mixed value is found inside a word too."""
_LEAST_CUT = 4
"""Characters of a value that must be left at a cut to be known as its part."""
_MOST_CUTS = 64
_PREFIXES = ("sm_hp_", "sagemaker_")
_PART = re.compile(r"(?:^|(?<=[?&;,\s{]))-{0,2}([A-Za-z_][\w.-]{0,80})\s?[=:]\s?([^\s;,&}]+)")
_OPTION = re.compile(r"(?:^|(?<=\s))--?([A-Za-z_][\w.-]{0,80})\s+([^\s-]\S*)")
_PASSWORD = re.compile(r"://([^\s/:@]{0,200}):([^\s]{1,400})@")
_SOFT = re.compile(r"(\s+|\\+)")
"""What a text may write otherwise than the value."""
_NAME = re.compile(r"\w+(?:[.\-]+\w+)*")
_BETWEEN = re.compile(r"""[\s"'`=:,;()\[\]{}<>|\\*>-]{1,24}(?:value[\s"'`=:\\]{1,12})?""")
_CUT = re.compile(r"…|\.{3}|\[truncated|\(truncated|\"[\s,]{0,3}command |<snip|\[\.\.\.")


@dataclass(frozen=True, slots=True)
class GivenValues:
    """What to hide: `named` by key, behind that key; `anywhere` in any place, longest first."""

    named: Mapping[str, frozenset[str]]
    anywhere: tuple[str, ...]

    def places(self, reading: Reading) -> Iterator[tuple[int, int]]:
        """The places of all values in one reading of a text."""
        if self.named:
            yield from self._behind_their_names(reading.lower)
        for needle in self.anywhere:
            yield from _occurrences(needle, reading.lower)
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


NOTHING = GivenValues({}, ())


def given_values(answer: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> GivenValues:
    """The values of a Describe answer that no text of the job may show."""
    pairs = list(islice(_pairs(answer, _DEEPEST), _MOST))
    if not pairs:
        return NOTHING
    shown = {text.lower() for text in _shown(answer, _DEEPEST)}
    shown |= {text.lower() for text in (tags or {}).values()}
    named: dict[str, set[str]] = {}
    anywhere: set[str] = set()
    for name, value in pairs:
        bare = value.strip().strip("\"'")
        if is_plain(bare) or bare.lower() in shown or script(bare) is not None:
            continue
        forms = set(_forms(value))
        for key in _keys(name):
            named.setdefault(key, set()).update(forms)
        if is_secretive(value) or (len(value) >= _TELLING_LETTERS and is_telling(name)):
            anywhere |= forms | _encoded(value)
    return GivenValues(
        {name: frozenset(values) for name, values in named.items()},
        tuple(sorted(anywhere, key=lambda needle: (-len(needle), needle))),
    )


def _pairs(item: Any, deeper: int) -> Iterator[tuple[str, str]]:
    """All names and values that the user gave; the name is empty where there is none."""
    if not deeper:
        return
    if isinstance(item, list | tuple):
        for inner in item:
            yield from _pairs(inner, deeper - 1)
    elif isinstance(item, Mapping):
        for key, inner in item.items():
            if key in PAIRS and isinstance(inner, Mapping):
                for name, value in inner.items():
                    yield from _leaves(str(name), value, deeper)
            elif key in RANGES:
                yield from _ranges(inner, deeper)
            elif key in WORDS and isinstance(inner, list | tuple):
                yield from _command([word for word in inner if isinstance(word, str)])
            else:
                yield from _pairs(inner, deeper - 1)


def _leaves(name: str, value: Any, deeper: int) -> Iterator[tuple[str, str]]:
    """The value as written and decoded, and the values inside it, each with its own name."""
    if isinstance(value, Mapping):
        for key, inner in value.items() if deeper else ():
            yield from _leaves(f"{name}.{key}", inner, deeper - 1)
    elif isinstance(value, list | tuple):
        for inner in value if deeper else ():
            yield from _leaves(name, inner, deeper - 1)
    elif isinstance(value, str):
        yield name, value
        yield from _parts(value)
        decoded = _decoded(value)
        if decoded != value and deeper:
            yield from _leaves(name, decoded, deeper - 1)


def _decoded(value: str) -> Any:
    if not value.lstrip().startswith(('"', "{", "[")) or len(value) > _LONGEST_DECODED:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _parts(value: str) -> Iterator[tuple[str, str]]:
    """Settings inside a value: lines, options, `name=value`, and the password of an address."""
    lines = value.splitlines()
    yield from (("", line) for line in (lines if len(lines) > 1 else ()) if is_secretive(line))
    for found in (_PART, _OPTION, _PASSWORD):
        yield from ((hit[1], hit[2].strip("\"'")) for hit in found.finditer(value))


def _ranges(item: Any, deeper: int) -> Iterator[tuple[str, str]]:
    if isinstance(item, Mapping):
        name = item.get("Name")
        for key, inner in item.items():
            if key == "Values" and isinstance(inner, list | tuple):
                yield from _leaves(name if isinstance(name, str) else "", list(inner), deeper)
            elif deeper:
                yield from _ranges(inner, deeper - 1)
    elif isinstance(item, list | tuple) and deeper:
        for inner in item:
            yield from _ranges(inner, deeper - 1)


def _command(words: list[str]) -> Iterator[tuple[str, str]]:
    """`--name value`, `--name=value`, and words that belong to no option."""
    name = ""
    for word in words:
        option, assigned, value = word.partition("=")
        if word.startswith("-") and not any(map(str.isspace, option)):
            name = "" if assigned else word
            if assigned:
                yield from _leaves(option, value, _DEEPEST)
        else:
            inline = any(map(str.isspace, word))
            yield from _parts(word) if inline and not name else _leaves(name, word, _DEEPEST)
            if inline and not name:
                yield "", word
            name = ""


def _shown(item: Any, deeper: int) -> Iterator[str]:
    """All short texts of an answer that stay in it, and the parts of its addresses."""
    if isinstance(item, Mapping):
        for key, inner in item.items() if deeper else ():
            if key not in PAIRS | WORDS | RANGES | FREE_TEXTS:
                yield from _shown(inner, deeper - 1)
    elif isinstance(item, list | tuple):
        for inner in item if deeper else ():
            yield from _shown(inner, deeper - 1)
    elif isinstance(item, str):
        yield item
        if item.startswith("arn:"):
            yield from item.split(":")


def _keys(name: str) -> Iterable[str]:
    """The names under which a setting is written: whole, last part, with and without prefixes."""
    whole = _normal(name)
    found = {whole, whole.rpartition(".")[2]}
    for prefix in _PREFIXES:
        found |= {key.removeprefix(prefix) for key in found}
    found |= {f"sm_hp_{key}" for key in found}
    return found - {"", "sm_hp_"}


def _normal(name: str) -> str:
    return folded(name).strip("-_.").lower().replace("-", "_")


def _forms(value: str) -> Iterator[str]:
    """A value as texts may show it, in lower case: as it is, and without its own escapes."""
    for reading in readings(value):
        text = reading.lower.strip()
        if text:
            yield text


def _encoded(value: str) -> set[str]:
    """A value in an address, in a shell, in Base64 and in hexadecimal."""
    plain = value.strip()
    found = set()
    if " " in plain:
        found.add(plain.replace(" ", "+").lower())
    if "'" in plain:
        found.add(plain.replace("'", "'\"'\"'").lower())
    if is_secretive(plain) and len(plain) >= _EMBEDDED - 2:
        data = plain.encode("utf-8", "replace")
        whole = data[: len(data) // 3 * 3]
        found |= {
            base64.b64encode(whole).decode().lower(),
            base64.urlsafe_b64encode(whole).decode().lower(),
            data.hex(),
        }
    return found


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
