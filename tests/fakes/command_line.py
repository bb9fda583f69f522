"""Result of a run of the command line."""

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Result(Struct, frozen=True):
    """Exit code, stdout and stderr of one run."""

    exit_code: int
    stdout: str
    stderr: str

    def document(self, *, parse_float: Callable[[str], Any] = float) -> Any:
        """Returns the JSON that the run printed; the run must have succeeded."""
        assert self.exit_code == 0, self.stderr
        return json.loads(self.stdout, parse_float=parse_float)


Run = Callable[..., Result]
