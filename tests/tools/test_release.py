"""`make release`: what it refuses, what it writes, and that it always writes the same."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from infra import file_tree
from tools import release, sbom
from tools.release import NoRelease

CHANGELOG = (
    "# Changelog\n\n## 0.2.0 - not released yet\n\n- News.\n\n## 0.1.0 - 2026-01-02\n\n- Old.\n"
)
METADATA = "Name: Some_Package\nVersion: 1.2\nClassifier: License :: OSI Approved :: MIT License\n"
PINS = (
    f"some-package==1.2 \\\n    --hash=sha256:{'ab' * 32}\n"
    f"other==3 \\\n    --hash=sha256:{'cd' * 32}\n"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Returns a committed project at version 0.1.0, which was released."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n', encoding="utf-8")
    (tmp_path / "functions" / "sageaudit").mkdir(parents=True)
    package = tmp_path / "functions" / "sageaudit" / "__init__.py"
    package.write_text('"""A package."""\n\n__version__ = "0.1.0"\n', encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    git(tmp_path, "tag", "v0.1.0")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    """Runs git in a folder, with an author."""
    identity = {
        f"GIT_{role}_{kind}": "a" for role in ("AUTHOR", "COMMITTER") for kind in ("NAME", "EMAIL")
    }
    subprocess.run(["git", "-C", str(folder), *arguments], env=os.environ | identity, check=True)  # noqa: S607


def test_a_release_has_its_version_and_its_day(checkout: Path) -> None:
    """The notes are the version's section of the CHANGELOG. Older sections stay."""
    notes = release.prepare(checkout, "0.2.0", "2026-11-23")
    assert notes == "- News.\n"
    text = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text == CHANGELOG.replace("not released yet", "2026-11-23")
    for home in ("pyproject.toml", "functions/sageaudit/__init__.py"):
        version_text = (checkout / home).read_text(encoding="utf-8")
        assert "version" in version_text
        assert ('"0.2.0"' in version_text, '"0.1.0"' in version_text) == (True, False)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("0.1.0", "there is a tag"),
        ("0.1.2", "does not follow 0.1.0"),
        ("0.4.0", "does not follow 0.1.0"),
        ("two", "does not follow 0.1.0"),
        ("1.0.0", "has no section"),
    ],
)
def test_a_version_that_cannot_be_the_next_is_refused(
    checkout: Path, version: str, why: str
) -> None:
    """Nothing is written."""
    with pytest.raises(NoRelease, match=why):
        release.prepare(checkout, version, "2026-11-23")
    assert (checkout / "CHANGELOG.md").read_text(encoding="utf-8") == CHANGELOG


def test_what_is_not_committed_and_empty_notes_are_refused(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(CHANGELOG.replace("- News.", ""), encoding="utf-8")
    with pytest.raises(NoRelease, match="not committed"):
        release.prepare(checkout, "0.2.0", "2026-11-23")
    git(checkout, "commit", "--quiet", "--all", "--message", "empty")
    with pytest.raises(NoRelease, match="has no entry"):
        release.prepare(checkout, "0.2.0", "2026-11-23")


def test_a_release_that_cannot_be_built_changes_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So the same command can be run again."""

    def build(*_: object) -> list[Path]:
        raise NoRelease("the SBOM is invalid")

    target = SimpleNamespace(interpreter=lambda: "python3.13")
    for name, value in (("ROOT", checkout), ("build", build), ("TARGET", target)):
        monkeypatch.setattr(release, name, value)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a")
    assert release.main("0.2.0") == 2
    assert capsys.readouterr().err == "no release: the SBOM is invalid\n"
    assert (checkout / "CHANGELOG.md").read_text(encoding="utf-8") == CHANGELOG
    release.check(checkout, "0.2.0")


def test_the_first_release_may_have_the_version_that_is_there(checkout: Path) -> None:
    """No tag has this version yet."""
    git(checkout, "tag", "--delete", "v0.1.0")
    release.check(checkout, "0.1.0")


def test_a_zip_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    """It contains neither the time nor the order of the folder."""
    folder = tmp_path / "asset"
    (folder / "in").mkdir(parents=True)
    for name in ("b.py", "a.py", "in/c.py"):
        (folder / name).write_text(name, encoding="utf-8")
    first = file_tree.pack_folder(folder, tmp_path / "1.zip").read_bytes()
    os.utime(folder / "a.py", (1, 1))
    assert file_tree.pack_folder(folder, tmp_path / "2.zip").read_bytes() == first


def test_the_sbom_has_what_is_in_the_folder(tmp_path: Path) -> None:
    """It has the licence that the package names, and the hashes that are accepted."""
    info = tmp_path / "some_package-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA, encoding="utf-8")
    packages = sbom.distributions(tmp_path, PINS)
    [component] = json.loads(sbom.document("0.1.0", packages))["components"]
    assert component["purl"] == "pkg:pypi/some-package@1.2"
    assert component["licenses"] == [{"license": {"name": "MIT License"}}]
    assert [hash_property["value"] for hash_property in component["properties"]] == ["ab" * 32]
    assert "| Some_Package | 1.2 | MIT License |" in sbom.licences("0.1.0", packages)
