"""The start of a Lambda function: each handler imports this before all else.

What a start makes stays, so the collector of cycles would search it in vain, a tenth of the start's
CPU: it rests until the function is built. A dataclass writes its methods as text when its module is
imported, and Python compiles that text each time, a quarter of the start's CPU: the build compiled
it already (`infra/byte_code.py`). A text that the build has not seen is compiled as ever, as on a
Python whose dataclasses write another one.
"""

from __future__ import annotations

import dataclasses
import gc
import marshal
import os
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

METHODS = Path(__file__).parents[2] / "data" / "methods.bin"
"""Where the build keeps the code of each text: a dictionary, in the form of byte code."""
ON_LAMBDA = "AWS_LAMBDA_INITIALIZATION_TYPE" in os.environ


def begin() -> None:
    """Before all imports."""
    gc.disable()
    if METHODS.is_file():
        dataclasses.exec = executing(marshal.loads(METHODS.read_bytes()))  # type: ignore[attr-defined]  # noqa: S302 - of our build


def end() -> None:
    """After the function is built: what is there now is never searched."""
    vars(dataclasses).pop("exec", None)
    gc.freeze()
    gc.enable()


def executing(
    compiled: dict[str, CodeType],
) -> Callable[[str, dict[str, Any], dict[str, Any]], None]:
    """The built-in `exec`, for the module of dataclasses; what it compiles is added."""

    def execute(text: str, names: dict[str, Any], made: dict[str, Any]) -> None:
        code = compiled.get(text)
        if code is None:
            code = compiled[text] = compile(text, "<string>", "exec", dont_inherit=True)
        exec(code, names, made)  # noqa: S102 - as dataclasses does

    return execute


if ON_LAMBDA:
    begin()
