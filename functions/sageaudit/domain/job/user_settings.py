"""A job's hyperparameters, environment and options as plain pairs of name and text; its script.

The SDK writes each hyperparameter as JSON (`"cosine"` with its quotes, `true`, `16`), and twice for
a tuning job; configurations nest. All become lower-case names and texts, limited in number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from msgspec import Struct

from sageaudit.domain.job import fields

_MOST = 500
"""Most settings that are read: the API takes 100 hyperparameters and 100 variables."""
_MOST_CHARACTERS = 10_000
_MOST_OF_A_TEXT = 1000
_SHORT = 200
_DEEPEST = 5
_ENCODED_TIMES = 3
_LAUNCHERS = frozenset({"torchrun", "mpirun", "horovodrun", "deepspeed", "accelerate"})
_OFF = frozenset(
    {"", "0", "0.0", "-1", "false", "no", "none", "off", "null", "auto", "disabled", "never",
     "fp32", "float32", "o0"}
)  # fmt: skip
_WORD = re.compile(r"[a-z0-9]+")
_SCRIPT = re.compile(
    r"(?:[\w./:-]*/)?([\w.+-]+\.(?:py|pyc|pyz|ipynb|sh|bash|zsh|R|r|Rmd|jl|pl|rb|js|mjs|ts|lua|m|sql"
    r"|scala|jar|php|go|exe|bat|ps1))\Z",
    re.ASCII,
)
"""A file of a language that jobs are written in. Any other word may be a secret."""
_LONGEST = 255
"""A file name is not longer."""


class UserSetting(Struct, frozen=True):
    """One pair, such as `fp16` and `true`. Nested names are joined with dots."""

    name: str
    text: str

    @property
    def on(self) -> bool:
        """False when the text switches the setting off or leaves it to another setting."""
        return self.text not in _OFF

    @property
    def leaf(self) -> str:
        """The last part of a nested name."""
        return self.name.rpartition(".")[2]

    @property
    def words(self) -> frozenset[str]:
        """The words of the name."""
        return frozenset(_WORD.findall(self.name))

    @property
    def text_words(self) -> frozenset[str]:
        """The words of a short text; empty for an address, which names other things."""
        long = len(self.text) > _SHORT or "://" in self.text
        return frozenset() if long else frozenset(_WORD.findall(self.text))


def user_settings(
    hyperparameters: Mapping[str, Any], environment: Mapping[str, Any], command: Iterable[Any]
) -> Iterator[UserSetting]:
    """All pairs, the first 500 at most. `command`: lists of words; anything else is ignored."""
    named = chain(hyperparameters.items(), environment.items())
    flat = chain.from_iterable(_flat(name, value, _DEEPEST) for name, value in named)
    parts = [part for words in command if isinstance(words, list) for part in words]
    text = " ".join(part for part in parts if isinstance(part, str))
    return islice(chain(flat, _options(text[:_MOST_CHARACTERS].split())), _MOST)


def _flat(name: str, value: Any, deeper: int) -> Iterator[UserSetting]:
    value = _decoded(value)
    if isinstance(value, Mapping):
        for key, item in value.items() if deeper else ():
            yield from _flat(f"{name}.{key}", item, deeper - 1)
    elif isinstance(value, list):
        for item in value if deeper else ():
            yield from _flat(name, item, deeper - 1)
    else:
        yield _setting(name, "" if value is None else str(value))


def _decoded(value: Any) -> Any:
    for _ in range(_ENCODED_TIMES):
        if not isinstance(value, str) or not value.startswith(('"', "{", "[")):
            break
        if len(value) > _MOST_CHARACTERS:
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def _options(words: list[str]) -> Iterator[UserSetting]:
    """`--fp16`, `--num-workers 4`, `--lr=0.1`, `trainer.precision=16`, and the launcher's name."""
    for position, word in enumerate(words):
        name, assigned, value = word.partition("=")
        following = words[position + 1] if position + 1 < len(words) else "-"
        if assigned:
            yield _setting(name, value)
        elif word.startswith("--"):
            yield _setting(name, "true" if following.startswith("-") else following)
        elif word.rpartition("/")[2] in _LAUNCHERS:
            yield _setting("launcher", word.rpartition("/")[2])


def _setting(name: str, text: str) -> UserSetting:
    plain = text[:_MOST_OF_A_TEXT].strip().strip("'\"").lower()
    return UserSetting(name[:_SHORT].lstrip("-_").replace("-", "_").lower(), plain)


def entry_point(answer: Mapping[str, Any]) -> str | None:
    """The script's file name, or None.

    It comes from the SDK's hyperparameter `sagemaker_program` (a JSON string), or from the first
    script of a processing command.
    """
    program = fields.section(answer, "HyperParameters").get("sagemaker_program")
    if isinstance(program, str):
        return script(program.strip('"'))
    command = fields.section(answer, "AppSpecification").get("ContainerEntrypoint")
    words = command if isinstance(command, list) else ()
    return next((name for word in words if (name := script(str(word)))), None)


def script(word: str) -> str | None:
    """A script's file name; None for a word without a script's suffix."""
    found = _SCRIPT.match(word)
    return found[1] if found and len(found[1]) <= _LONGEST else None
