"""The documents name only files and folders that exist.

Decisions are left out: a record may name what a later decision removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
STARTS = (ROOT, ROOT / "functions" / "sageaudit")
"""Where the documents' paths begin."""
ENDINGS = (".py", ".md", ".toml", ".json")
NOT_OURS = {".venv/bin/sageaudit", "dist/sageaudit-*-py3-none-any.whl", "alias/aws/sns"}
"""Made by `make`, and the name of a key."""


def paths(document: Path) -> Iterator[str]:
    """Paths in backticks, where a <placeholder> is any name, and modules in drawings."""
    text = document.read_text(encoding="utf-8")
    blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    for word in re.findall(r"`([^`\s]+)`", blocks.sub("", text)):
        path = re.sub(r":\d+:?$", "", re.sub(r"<[a-z]+>", "*", word))
        if re.fullmatch(r"[\w.*-]+(/[\w.*-]*)+", path) or path.endswith(ENDINGS):
            yield path
    for block in blocks.findall(text):
        if (
            "\nWhat to change in " in block
        ):  # printed by scan: families are named after files of jobs
            continue
        yield from re.findall(r"[\w./-]+\.py\b", block)


def links(document: Path) -> Iterator[str]:
    """The targets of links inside the repository."""
    text = document.read_text(encoding="utf-8")
    return (target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target)


def exists(path: str) -> bool:
    """From the repository or the package."""
    return any(found for start in STARTS for found in start.glob(path))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_in_a_document_exists(document: Path) -> None:
    """So that a file which moves takes its documents along."""
    assert [path for path in paths(document) if path not in NOT_OURS and not exists(path)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    """From the document's own folder."""
    assert [path for path in links(document) if not (document.parent / path).exists()] == []


def test_a_path_that_does_not_exist_is_seen(tmp_path: Path) -> None:
    """Of a file, a folder, a placeholder and a module in a drawing."""
    document = tmp_path / "page.md"
    document.write_text("`a/b.py`, `gone/`, `rules/<folder>/x.txt`, `new.py`\n```\nports.py\n```\n")
    assert list(paths(document)) == ["a/b.py", "gone/", "rules/*/x.txt", "new.py", "ports.py"]
    assert [exists(path) for path in paths(document)] == [False, False, False, False, True]


def test_contributors_read_of_the_targets_that_there_are() -> None:
    """Each that is named exists, and each that runs tests is named."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = dict(re.findall(r"^([a-z-]+):(.*\n(?:\t.*\n)*)", makefile, re.MULTILINE))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {
        word for words in re.findall(r"`make ([a-z -]+?)[` A-Z]", text) for word in words.split()
    }
    assert named <= set(targets)
    assert {name for name, recipe in targets.items() if "-m pytest" in recipe} <= named
