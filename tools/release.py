"""Makes a release: `make release VERSION=0.1.0`. It pushes nothing.

It sets the version, dates the section of the CHANGELOG, and writes to dist/ the wheel, the asset of
the Lambda functions, the templates that deploy it, the asset's contents (SBOM, licences), the
notes, and the hashes of all files. Then it commits and tags. The same commit gives the same files.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from infra import file_tree
from infra.bundling import build_asset, lambda_target
from infra.byte_code import no_interpreter_warning
from infra.release_template import released_template, to_text
from infra.runtimes import PINNED_PYTHON
from sageaudit.domain.policy.policy import Policy
from sageaudit.workflows.pack import TEMPLATE_CHANNELS
from tools import dist, sbom

ROOT = Path(__file__).parents[1]
CHECKER = ROOT / ".venv-release" / "bin" / "python"
TARGET = lambda_target(PINNED_PYTHON, "arm64")
UNRELEASED = "not released yet"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)\Z")
_VERSION_LINE = re.compile(r'^(?:version|__version__) = "([^"]+)"$', re.MULTILINE)
_VERSION_FILES = ("pyproject.toml", "functions/sageaudit/__init__.py")
_CHECK = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(error) if error else 0)
"""


class NoRelease(Exception):
    """Why there is no release. Nothing was changed."""


def next_versions(version: str) -> set[str]:
    """Returns the versions that may follow a version. Raises NoRelease for another form."""
    parts = _VERSION.match(version)
    if parts is None:
        raise NoRelease(f"{version} is not a version such as 1.2.3")
    major, minor, patch = map(int, parts.groups())
    return {f"{major + 1}.0.0", f"{major}.{minor + 1}.0", f"{major}.{minor}.{patch + 1}"}


def date_section(changelog: str, version: str, day: str) -> tuple[str, str]:
    """Returns the CHANGELOG with its section dated, and the section. Raises NoRelease."""
    heading = f"## {version} - {UNRELEASED}\n"
    before, heading_found, after = changelog.partition(heading)
    if not heading_found:
        raise NoRelease(f'CHANGELOG.md has no section "{heading.strip()}"')
    section, _, rest = after.partition("\n## ")
    if not re.search(r"^- ", section, re.MULTILINE):
        raise NoRelease("its section of CHANGELOG.md has no entry")
    later = f"\n## {rest}" if rest else ""
    return f"{before}## {version} - {day}\n{section}{later}", section.strip() + "\n"


def check(root: Path, version: str) -> None:
    """Raises NoRelease if there are uncommitted changes, or if the version cannot be the next."""
    if _git(root, "status", "--porcelain"):
        raise NoRelease("there are changes that are not committed")
    if f"v{version}" in _git(root, "tag", "--list").split():
        raise NoRelease(f"there is a tag v{version} already")
    own_version = _own_version(root)
    first = version == own_version and not _git(root, "tag", "--list", f"v{own_version}")
    if not first and version not in next_versions(own_version):
        allowed = ", ".join(sorted(next_versions(own_version)))
        raise NoRelease(f"{version} does not follow {own_version}: {allowed}")


def prepare(root: Path, version: str, day: str) -> str:
    """Writes the version and the date into the checkout, and returns the notes. Raises
    NoRelease.
    """
    check(root, version)
    changelog = root / "CHANGELOG.md"
    text, notes = date_section(changelog.read_text(encoding="utf-8"), version, day)
    changelog.write_text(text, encoding="utf-8")
    for file in (root / name for name in _VERSION_FILES):
        before = file.read_text(encoding="utf-8")
        text_with_version = _VERSION_LINE.sub(
            lambda match: match[0].replace(match[1], version), before, count=1
        )
        file.write_text(text_with_version, encoding="utf-8")
    return notes


def checksums(files: list[Path]) -> str:
    """Returns the lines that `sha256sum --check` reads."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(files)
    )


def build(root: Path, version: str, notes: str) -> list[Path]:
    """Writes all files to dist/, and returns them. Raises NoRelease if the SBOM is invalid."""
    os.environ["SOURCE_DATE_EPOCH"] = _git(root, "log", "-1", "--format=%ct").strip()
    wheel, folder = dist.build(), root / "dist"
    asset = build_asset(TARGET, Policy())
    pins = (root / "functions" / "requirements.txt").read_text(encoding="utf-8")
    packages = sbom.distributions(asset.folder, pins)
    sbom_text = sbom.document(version, packages)
    texts = {
        f"sageaudit-{version}.cdx.json": sbom_text,
        "LICENCES.md": sbom.licences(version, packages),
        "NOTES.md": notes,
        **{
            name: to_text(released_template(channels, version))
            for name, channels in TEMPLATE_CHANNELS.items()
        },
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    files = [wheel, file_tree.pack_folder(asset.folder, folder / f"sageaudit-lambda-{version}.zip")]
    files += [folder / name for name in texts]
    validation = subprocess.run(
        [CHECKER, "-c", _CHECK],
        input=sbom_text,
        text=True,
        capture_output=True,
        check=False,
    )
    if validation.returncode:
        raise NoRelease(f"the SBOM is invalid: {validation.stderr}")
    (folder / "SHA256SUMS").write_text(checksums(files), encoding="utf-8")
    return [*files, folder / "SHA256SUMS"]


def main(version: str) -> int:
    """Prints the files, and the two commands that publish them. Returns 2 if there is no
    release.
    """
    try:
        if TARGET.interpreter() is None:
            raise NoRelease(no_interpreter_warning(PINNED_PYTHON))
        notes = prepare(ROOT, version, datetime.now(UTC).date().isoformat())
        _git(ROOT, "commit", "--quiet", "--all", "--message", f"Version {version}")
        try:
            files = build(ROOT, version, notes)
        except BaseException:
            _git(ROOT, "reset", "--quiet", "--hard", "HEAD^")  # the checkout had no changes
            raise
    except NoRelease as refusal:
        print(f"no release: {refusal}", file=sys.stderr)
        return 2
    _git(ROOT, "tag", "--annotate", f"v{version}", "--message", notes)
    for file in files:
        print(file.relative_to(ROOT))
    print(f"git push origin HEAD\ngit push origin v{version}")
    return 0


def _own_version(root: Path) -> str:
    match = _VERSION_LINE.search((root / _VERSION_FILES[0]).read_text(encoding="utf-8"))
    if match is None:
        raise NoRelease(f"{_VERSION_FILES[0]} has no version")
    return match[1]


def _git(root: Path, *arguments: str) -> str:
    process = subprocess.run(
        ["git", "-C", str(root), *arguments],  # noqa: S607 - the caller's own git
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if sys.argv[1:] else ""))
