"""Files that a user names for output: written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sageaudit.errors import BadUsage

_MODE = 0o644
_PREFIX = 40
"""Letters of a name that fit in a file's own name beside its other parts."""


@contextmanager
def whole_file(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yields the path to write to: a file beside `path`, which then takes its place.

    It gets `mode`, else that of the file before. A link stays a link, and its file is replaced. A
    device or a pipe is written to itself, never replaced. Raises BadUsage where the file cannot be
    written; an older one is then kept.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target = path.resolve()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:_PREFIX]}.")
        os.close(handle)
        beside = Path(name)
        try:
            yield beside
            known = target.stat().st_mode if target.exists() else _MODE
            beside.chmod(known if mode is None else mode)
            beside.replace(target)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
    except BrokenPipeError as error:
        raise BadUsage(f"{path} was closed by its reader: name another file") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise BadUsage(f"{path} cannot be written ({why}): name another file") from error
    except RuntimeError as error:
        if "loop" not in str(error).lower():
            raise
        raise BadUsage(f"{path} is a link that leads to itself: name another file") from error


def write_text(path: Path, text: str, mode: int | None = None) -> None:
    """Writes a whole file. Raises BadUsage where it cannot be written."""
    with whole_file(path, mode) as beside:
        beside.write_text(text, encoding="utf-8", errors="replace")
