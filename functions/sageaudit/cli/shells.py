"""Corrects click's completion where bash or fish reads a value in another way.

bash divides words at `=` and `:`, and inserts values unquoted. fish's script reads a value up to
its first comma.
"""

from __future__ import annotations

import os
import re
import shlex

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
)

_WORD_BREAKS = frozenset({"=", ":"})
"""Of bash's COMP_WORDBREAKS, those that values have."""
_SPECIAL = re.compile(r"([^\w@%+=:,./~-])")


class _Bash(BashComplete):
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


class _Fish(FishComplete):
    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


def correct_shells() -> None:
    """Makes click use these classes."""
    add_completion_class(_Bash)
    add_completion_class(_Fish)
