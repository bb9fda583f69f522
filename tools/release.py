"""Makes a release: `make release VERSION=0.1.0`. It pushes nothing.

Sets the version, dates the section of the CHANGELOG, and writes to dist/ the wheel, the asset of
the Lambda functions, what is in it (SBOM, licences), the notes, and the hashes of all. Then it
commits and tags. The same commit gives the same files.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from infra.bundling import LAMBDA_PYTHON, LAMBDA_TARGET, build_asset
from infra.byte_code import no_interpreter_warning
from sageaudit.domain.policy.policy import Policy
from tools import dist, sbom

ROOT = Path(__file__).parents[1]
CHECKER = ROOT / ".venv-release" / "bin" / "python"
UNRELEASED = "not released yet"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)\Z")
_OWN = re.compile(r'^(?:version|__version__) = "([^"]+)"$', re.MULTILINE)
_HOMES = ("pyproject.toml", "functions/sageaudit/__init__.py")
_CHECK = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(error) if error else 0)
"""


class NoRelease(Exception):
    """Why there is none; nothing was changed."""


def next_versions(own: str) -> set[str]:
    """What may follow a version. Raises NoRelease for one of another form."""
    parts = _VERSION.match(own)
    if parts is None:
        raise NoRelease(f"{own} is no version of the form 1.2.3")
    major, minor, patch = map(int, parts.groups())
    return {f"{major + 1}.0.0", f"{major}.{minor + 1}.0", f"{major}.{minor}.{patch + 1}"}


def dated(changelog: str, version: str, day: str) -> tuple[str, str]:
    """The CHANGELOG with its section dated, and the section. Raises NoRelease."""
    heading = f"## {version} - {UNRELEASED}\n"
    before, found, after = changelog.partition(heading)
    if not found:
        raise NoRelease(f'CHANGELOG.md has no section "{heading.strip()}"')
    section, _, rest = after.partition("\n## ")
    if not re.search(r"^- ", section, re.MULTILINE):
        raise NoRelease("its section of CHANGELOG.md says nothing")
    later = f"\n## {rest}" if rest else ""
    return f"{before}## {version} - {day}\n{section}{later}", section.strip() + "\n"


def check(root: Path, version: str) -> None:
    """Raises NoRelease where something is not committed, or the version cannot be the next."""
    if _git(root, "status", "--porcelain"):
        raise NoRelease("there are changes that are not committed")
    if f"v{version}" in _git(root, "tag", "--list").split():
        raise NoRelease(f"there is a tag v{version} already")
    own = _own_version(root)
    first = version == own and not _git(root, "tag", "--list", f"v{own}")
    if not first and version not in next_versions(own):
        raise NoRelease(f"{version} does not follow {own}: {', '.join(sorted(next_versions(own)))}")


def prepare(root: Path, version: str, day: str) -> str:
    """Writes the version and the date into the checkout. Returns the notes; raises NoRelease."""
    check(root, version)
    changelog = root / "CHANGELOG.md"
    text, notes = dated(changelog.read_text(encoding="utf-8"), version, day)
    changelog.write_text(text, encoding="utf-8")
    for home in (root / one for one in _HOMES):
        before = home.read_text(encoding="utf-8")
        named = _OWN.sub(lambda found: found[0].replace(found[1], version), before, count=1)
        home.write_text(named, encoding="utf-8")
    return notes


def packed(folder: Path, to: Path) -> Path:
    """A zip of a folder, with the same bytes whenever it is made."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | path.stat().st_mode & 0o777) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, path.read_bytes())
    return to


def sums(files: list[Path]) -> str:
    """As `sha256sum --check` reads them."""
    return "".join(
        f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in sorted(files)
    )


def build(root: Path, version: str, notes: str) -> list[Path]:
    """Everything in dist/. Raises NoRelease where the SBOM is not one."""
    os.environ["SOURCE_DATE_EPOCH"] = _git(root, "log", "-1", "--format=%ct").strip()
    wheel, folder = dist.build(), root / "dist"
    asset = build_asset(LAMBDA_TARGET, Policy())
    pins = (root / "functions" / "requirements.txt").read_text(encoding="utf-8")
    found = sbom.distributions(asset.folder, pins)
    texts = {
        f"sageaudit-{version}.cdx.json": sbom.document(version, found),
        "LICENCES.md": sbom.licences(version, found),
        "NOTES.md": notes,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    made = [wheel, packed(asset.folder, folder / f"sageaudit-lambda-{version}.zip")]
    made += [folder / name for name in texts]
    checked = subprocess.run(
        [CHECKER, "-c", _CHECK],
        input=next(iter(texts.values())), text=True, capture_output=True, check=False,
    )  # fmt: skip
    if checked.returncode:
        raise NoRelease(f"the SBOM has not its form: {checked.stderr}")
    (folder / "SHA256SUMS").write_text(sums(made), encoding="utf-8")
    return [*made, folder / "SHA256SUMS"]


def main(version: str) -> int:
    """Prints what was made, and the two commands that publish it; 2 where there is no release."""
    try:
        if LAMBDA_TARGET.interpreter() is None:
            raise NoRelease(no_interpreter_warning(LAMBDA_PYTHON))
        notes = prepare(ROOT, version, datetime.now(UTC).date().isoformat())
        _git(ROOT, "commit", "--quiet", "--all", "--message", f"Version {version}")
        files = build(ROOT, version, notes)
    except NoRelease as refusal:
        print(f"no release: {refusal}", file=sys.stderr)
        return 2
    _git(ROOT, "tag", "--annotate", f"v{version}", "--message", notes)
    for file in files:
        print(file.relative_to(ROOT))
    print(f"git push origin HEAD\ngit push origin v{version}")
    return 0


def _own_version(root: Path) -> str:
    found = _OWN.search((root / _HOMES[0]).read_text(encoding="utf-8"))
    if found is None:
        raise NoRelease(f"{_HOMES[0]} has no version")
    return found[1]


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *words],  # noqa: S607 - the caller's own git
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if sys.argv[1:] else ""))
