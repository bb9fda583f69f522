"""Builds the wheel, and checks it as a user installs it: `make dist`.

The wheel is installed in new environments outside this checkout, once plain and once with all
extras. There the commands run on a recorded job. The metadata must be complete, and name no
address, because the project has none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Mapping
from email import message_from_string
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "recorded" / "data" / "jobs" / "training-020-c4-8xlarge-x2-failed.json"
NEEDED = (
    "Name",
    "Version",
    "Summary",
    "Keywords",
    "Classifier",
    "License-Expression",
    "License-File",
    "Requires-Python",
    "Description-Content-Type",
)
COMMANDS = (
    ["--version"],
    ["--help"],
    ["rules", "gpu-idle"],
    ["audit", "--recording", "job.json", "--history", "h.db"],
)
PARQUET = (
    ["export", "--history", "h.db", "--since", "2018-01-01", "-o", "rows.parquet"],
    ["export", "--history", "h.db", "--since", "2018-01-01", "-o", "rows.jsonl"],
)
SAME_SUMS = """
import json
from decimal import Decimal
import duckdb
rows = duckdb.sql("SELECT total_usd FROM 'rows.parquet'").fetchall()
same = [json.loads(line, parse_float=Decimal) for line in open("rows.jsonl", encoding="utf-8")]
assert rows and [usd for usd, in rows] == [row["total_usd"] for row in same], rows
"""
"""Checks that the amounts in the Parquet file are those of the JSON lines, to the last digit."""
ADDRESSES = ("Home-page", "Download-URL", "Project-URL", "Author-email", "Maintainer-email")


def main() -> int:
    """Builds and checks the wheel, and prints its path. Returns 1 if a check failed."""
    wheel = build()
    faults = [*metadata_faults(metadata_of(wheel)), *content_faults(wheel)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extras in ("", ",".join(project["optional-dependencies"])):
        faults += install_faults(wheel, extras)
    for fault in faults:
        print(f"{wheel.name}: {fault}", file=sys.stderr)
    if not faults:
        print(f"{wheel.relative_to(ROOT)} installs and runs: pipx install {wheel}")
    return int(bool(faults))


def build() -> Path:
    """Builds the wheel in dist/, and returns its path."""
    for folder in (ROOT / "dist", ROOT / "build"):  # setuptools would pack what an old build left
        shutil.rmtree(folder, ignore_errors=True)
    _run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--no-build-isolation", "--wheel-dir", str(ROOT / "dist"), str(ROOT)),
        ]
    )
    [wheel] = (ROOT / "dist").glob("*.whl")
    return wheel


def metadata_of(wheel: Path) -> Message:
    """Returns the wheel's METADATA."""
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(packed.read(name).decode("utf-8"))


def metadata_faults(metadata: Message) -> Iterable[str]:
    """Yields what is missing in the metadata, and addresses that do not exist."""
    yield from (f"the metadata lacks {name}" for name in NEEDED if not metadata.get(name))
    yield from (f"the metadata invents {name}" for name in ADDRESSES if metadata.get(name))
    if "# sageaudit" not in str(metadata.get_payload()):
        yield "the description is not the README"


def content_faults(wheel: Path) -> Iterable[str]:
    """Yields files of the package that the wheel lacks, and files of other folders that it has."""
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    yield from (f"it packs {name}" for name in sorted(names) if not name.startswith("sageaudit/"))
    source = ROOT / "functions"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "sageaudit").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    yield from (f"it lacks {name}" for name in sorted(files - names))


def install_faults(wheel: Path, extras: str) -> Iterable[str]:
    """Yields what fails in a new environment with the wheel and these extras."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder, "Scripts" if os.name == "nt" else "bin")
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        wanted = f"{wheel}[{extras}]" if extras else str(wheel)
        pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "install", wanted], cwd=folder, env=clean)
        shutil.copy(RECORDED, Path(folder, "job.json"))
        for arguments in [*COMMANDS, *(PARQUET if extras else ())]:
            process = subprocess.run(
                [str(programs / "sageaudit"), *arguments],
                cwd=folder, env=clean, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if process.returncode:
                command = f"sageaudit {' '.join(arguments)}"
                yield f"{command} ends with {process.returncode}: {process.stderr}"
        process = subprocess.run(
            [*pip, "check"], cwd=folder, env=clean, capture_output=True, text=True, check=False
        )
        if process.returncode:
            yield f"its dependencies do not fit: {process.stdout}"
        if extras:
            _run([str(programs / "python"), "-c", SAME_SUMS], cwd=folder, env=clean)


def _run(command: list[str], **settings: str | Mapping[str, str]) -> None:
    subprocess.run(command, check=True, **settings)  # type: ignore[call-overload]


if __name__ == "__main__":
    sys.exit(main())
