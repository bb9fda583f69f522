"""Commands in messages, complete so that they work where a reader pastes them."""

from __future__ import annotations

import shlex
from typing import Self

from msgspec import Struct

from sageaudit.output.text.untrusted import terminal


class HistoryPlace(Struct, frozen=True):
    """The history that the commands of a message are about, as the options that name it.

    Without options it is the reader's own default.
    """

    options: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, name: str, region: str) -> Self:
        """A table of a stack. Its region is named always: the reader's default may be another."""
        return cls(("--table", name, "--table-region", region))

    def command(self, *words: str) -> str:
        """`sageaudit advice snooze vexhzxcl --table NAME --table-region us-east-1`, quoted for a
        shell.
        """
        return shlex.join(terminal(word) for word in ("sageaudit", *words, *self.options))


OWN_HISTORY = HistoryPlace()
"""The one that the reader's commands use by default."""
