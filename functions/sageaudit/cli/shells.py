"""Corrects click's completion where a shell reads a value in another way.

bash divides words at `=` and `:`, and inserts values unquoted; click's script for it drops
backslashes. click's script for fish reads a value up to its first comma. zsh and fish replace a
whole word, such as `--sort=was`.
"""

from __future__ import annotations

import os
import re
import shlex

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

_WORD_BREAKS = frozenset({"=", ":"})
"""Of bash's COMP_WORDBREAKS, those that values have."""
_SPECIAL = re.compile(r"([^\w@%+=:,./~-])")


class _Bash(BashComplete):
    source_template = BashComplete.source_template.replace(
        "read type value", "read -r type value"
    ).replace("COMPREPLY+=($value)", 'COMPREPLY+=("$value")')
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
            item = CompletionItem(value if _is_in_quotes() else _SPECIAL.sub(r"\\\1", value))
        return super().format_completion(item)


def _is_in_quotes() -> bool:
    try:
        shlex.split(os.environ["COMP_WORDS"])
    except ValueError:
        return True
    return False


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


def correct_shells() -> None:
    """Makes click use these classes."""
    add_completion_class(_Bash)
    add_completion_class(_Zsh)
    add_completion_class(_Fish)
