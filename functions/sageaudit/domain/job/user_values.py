"""The values that a user gave a job, as its Describe answer has them.

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
from itertools import islice
from typing import Any

from sageaudit.domain.job.entry_point import script
from sageaudit.domain.privacy.hidden_values import NOTHING, UserValues
from sageaudit.domain.privacy.ordinary_words import is_ordinary
from sageaudit.domain.privacy.plain_values import LONG, is_module, is_name, is_plain, looks_secret
from sageaudit.domain.privacy.readings import folded, readings
from sageaudit.domain.privacy.secret_names import is_secret_name

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
_LONGEST_DECODED = 20_000
_SECRET_LETTERS = 6
"""Letters from which on a password that is one word is hidden anywhere."""
_PREFIXES = ("sm_hp_", "sagemaker_")
_PART = re.compile(r"(?:^|(?<=[?&;,\s{]))-{0,2}([A-Za-z_][\w.-]{0,80})\s?[=:]\s?([^\s;,&}]+)")
_OPTION = re.compile(r"(?:^|(?<=\s))--?([A-Za-z_][\w.-]{0,80})\s+([^\s-]\S*)")
_ELEMENT = re.compile(r"<([A-Za-z_][\w.:-]{0,80})[^<>]{0,200}>\s{0,40}([^<>\s][^<>]{0,400})</")
_ATTRIBUTE = re.compile(r"""(?<![\w.-])([A-Za-z_][\w.:-]{0,80})=(["'])([^"'<>]{1,400})\2""")
_FIELD_SIGNS = re.compile(r"[|;\t]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}\Z")
_PASSWORD = re.compile(r"://([^\s/:@]{0,200}):([^\s]{1,400})@")


def user_values(answer: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> UserValues:
    """The values of a Describe answer that no text of the job may show."""
    pairs = list(islice(_pairs(answer, _DEEPEST), _MOST))
    if not pairs:
        return NOTHING
    shown = {text.lower() for text in _shown(answer, _DEEPEST)}
    public = {text.lower() for text in _public(tags or {})}
    named: dict[str, set[str]] = {}
    anywhere: set[str] = set()
    for name, value in pairs:
        bare = value.strip().strip("\"'")
        telling = is_secret_name(name)
        if is_plain(bare) or bare.lower() in shown or script(bare) is not None:
            continue
        if not telling and (bare.lower() in public or is_module(bare)):
            continue
        forms = set(_forms(value))
        for key in _keys(name):
            named.setdefault(key, set()).update(forms)
        if is_ordinary(bare):
            continue
        if looks_secret(value) or (len(value) >= _SECRET_LETTERS and telling):
            anywhere |= forms | _encoded(value)
    return UserValues(
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
        bare = value.strip().strip("\"'")
        if is_ordinary(bare):
            yield name, bare
            return
        yield from _parts(value)
        yield from ((name, piece) for piece in _pieces(value, all_=is_secret_name(name)))
        for decoded in (_decoded(value), _from_base64(value)) if deeper else ():
            if decoded != value:
                yield from _leaves(name, decoded, deeper - 1)


def _pieces(value: str, *, all_: bool) -> list[str]:
    """The fields of `root|x|db`: those that mix letters and digits, or all of them."""
    pieces = [piece.strip() for piece in _FIELD_SIGNS.split(value)]
    if len(pieces) == 1:
        return []
    return [
        piece
        for piece in pieces
        if all_ or (any(map(str.isdigit, piece)) and any(map(str.isalpha, piece)))
    ]


def _from_base64(value: str) -> str:
    """The settings that a value holds in Base64; the value itself where it holds none."""
    if _BASE64.match(value) is None or len(value) > _LONGEST_DECODED:
        return value
    data = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text = base64.b64decode(data + "=" * (-len(data) % 4)).decode()
    except ValueError:
        return value
    holds = any(sign in text for sign in "{[<=:|\n") and text.replace("\n", "").isprintable()
    return text if holds else value


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
    yield from (("", line) for line in (lines if len(lines) > 1 else ()) if looks_secret(line))
    yield from ((hit[1], hit[3]) for hit in _ATTRIBUTE.finditer(value))
    for found in (_PART, _OPTION, _PASSWORD, _ELEMENT):
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


def _public(tags: Mapping[str, str]) -> Iterator[str]:
    """Tags that are names, and the names in their ARNs: whoever lists tags sees them."""
    for text in (*tags, *tags.values()):
        pieces = re.split(r"[:/]", text) if text.startswith("arn:") else ()
        yield from (piece for piece in (text, *pieces) if is_name(piece))


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
    if len(plain) >= LONG:
        data = plain.encode("utf-8", "replace")
        whole = data[: len(data) // 3 * 3]
        found |= {
            base64.b64encode(whole).decode().lower(),
            base64.urlsafe_b64encode(whole).decode().lower(),
            data.hex(),
        }
    return found
