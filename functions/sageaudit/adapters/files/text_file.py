"""Reads files and standard input for all commands, and the JSON in them.

It reads UTF-8, UTF-16 with a byte order mark (PowerShell's `>`), gzip, the AWS CLI's YAML, and
several JSON documents in one file. Other content is refused with one sentence that says what to do.
A file is read only once, so that pipes work.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from sageaudit.adapters.files.local_files import wrong_format_reason_of_bytes
from sageaudit.errors import BadUsage

STDIN = "-"
MAX_BYTES = 64 * 2**20
"""The maximum size of a file, before and after unpacking. Large Terraform plans have 10 MB."""
TOO_DEEPLY_NESTED = "has too many brackets inside each other"
_DESCRIPTORS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Paths that a shell gives for a pipe, such as `<(command)`."""
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The encoding, by the first bytes. UTF-32 comes first, since its mark begins with UTF-16's."""
_HEAD = 4096
_WHITESPACE = re.compile(r"\s*")
_PROMPT = re.compile(r"\s*(?:[\w@~:/\\.\[\]-]*[$%>#]\s*|PS [^\n>]*>\s*)?aws \w[^\n]*\n")
_PYTHON = re.compile(r"\s*[\[{(]+\s*(?:'|u'|datetime\.)|datetime\.datetime\(|tzlocal\(\)")
_TRAILING_COMMA = re.compile(r",\s*[}\]]")
_YAML = re.compile(r"\s*(?:---\s*\n|#[^\n]*\n|- )*\s*[A-Za-z][\w.-]*:(?:\s|$)")
_USE_JSON = "write it as JSON (`--output json`), or add PyYAML: `pipx inject sageaudit pyyaml`"


def display_name(path: str) -> str:
    """Returns the file's name for people."""
    return "standard input" if path == STDIN else path


def read_text(path: str, hint: str, *, may_be_empty: bool = False) -> str:
    """Returns the text of a file, or of standard input for "-".

    `hint`: what to give instead; it ends the error's text. Raises BadUsage with one sentence
    that names the file.
    """
    name = display_name(path)
    try:
        content = _read_bytes(path, hint)
    except OSError as error:
        raise BadUsage(f"{name}: cannot be read ({error.strerror})") from error
    except _Unreadable as error:
        raise BadUsage(f"{name}: {error}") from error
    return decode_text(content, path, hint, may_be_empty=may_be_empty)


def decode_text(content: bytes, path: str, hint: str, *, may_be_empty: bool = False) -> str:
    """Returns the text of a file's content. `path`, `hint` and errors: see `read_text`."""
    try:
        if len(content) > MAX_BYTES:
            raise _Unreadable(f"is larger than {MAX_BYTES // 2**20} MB: {hint}")
        if content.startswith(_GZIP_MAGIC):
            content = _unpack(content)
        if not content.strip() and not may_be_empty:
            raise _Unreadable(f"is empty: {hint}")
        return _decode(content, path, hint)
    except _Unreadable as error:
        raise BadUsage(f"{display_name(path)}: {error}") from error


class TextDocument(Struct, frozen=True):
    """A document of a text, and the number of its first line.

    `value` is BadUsage, which names the file, if the document cannot be parsed.
    """

    value: Any
    line: int


def parse_json(text: str, name: str, hint: str) -> Any:
    """Returns a text's only JSON or YAML document. `name` and `hint`: see `parse_documents`."""
    documents = parse_documents(text, name, hint)
    for document in documents:
        if isinstance(document.value, BadUsage):
            raise document.value
    if len(documents) > 1:
        raise BadUsage(f"{name}: has {len(documents)} JSON documents: give one of them")
    return documents[0].value


def parse_documents(text: str, name: str, hint: str) -> list[TextDocument]:
    """Returns a text's documents: one, or several as in JSON lines.

    A bad line of JSON lines costs only itself. Raises BadUsage that names the file, and the line
    and column if it is JSON.
    """
    try:
        documents = list(_json_documents(text))
    except (RecursionError, ValueError) as error:
        if _is_json_lines(text):
            documents = list(_line_documents(text, name, hint))
        elif isinstance(error, json.JSONDecodeError) and _YAML.match(text):
            return [TextDocument(_parse_yaml(text, name), 1)]
        else:
            raise _unparsed(error, name, hint) from error
    if not documents:
        raise BadUsage(f"{name}: is empty: {hint}")
    if len(documents) > 1 and (reason := _known_form_reason(name, text, hint)):
        raise BadUsage(f"{name}: {reason}")
    return documents


class _Unreadable(Exception):
    """Why a file cannot be read, without its name."""


def _read_bytes(path: str, hint: str) -> bytes:
    """Reads at most one byte more than MAX_BYTES. Raises _Unreadable or OSError."""
    if path == STDIN:
        content = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        if "\0" in path:
            raise _Unreadable(f"is not a file name: {hint}")
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise _Unreadable(f"is a folder: {hint}")
        if not stat.S_ISREG(mode) and not path.startswith(_DESCRIPTORS):
            raise _Unreadable(f"is not a regular file: {hint}")
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    return content


def _unpack(content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:  # reads all members
            unpacked = file.read(MAX_BYTES + 1)
    except EOFError as error:
        raise _Unreadable("is only the first part of a gzip file: copy it again") from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise _Unreadable("is damaged: gzip cannot unpack it") from error
    if len(unpacked) > MAX_BYTES:
        raise _Unreadable(f"unpacks to more than {MAX_BYTES // 2**20} MB")
    return unpacked


def _decode(content: bytes, path: str, hint: str) -> str:
    encoding = next(
        (name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), None
    )
    if encoding is None and b"\0" in content[:_HEAD]:
        reason = wrong_format_reason_of_bytes(path, content, hint)
        utf16 = "is text in UTF-16 without a byte order mark: save it as UTF-8"
        raise _Unreadable(reason or (utf16 if _is_utf16(content) else f"is not text: {hint}"))
    try:
        return content.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        reason = wrong_format_reason_of_bytes(path, content, hint)
        name = (encoding or "utf-8").removesuffix("-sig").upper()
        wrong_bytes = f"is not text in {name} (byte {error.start + 1:,}): {hint}"
        raise _Unreadable(reason or wrong_bytes) from error


def _is_utf16(content: bytes) -> bool:
    """Returns True for ASCII text in UTF-16 without a byte order mark."""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = content[:_HEAD].decode(encoding, errors="replace")
        if text.isascii() and all(char.isprintable() or char.isspace() for char in text):
            return True
    return False


def _json_documents(text: str, first_line: int = 1) -> Iterator[TextDocument]:
    """Yields the JSON documents of a text. Raises ValueError or RecursionError."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    line, counted_to = first_line, 0
    start = _skip_whitespace(text, 0)
    while start < len(text):
        line, counted_to = line + text.count("\n", counted_to, start), start
        document, end = decoder.raw_decode(text, start)
        yield TextDocument(document, line)
        start = _skip_whitespace(text, end)
        if start < len(text) and not isinstance(document, dict):
            raise json.JSONDecodeError("Extra data", text, start)


def _is_json_lines(text: str) -> bool:
    """Returns whether a line of the text is a whole object, so that other lines may be bad."""
    if text.lstrip().startswith("[") or _PROMPT.match(text):
        return False
    lines = (line for line in text.split("\n") if line.startswith("{") and line.rstrip()[1:-1])
    return any(isinstance(_try_json(line), dict) for line in lines)


def _try_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return None


def _line_documents(text: str, name: str, hint: str) -> Iterator[TextDocument]:
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            yield from _json_documents(line, number)
        except (RecursionError, ValueError) as error:
            yield TextDocument(_unparsed(error, name, hint, first_line=number), number)


def _skip_whitespace(text: str, start: int) -> int:
    match = _WHITESPACE.match(text, start)
    return match.end() if match else start


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _known_form_reason(path: str, text: str, hint: str) -> str | None:
    return wrong_format_reason_of_bytes(path, text[:_HEAD].encode(errors="replace"), hint)


def _unparsed(error: Exception, name: str, hint: str, first_line: int = 1) -> BadUsage:
    """Returns the refusal of a text, or of the line of a text, that is not JSON."""
    if isinstance(error, RecursionError):
        return BadUsage(f"{name}: {TOO_DEEPLY_NESTED}")
    if not isinstance(error, json.JSONDecodeError):
        reason = str(error).partition(";")[0]  # after it Python advises its programmers
        return BadUsage(f"{name}: is not JSON ({reason})")
    return BadUsage(f"{name}: {_not_json_reason(error, first_line, name, hint)}")


def _not_json_reason(error: json.JSONDecodeError, first_line: int, name: str, hint: str) -> str:
    text = error.doc
    if _PROMPT.match(text):
        return "begins with a command: remove its first line"
    if _PYTHON.search(text, 0, _HEAD):
        return "is a Python object as print() writes it: write json.dumps(answer, default=str)"
    if reason := _known_form_reason(name, text, hint):
        return reason
    # Python 3.13 and later name the comma's place, earlier versions that of the bracket.
    comma = _TRAILING_COMMA.match(text, text.rfind(",", 0, error.pos + 1))
    if comma and error.pos in {comma.start(), comma.end() - 1}:
        where = _place(error, comma.start(), first_line)
        return f"is not JSON ({where}): remove the comma before the bracket"
    where = _place(error, error.pos, first_line)
    if error.pos >= len(text.rstrip()):
        return f"is not JSON ({where}): it ends too early, so copy it again"
    return f"is not JSON ({where}: {error.msg})"


def _place(error: json.JSONDecodeError, position: int, first_line: int) -> str:
    at = json.JSONDecodeError(error.msg, error.doc, position)
    return f"line {at.lineno + first_line - 1}, column {at.colno}"


def _parse_yaml(text: str, name: str) -> Any:
    # Times stay text, as in JSON. Raises BadUsage.
    try:
        yaml = import_module("yaml")
    except ImportError as error:
        raise BadUsage(f"{name}: is YAML: {_USE_JSON}") from error
    # the loader in C is ten times as fast
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)
    loader.add_multi_constructor("!", _cloudformation_function)
    try:
        # an alias repeats a part: a few lines of them unpack to gigabytes
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, loader)):
            raise BadUsage(f"{name}: has YAML aliases, which no answer of AWS has: {_USE_JSON}")
        return yaml.load(text, loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise BadUsage(f"{name}: is not JSON, and not YAML{where}") from error


def _cloudformation_function(loader: Any, name: str, node: Any) -> dict[str, Any]:
    """Returns a short form of CloudFormation, such as `!Sub x`, in its long form."""
    construct = {"scalar": loader.construct_scalar, "sequence": loader.construct_sequence}.get(
        node.id, loader.construct_mapping
    )
    arguments = {} if node.id == "scalar" else {"deep": True}
    key = name if name in {"Ref", "Condition"} else f"Fn::{name}"
    return {key: construct(node, **arguments)}
