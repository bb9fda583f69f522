"""Corrects click's completion where a shell reads a value in another way.

bash divides words at `=` and `:`, and inserts values unquoted; click's script for it drops
backslashes. click's script for fish reads a value up to its first comma. zsh and fish replace a
whole word, such as `--sort=was`.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

_WORD_BREAKS = frozenset({"=", ":"})
"""The characters of COMP_WORDBREAKS that occur in values."""
_SPECIAL = {
    "": re.compile(r"([^\w@%+=:,./~-])"),
    "'": re.compile(r"(')"),
    '"': re.compile(r"([\"$`\\!])"),
}
"""What bash would not read as text, by the quote that is open."""


class _Bash(BashComplete):
    source_template = (
        BashComplete.source_template.replace("read type value", "read -r type value")
        .replace("COMPREPLY+=($value)", 'COMPREPLY+=("$value")')
        # A quote after the cursor does not count.
        .replace('"${COMP_WORDS[*]}"', '"${COMP_WORDS[*]:0:COMP_CWORD+1}"')
    )
    _divided_prefix = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Returns the words before the cursor and the word at it, put together again."""
        before, word = super().get_completion_args()
        parts = [word]
        while before and (parts[0] in _WORD_BREAKS or before[-1] in _WORD_BREAKS):
            parts.insert(0, before.pop())
        self._divided_prefix = "".join(parts if word in _WORD_BREAKS else parts[:-1])
        return before, "".join(parts)

    def format_completion(self, item: CompletionItem) -> str:
        """Returns the part of the value that bash replaces, safe to insert."""
        if item.type == "plain":
            value = item.value.removeprefix(self._divided_prefix)
            quote = _open_quote()
            # A special character stands outside of the quotes: 'it'\''s'
            text = _SPECIAL[quote].sub(rf"{quote}\\\1{quote}", value)
            # bash closes the quotes, unless the text seems to have done so.
            item = CompletionItem(text + quote if quote and text.endswith(quote) else text)
        return super().format_completion(item)


def _open_quote() -> str:
    """Returns the quote in which the cursor is; an empty text if there is none."""
    for quote in ("", "'", '"'):
        with suppress(ValueError):
            # A backslash at the end stands before the next character.
            shlex.split(f"{os.environ['COMP_WORDS']}x{quote}")
            return quote
    return ""


class _WholeWord(ShellComplete):
    """Keeps `--sort=` before a value, because the shell replaces the whole word."""

    _option_prefix = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        before, word = super().get_completion_args()
        name, sign, _ = word.partition("=")
        self._option_prefix = f"{name}{sign}" if sign and name.startswith("-") else ""
        return before, word

    def format_completion(self, item: CompletionItem) -> str:
        if item.type == "plain":
            item = CompletionItem(f"{self._option_prefix}{item.value}", help=item.help)
        return super().format_completion(item)


class _Zsh(_WholeWord, ZshComplete):
    pass


class _Fish(_WholeWord, FishComplete):
    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


class _AwsName(Exception):
    """Replaces every class and function of boto3 and botocore, and their attributes."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def __getattr__(self, _: str) -> type[_AwsName]:
        return _AwsName


class _AwsPlaceholders(MetaPathFinder, Loader):
    """Imports empty modules for those of boto3 and botocore, which take as long as all others."""

    def find_spec(
        self, fullname: str, _: Sequence[str] | None, __: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_aws = fullname.partition(".")[0] in {"boto3", "botocore"}
        return ModuleSpec(fullname, self, is_package=True) if is_aws else None

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module every name."""
        module.__getattr__ = lambda _: _AwsName  # type: ignore[method-assign]


def import_no_aws() -> None:
    """Makes later imports of boto3 fast and useless, since a completion never calls AWS."""
    if "botocore" not in sys.modules:
        sys.meta_path.insert(0, _AwsPlaceholders())


def register_completion_fixes() -> None:
    """Registers these completion classes with click."""
    add_completion_class(_Bash)
    add_completion_class(_Zsh)
    add_completion_class(_Fish)
