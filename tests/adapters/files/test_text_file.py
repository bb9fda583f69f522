"""Text of a file or of standard input, in the forms that people have."""

import gzip
import io
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.files import text_file
from sageaudit.errors import BadUsage

HINT = "give a recording"
DOCUMENT = {"TrainingJobName": "train-é", "BillableTimeInSeconds": 159}
JSON = json.dumps(DOCUMENT, indent=1, ensure_ascii=False)
YAML = """\
# aws sagemaker describe-training-job --output yaml
BillableTimeInSeconds: 159
CreationTime: 2021-10-12T05:49:40.493000+00:00
TrainingJobName: 'train-é'
"""


def read(content: bytes, folder: Path) -> Any:
    """What a file with this content has."""
    path = folder / "answer"
    path.write_bytes(content)
    text = text_file.read_text(str(path), HINT)
    return text_file.parse_json(text, "answer", HINT)


def refusal(content: bytes, folder: Path) -> str:
    """Why the file is not read, without its name."""
    with pytest.raises(BadUsage) as caught:
        read(content, folder)
    return str(caught.value).removeprefix(f"{folder / 'answer'}: ").removeprefix("answer: ")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(JSON.encode(), id="UTF-8"),
        pytest.param(JSON.encode("utf-8-sig"), id="UTF-8 with a byte order mark"),
        pytest.param(JSON.encode("utf-16"), id="UTF-16 with a byte order mark, by PowerShell"),
        pytest.param(b"\xfe\xff" + JSON.encode("utf-16-be"), id="UTF-16 big-endian"),
        pytest.param(JSON.encode("utf-32"), id="UTF-32"),
        pytest.param(gzip.compress(JSON.encode()), id="gzip"),
        pytest.param(gzip.compress(JSON.encode("utf-16")), id="UTF-16 in gzip"),
    ],
)
def test_a_document_is_read_in_any_usual_encoding(content: bytes, tmp_path: Path) -> None:
    assert read(content, tmp_path) == DOCUMENT


def test_yaml_of_the_aws_cli_is_read_and_times_stay_text(tmp_path: Path) -> None:
    moment = "2021-10-12T05:49:40.493000+00:00"
    assert read(YAML.encode(), tmp_path) == {**DOCUMENT, "CreationTime": moment}


def test_without_pyyaml_the_user_reads_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert refusal(YAML.encode(), tmp_path) == (
        "is YAML: write it as JSON (`--output json`), or add PyYAML: `pipx inject sageaudit pyyaml`"
    )


def test_yaml_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    assert refusal(bomb.encode(), tmp_path).startswith("has YAML aliases, which no answer of AWS")


def test_json_lines_are_several_documents() -> None:
    text = f"{json.dumps(DOCUMENT)}\n{json.dumps(DOCUMENT)}\n"
    assert text_file.parse_documents(text, "jobs.jsonl", HINT) == [
        text_file.TextDocument(DOCUMENT, 1),
        text_file.TextDocument(DOCUMENT, 2),
    ]
    with pytest.raises(BadUsage, match=r"jobs.jsonl: has 2 JSON documents: give one of them"):
        text_file.parse_json(text, "jobs.jsonl", HINT)


def test_a_bad_line_of_json_lines_costs_only_itself() -> None:
    """It is named by its number in the file; pretty-printed documents may follow each other."""
    text = '{"a": 1}\noops\n\n{"a": NaN}\n{"b": [\n{"c": 1}{"d": 1}\n'
    documents = text_file.parse_documents(text, "jobs.jsonl", HINT)
    assert [(document.line, str(document.value)) for document in documents] == [
        (1, "{'a': 1}"),
        (2, "jobs.jsonl: is not JSON (line 2, column 1: Expecting value)"),
        (4, "jobs.jsonl: is not JSON (NaN is no number of JSON)"),
        (5, "jobs.jsonl: is not JSON (line 5, column 8): it ends too early, so copy it again"),
        (6, "{'c': 1}"),
        (6, "{'d': 1}"),
    ]
    pretty = f"{JSON}\n{JSON}\n"
    lines = [document.line for document in text_file.parse_documents(pretty, "x", HINT)]
    assert lines == [1, 1 + len(JSON.splitlines())]


def test_a_pretty_printed_document_with_an_error_is_one_document() -> None:
    with pytest.raises(BadUsage, match=r"x: is not JSON \(line 2, column 13\)"):
        text_file.parse_documents('{"Tags": [\n{"Key": "a"},\n]}', "x", HINT)


def test_all_members_of_a_gzip_file_are_read(tmp_path: Path) -> None:
    """As `cat a.gz b.gz` makes them, also with zeros at the end."""
    first, second = JSON[:9].encode(), JSON[9:].encode()
    content = gzip.compress(first) + gzip.compress(second) + b"\0" * 512
    assert read(content, tmp_path) == DOCUMENT
    assert refusal(gzip.compress(first) + b"junk", tmp_path) == "is damaged: gzip cannot unpack it"


def zipped() -> bytes:
    """A ZIP archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("x", "y")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "is empty: give a recording", id="empty"),
        pytest.param(b" \n\n", "is empty: give a recording", id="whitespace"),
        pytest.param(
            "  \n".encode("utf-16"), "is empty: give a recording", id="whitespace in UTF-16"
        ),
        pytest.param(
            json.dumps(DOCUMENT).encode("utf-16-le"),
            "is text in UTF-16 without a byte order mark: save it as UTF-8",
            id="UTF-16 without a mark",
        ),
        pytest.param(
            b'{"a": "\xe9"}',
            "is not text in UTF-8 (byte 8): give a recording",
            id="Latin-1",
        ),
        pytest.param(
            b"{'TrainingJobName': 'a',\n 'CreationTime': datetime.datetime(2021, 6, 14)}",
            "is a Python object as print() writes it: write json.dumps(answer, default=str)",
            id="a printed dictionary",
        ),
        pytest.param(
            b'$ aws sagemaker describe-training-job --training-job-name a\n{"a": 1}',
            "begins with a command: remove its first line",
            id="a prompt",
        ),
        pytest.param(
            b'{"a": 1,\n "b": [1, 2],\n}',
            "is not JSON (line 2, column 13): remove the comma before the bracket",
            id="a trailing comma",
        ),
        pytest.param(
            b'{"a": [1, 2',
            "is not JSON (line 1, column 12): it ends too early, so copy it again",
            id="a truncated copy",
        ),
        pytest.param(
            b'{"a": 1}\nThe job has completed.',
            "is not JSON (line 2, column 1: Expecting value)",
            id="text after it",
        ),
        pytest.param(
            b"[" * 100_000, "has too many brackets inside each other", id="too deeply nested"
        ),
        pytest.param(b'{"a": NaN}', "is not JSON (NaN is no number of JSON)", id="NaN"),
        pytest.param(
            gzip.compress(JSON.encode())[:-9],
            "is only the first part of a gzip file: copy it again",
            id="truncated gzip",
        ),
        pytest.param(
            b"\x1f\x8b" + b"x" * 40, "is damaged: gzip cannot unpack it", id="damaged gzip"
        ),
    ],
)
def test_what_is_not_read_says_what_it_is_and_what_to_do(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    assert refusal(content, tmp_path) == reason


def test_a_zip_archive_is_named(tmp_path: Path) -> None:
    assert refusal(zipped(), tmp_path).startswith("is a ZIP archive")


def test_a_few_kilobytes_that_unpack_to_more_than_64_mb_are_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(b" " * (text_file.MAX_BYTES + 1))
    assert refusal(bomb, tmp_path) == "unpacks to more than 64 MB"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/zero", "/dev/zero: is not a regular file: give a recording"),
        ("/", "/: is a folder: give a recording"),
        ("a\0b", "a\0b: is not a file name: give a recording"),
        ("/no/such/file", "/no/such/file: cannot be read (No such file or directory)"),
    ],
)
def test_a_path_that_is_no_file_is_refused(path: str, reason: str) -> None:
    with pytest.raises(BadUsage) as caught:
        text_file.read_text(path, HINT)
    assert str(caught.value) == reason


def test_a_named_pipe_that_nobody_writes_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadUsage, match="pipe: is not a regular file"):
        text_file.read_text(str(pipe), HINT)


def test_a_pipe_that_a_shell_makes_is_read_once() -> None:
    """As `sageaudit audit --recording <(aws sagemaker ...)`."""
    receiver, sender = os.pipe()
    os.write(sender, JSON.encode())
    os.close(sender)
    assert text_file.read_text(f"/dev/fd/{receiver}", HINT) == JSON
    os.close(receiver)


def test_standard_input_is_read_by_its_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(JSON.encode("utf-16"))))
    assert text_file.read_text("-", HINT) == JSON
