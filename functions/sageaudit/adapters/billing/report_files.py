"""Finds the files of a cost report, and copies those that DuckDB cannot read to a temporary folder.

AWS writes CSV in gzip or ZIP, and Parquet. Spreadsheets write CSV in UTF-16. DuckDB reads UTF-8,
gzip and Parquet itself.
"""

from __future__ import annotations

import codecs
import shutil
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from zipfile import BadZipFile, ZipFile, ZipInfo

from msgspec import Struct

from sageaudit.errors import BadUsage

MAX_BYTES = 16 * 2**30
"""The maximum size of a file, and of all that a ZIP file contains. A report of ten million lines
has about 10 GB. Our choice."""
GZIP_MAGIC = b"\x1f\x8b"
_ENDINGS = (".csv", ".csv.gz", ".csv.zip", ".parquet")
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENCRYPTED = 0x1
"""The flag of an encrypted member of a ZIP file."""
_WORKBOOK_MEMBER = "[Content_Types].xml"
_CHUNK = 2**20


class ReportFile(Struct, frozen=True):
    """A file that DuckDB can read. `name` names the user's own file in messages."""

    name: str
    path: Path


def find_report_files(path: Path, temporary_folder: Path) -> Iterator[ReportFile]:
    """Yields the files of a report, of a folder of reports, or of a ZIP file.

    Copies go to `temporary_folder`. Raises BadUsage that names the file, or OSError.
    """
    for file in _files_of_folder(path) if path.is_dir() else [path]:
        yield from _readable_files(file, temporary_folder)


def _files_of_folder(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.rglob("*") if _is_report_name(file.name))
    if not files:
        raise BadUsage(f"{folder}: has no file that ends in {', '.join(_ENDINGS)}")
    return files


def _is_report_name(name: str) -> bool:
    # macOS writes files that begin with "._", with attributes of a file but not its content
    return name.lower().endswith(_ENDINGS) and not name.startswith(".")


def _readable_files(path: Path, temporary_folder: Path) -> Iterator[ReportFile]:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise BadUsage(f"{path}: is not a regular file: write the report to a file first")
    _check_size(path, status.st_size)
    with path.open("rb") as file:
        first_bytes = file.read(4)
    if first_bytes.startswith(_ZIP_MAGICS):
        yield from _unzipped(path, temporary_folder)
    else:
        yield _in_utf8(ReportFile(str(path), path), first_bytes, temporary_folder)


def _check_size(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise BadUsage(
            f"{path}: has more than {MAX_BYTES // 2**30} GB: give the files of one month"
        )


def _in_utf8(file: ReportFile, first_bytes: bytes, temporary_folder: Path) -> ReportFile:
    """Returns a copy in UTF-8 of a file in UTF-16, and any other file unchanged."""
    if not first_bytes.startswith(_UTF16_MARKS):
        return file
    with (
        file.path.open(encoding="utf-16", newline="") as source,
        NamedTemporaryFile(
            "w", encoding="utf-8", newline="", dir=temporary_folder, delete=False
        ) as copy,
    ):
        shutil.copyfileobj(source, copy, _CHUNK)
    return ReportFile(file.name, Path(copy.name))


def _unzipped(path: Path, temporary_folder: Path) -> Iterator[ReportFile]:
    try:
        with ZipFile(path) as archive:
            members = _report_members(path, archive)
            for member in members:
                with (
                    archive.open(member) as source,
                    NamedTemporaryFile(dir=temporary_folder, delete=False) as copy,
                ):
                    shutil.copyfileobj(source, copy, _CHUNK)
                name = f"{path}: {member.filename}" if len(members) > 1 else str(path)
                unpacked = Path(copy.name)
                with unpacked.open("rb") as file:
                    first_bytes = file.read(4)
                if first_bytes.startswith(_ZIP_MAGICS):
                    raise BadUsage(f"{name}: has a ZIP file inside a ZIP file: unzip it first")
                yield _in_utf8(ReportFile(name, unpacked), first_bytes, temporary_folder)
    except NotImplementedError as error:
        raise BadUsage(f"{path}: is packed in a way that Python cannot read: unzip it") from error
    except (BadZipFile, EOFError, zlib.error) as error:
        raise BadUsage(f"{path}: is a damaged ZIP file: download it again") from error


def _report_members(path: Path, archive: ZipFile) -> list[ZipInfo]:
    """Returns the reports in a ZIP file. Raises BadUsage if they cannot be unpacked."""
    members = [
        member for member in archive.infolist() if _is_report_name(Path(member.filename).name)
    ]
    if not members and _WORKBOOK_MEMBER in archive.namelist():
        raise BadUsage(f"{path}: is a spreadsheet's workbook: give the report as AWS wrote it")
    if not members:
        raise BadUsage(f"{path}: has no file inside that ends in {', '.join(_ENDINGS)}")
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise BadUsage(f"{path}: is encrypted: unzip it with its password first")
    # zipfile unpacks no more than the size that the archive names
    _check_size(path, sum(member.file_size for member in members))
    return members
