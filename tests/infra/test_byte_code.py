"""The asset's byte code: which interpreter makes it, and what it looks like on Lambda."""

import importlib.util
import marshal
import subprocess
import sys
from pathlib import Path

import pytest

from infra import byte_code
from infra.byte_code import Interpreter

HERE = Interpreter(sys.executable, sys.version.split()[0])
UNCHECKED_HASH = 0b01
"""The flags of PEP 552 in bytes 4 to 8: a hash of the source, which is not checked."""


def fake_python(folder: Path, answer: str) -> Path:
    """An executable python3.13 that prints this when asked who it is."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "python3.13"
    script.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
    script.chmod(0o755)
    return script


def says(path: str, version: str, name: str = "cpython", level: str = "final") -> str:
    """The shell command of an interpreter that answers."""
    return f"""echo '["{path}", "{version}", "{name}", "{level}"]'"""


def modules(folder: Path) -> Path:
    """A package whose constants and sets could make byte code differ between two runs."""
    package = folder / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("WORDS = frozenset({'a', 'b', 'c'})\n", encoding="utf-8")
    (package / "fails.py").write_text(
        "def fail(word):\n    return word in {'x', 'y', 'z'} or 1 // 0\n", encoding="utf-8"
    )
    return folder


def compiled(folder: Path) -> dict[str, bytes]:
    """The byte code in a folder, by path."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.pyc")}


def test_a_shim_that_fails_is_passed_over(tmp_path: Path) -> None:
    """pyenv's shim has the name of every version, and fails for one that is not selected."""
    fake_python(tmp_path / "shims", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    fake_python(tmp_path / "real", says("/real/python3.13", "3.13.5"))
    path = f"{tmp_path / 'shims'}:{tmp_path / 'real'}"
    assert byte_code.find_interpreter("3.13", {"PATH": path}) == Interpreter(
        "/real/python3.13", "3.13.5"
    )


@pytest.mark.parametrize(
    "answer",
    [
        says("/found", "3.12.1"),
        says("/found", "3.13.0", level="candidate"),
        says("/found", "3.13.0", name="pypy"),
        "echo hello",
        "echo '[1]'",
    ],
)
def test_what_is_not_a_released_cpython_of_that_version_is_not_used(
    tmp_path: Path, answer: str
) -> None:
    """Lambda would ignore its byte code, and nobody would notice."""
    fake_python(tmp_path, answer)
    assert byte_code.find_interpreter("3.13", {"PATH": str(tmp_path)}) is None


def test_the_byte_code_is_the_same_wherever_and_whenever_it_is_made(tmp_path: Path) -> None:
    """Otherwise each synthesis would deploy all functions again.

    It is never checked against its source, which reads each one, and names the path on Lambda,
    which a traceback shows.
    """
    first, second = modules(tmp_path / "one"), modules(tmp_path / "deep" / "other")
    for folder in (first, second):
        byte_code.compile_folder(folder, HERE)
    assert len(compiled(first)) == 2
    assert compiled(first) == compiled(second)
    for name, content in compiled(first).items():
        assert name.endswith(f".{sys.implementation.cache_tag}.pyc")
        assert content[:4] == importlib.util.MAGIC_NUMBER
        assert int.from_bytes(content[4:8], "little") == UNCHECKED_HASH
        code = marshal.loads(content[16:])  # noqa: S302 - made above
        assert code.co_filename == f"/var/task/package/{Path(name).name.partition('.')[0]}.py"
        assert str(tmp_path).encode() not in content


def test_a_module_that_does_not_compile_stops_the_build(tmp_path: Path) -> None:
    """It would fail at its import on Lambda."""
    (tmp_path / "broken.py").write_text("def (:\n", encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError):
        byte_code.compile_folder(tmp_path, HERE)
