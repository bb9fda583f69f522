"""The methods of dataclasses, compiled once for all runs, as Python keeps the code of modules.

A dataclass writes its methods as text when its module is imported, and Python compiles that text
each time: a third of what `sageaudit audit --recording` takes. Their code is kept by their text,
beside Python's own byte code and on the same terms: where that folder can be written, for this
version of Python, and not under PYTHONDONTWRITEBYTECODE.
"""

from __future__ import annotations

import dataclasses
import marshal
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType

from sageaudit.adapters.lambda_runtime.init import executing

_MOST_BYTES = 10_000_000
"""All commands have a third of it: the rest is of texts that are no more, so it is made anew."""


@contextmanager
def compiled_once(folder: Path = Path(__file__).parent / "__pycache__") -> Iterator[None]:
    """In this block, the methods of dataclasses are compiled only if no earlier run did it."""
    file = folder / f"methods.{sys.implementation.cache_tag}.bin"
    known = _read(file)
    before = len(known)
    dataclasses.exec = executing(known)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        vars(dataclasses).pop("exec", None)
        if len(known) > before and not sys.dont_write_bytecode:
            _write(file, known)


def _read(file: Path) -> dict[str, CodeType]:
    """Nothing where it is missing, damaged or too long."""
    with suppress(OSError, EOFError, ValueError, TypeError):
        data = file.read_bytes()
        found = marshal.loads(data) if len(data) < _MOST_BYTES else None  # noqa: S302 - our own
        if isinstance(found, dict):
            return found
    return {}


def _write(file: Path, known: dict[str, CodeType]) -> None:
    """At once: another run reads the whole file or none."""
    written = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        try:
            written.write_bytes(marshal.dumps(known))
            written.replace(file)
        finally:
            written.unlink(missing_ok=True)
