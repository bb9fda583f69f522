"""Conventions that a test can check. Each failure says what was forgotten."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = {
    ".git",
    ".venv",
    ".venv-linters",
    ".venv-release",
    ".venv-sdk-v2",
    ".venv-sdk-v3",
    "build",
    "cdk.out",
    "node_modules",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "__pycache__",
}
REGISTRIES = re.compile(
    "|".join(
        [
            "pypi" + r"\.org",
            "python" + r"hosted\.org",
            "registry" + r"\.npmjs",
            r"--(?:extra-)?index" + "-url",
        ]
    )
)
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")


def files(*suffixes: str) -> list[Path]:
    """Returns every file of the project itself."""
    return sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not GENERATED & set(path.relative_to(ROOT).parts)
        and not any(part.endswith(".egg-info") for part in path.relative_to(ROOT).parts)
        and (not suffixes or path.suffix in suffixes)
    )


def matches(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    """Returns the places at which a pattern occurs."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in paths
        for number, line in enumerate(_lines(path), start=1)
        if pattern.search(line)
    ]


def test_no_file_names_a_registry() -> None:
    """A clone must install from whichever package index its machine uses."""
    assert not matches(REGISTRIES, files())


def test_nothing_is_left_for_later() -> None:
    """Unfinished work has an issue, not a comment."""
    marks = matches(UNFINISHED, files(".py", ".md", ".toml"))
    assert not marks, "\n".join(["", *marks])


def test_no_module_is_named_utils_or_helpers() -> None:
    """A module is named after what it contains."""
    drawers = {"utils", "util", "common", "helpers", "misc", "constants", "base"}
    named = (path.relative_to(ROOT).with_suffix("").parts[-2:] for path in files(".py"))
    assert not [names for names in named if drawers & {*names}]


def test_every_test_states_a_behaviour() -> None:
    """Its name says it, if that has five words or more; otherwise its docstring."""
    silent = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in files(".py")
        if path.name.startswith("test_")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and node.name.count("_") < 5
        and not ast.get_docstring(node)
    ]
    assert not silent


def test_no_value_of_the_package_is_a_dataclass() -> None:
    """mypy checks `replace` of sageaudit/structs.py like that of dataclasses. So mypy accepts a
    dataclass there, but the call fails when it runs.
    """
    package = ROOT / "functions" / "sageaudit"
    decorated = [
        path.relative_to(package)
        for path in package.rglob("*.py")
        if re.search(r"^@dataclass\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert decorated == []


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
