"""The documents name only files and folders that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from sageaudit.workflows.pack import TEMPLATE_CHANNELS

ROOT = Path(__file__).parents[2]
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "rules"]
"""All pages except those of rules, whose texts are docstrings."""
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *PAGES,
]
ISSUE_TEMPLATES = [
    path
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if path.stem != "config"
]
STARTS = (ROOT, ROOT / "functions" / "sageaudit")
"""The folders in which the documents' paths begin."""
ENDINGS = (".py", ".md", ".toml", ".json")
NOT_OURS = {
    *(".venv/bin/sageaudit", "dist/", "dist/sageaudit-*-py3-none-any.whl", "alias/aws/sns"),
    *("sageaudit-*.cdx.json", "LICENCES.md", "NOTES.md", *TEMPLATE_CHANNELS),
}
"""Paths that `make` creates, and the name of a key."""


def paths(document: Path) -> Iterator[str]:
    """Yields paths in backticks, in which a <placeholder> is any name, and modules in drawings."""
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
    """Yields the targets of links inside the repository, with the heading that they lead to."""
    text = document.read_text(encoding="utf-8")
    return (target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target)


def leads_somewhere(document: Path, target: str) -> bool:
    """Whether the link leads to a file, and to a heading of it if the link names one."""
    path, _, anchor = target.partition("#")
    page = document.parent / path if path else document
    if not page.exists() or not anchor:
        return page.exists()
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", words).lower().replace(" ", "-") for words in headings}


def exists(path: str) -> bool:
    """Whether the path exists in the repository or in the package."""
    return any(path_found for start in STARTS for path_found in start.glob(path))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_in_a_document_exists(document: Path) -> None:
    """If a file moves, its documents must change too."""
    assert [path for path in paths(document) if path not in NOT_OURS and not exists(path)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    """A link is relative to the document's folder."""
    assert [link for link in links(document) if not leads_somewhere(document, link)] == []


def names(document: Path) -> set[str]:
    """Returns the names of code in backticks: each part of `module.function`, none of a command or
    path.
    """
    spans = re.findall(r"`([A-Za-z_][\w.]*)`", document.read_text(encoding="utf-8"))
    return {part for span in spans if not span.endswith(ENDINGS) for part in span.split(".")}


def names_of_the_code() -> set[str]:
    """Returns the names in the project's Python files, and the words of their texts, such as keys
    of AWS.
    """
    folders = (ROOT / folder for folder in ("functions", "infra", "local", "tests", "tools"))
    files = (path for folder in folders for path in folder.rglob("*.py") if path != Path(__file__))
    return {word for path in files for word in re.findall(r"\w+", path.read_text("utf-8"))}


def test_every_name_in_a_code_span_of_contributing_stands_in_the_code() -> None:
    assert names(ROOT / "CONTRIBUTING.md") - names_of_the_code() == set()


def test_a_path_that_does_not_exist_is_seen(tmp_path: Path) -> None:
    """The test has a file, a folder, a placeholder and a module in a drawing."""
    document = tmp_path / "page.md"
    document.write_text("`a/b.py`, `gone/`, `rules/<folder>/x.txt`, `new.py`\n```\nports.py\n```\n")
    assert list(paths(document)) == ["a/b.py", "gone/", "rules/*/x.txt", "new.py", "ports.py"]
    assert [exists(path) for path in paths(document)] == [False, False, False, False, True]


def test_contributing_names_existing_targets_and_all_that_run_tests() -> None:
    """Each named target exists, and each target that runs tests is named."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = dict(re.findall(r"^([a-z-]+):(.*\n(?:\t.*\n)*)", makefile, re.MULTILINE))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {
        word for words in re.findall(r"`make ([a-z -]+?)[` A-Z]", text) for word in words.split()
    }
    assert named <= set(targets)
    assert {name for name, recipe in targets.items() if "-m pytest" in recipe} <= named


def test_the_table_of_documents_has_every_page() -> None:
    """Pages of rules, decisions and schemas are listed by their own README or folder."""
    table = set(links(ROOT / "docs" / "README.md"))
    own = ("rules", "decisions")
    listed = [
        page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.parent.name not in own
    ]
    assert sorted({*listed} - {"README.md"} - table) == []


def test_each_issue_template_has_a_name_and_asks_for_a_recording_without_names() -> None:
    templates = [yaml.safe_load(path.read_text("utf-8")) for path in ISSUE_TEMPLATES]
    assert len({template["name"] for template in templates}) == len(templates)
    for template in templates:
        assert "sageaudit record JOB --anonymize" in str(template["body"])
