"""What dataclasses compile is kept for the next run, and never stands in its way."""

import builtins
import marshal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sageaudit.cli.compiled_methods import compiled_once


@pytest.fixture(autouse=True)
def byte_code_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever PYTHONDONTWRITEBYTECODE says to whoever runs the tests."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are compiled while a test runs."""
    texts = list[str]()
    real: Callable[..., Any] = compile

    def noting(text: Any, *args: Any, **named: Any) -> Any:
        texts.append(str(text))
        return real(text, *args, **named)

    monkeypatch.setattr(builtins, "compile", noting)
    return texts


def define() -> None:
    """A class with written methods, and what they do."""

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2

    assert (Point(1), hash(Point(1))) == (Point(1, 2), hash((1, 2)))
    assert repr(Point(1)).endswith("Point(x=1, y=2)")


def test_a_later_run_compiles_what_no_run_has(tmp_path: Path, compiled: list[str]) -> None:
    """One file for this Python, whole or not there."""
    with compiled_once(tmp_path):
        define()
    assert compiled
    compiled.clear()
    with compiled_once(tmp_path):
        define()
    assert compiled == []
    assert [file.name for file in tmp_path.iterdir()] == [
        f"methods.{sys.implementation.cache_tag}.bin"
    ]


@pytest.mark.parametrize(
    "content", [b"", b"no code", marshal.dumps([1]), marshal.dumps({"x": b"y" * 10_000_000})]
)
def test_a_damaged_or_huge_file_is_made_anew(
    tmp_path: Path, compiled: list[str], content: bytes
) -> None:
    """A run never fails by it."""
    for _ in range(2):
        with compiled_once(tmp_path):
            define()
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(content)
    compiled.clear()
    with compiled_once(tmp_path):
        define()
    assert compiled
    assert marshal.loads(file.read_bytes()).keys() == marshal.loads(whole).keys()  # noqa: S302


def test_a_folder_that_cannot_be_written_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is anything written where Python may keep no byte code."""
    with compiled_once(tmp_path / "missing"):
        define()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with compiled_once(tmp_path):
        define()
    assert list(tmp_path.iterdir()) == []
