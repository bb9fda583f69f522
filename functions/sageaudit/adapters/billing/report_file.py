"""Opens a cost report for reading row by row: CSV, gzipped CSV or Parquet, seen by its content."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, cast

from sageaudit.adapters.billing.parquet import ParquetReader
from sageaudit.errors import BadUsage

_LONGEST_LINE = 4_000_000
_LARGEST_EXPONENT = 15
_SMALLEST_EXPONENT = -30
"""AWS writes ten decimals; binary noise in them is above this. A rate divides by quantities."""
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Table = tuple[Sequence[str], Iterable[Sequence[object]]]
"""The column names of a report, and its rows."""
Cell = Callable[[Sequence[object], str], str]
"""Returns the text of a row's cell by its column, empty if absent."""


@contextmanager
def opened(path: Path, wanted: Callable[[str], bool], parquet: ParquetReader) -> Iterator[Table]:
    """The header and rows of a report; of Parquet only the columns that are `wanted`.

    Raises BadUsage naming the file, also while its rows are read.
    """
    with _sentences(path):
        with path.open("rb") as file:
            start = file.read(4)
        if not start:
            raise BadUsage(f"{path}: is empty")
        if start[:2] == b"PK":
            raise BadUsage(f"{path}: is a ZIP archive: unpack it first")
        if start == b"PAR1":
            yield parquet(path, wanted)
            return
        packed = start[:2] == b"\x1f\x8b"
        with closing(cast("IO[bytes]", gzip.open(path) if packed else path.open("rb"))) as binary:
            rows = _rows(path, binary)
            yield next(rows, []), rows


def column(name: str) -> str:
    """The name in CUR 2.0 form: `lineItem/UsageType` becomes `line_item_usage_type`."""
    return _WORD.sub("_", name.strip().replace("/", "_")).lower()


def positions_of(header: Sequence[str]) -> dict[str, int]:
    """Each column, named as `column` does, and its first position."""
    positions: dict[str, int] = {}
    for position, name in enumerate(header):
        positions.setdefault(column(name), position)
    return positions


def cells(positions: dict[str, int]) -> Cell:
    """Returns a function from a row and a column's name to the cell's text, empty if absent."""

    def cell(row: Sequence[object], name: str) -> str:
        position = positions.get(name)
        value = None if position is None else row[position]
        return "" if value is None else str(value).strip()

    return cell


def amount(text: str, where: str, name: str) -> Decimal | None:
    """A number of a report; None for an empty cell. Raises BadUsage."""
    if not text:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise BadUsage(f"{where}: {name} is not a number ({text[:40]})") from None
    size = number.adjusted() if number.is_finite() and number else 0
    if not number.is_finite() or not _SMALLEST_EXPONENT <= size <= _LARGEST_EXPONENT:
        raise BadUsage(f"{where}: {name} is not an amount ({text[:40]})")
    return number


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadUsage(f"{path}: is a broken gzip file") from error
    except OSError as error:
        raise BadUsage(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise BadUsage(f"{path}: is no cost report: it is not text in UTF-8") from error
    except csv.Error as error:
        raise BadUsage(f"{path}: is no cost report: it is not CSV ({error})") from error


def _rows(path: Path, binary: IO[bytes]) -> Iterator[list[str]]:
    """Rows of limited length: one whose quoted cells have line breaks has many lines."""
    read = 0

    def counted() -> Iterator[str]:
        nonlocal read
        for line in _lines(path, binary):
            read += len(line)
            if read > _LONGEST_LINE:
                raise BadUsage(f"{path}: is no cost report: it has a row of many lines")
            yield line

    for row in csv.reader(counted(), strict=True):
        read = 0
        yield row


def _lines(path: Path, binary: IO[bytes]) -> Iterator[str]:
    """Lines of limited length, so that a file without line breaks cannot fill the memory."""
    encoding = "utf-8-sig"
    while line := binary.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise BadUsage(
                f"{path}: is no cost report: it has a line of over {_LONGEST_LINE} bytes"
            )
        yield line.decode(encoding)
        encoding = "utf-8"
