"""Builds the wheel, and checks it as a user installs it: `make dist`.

The wheel is installed in new environments outside this checkout: plain, with all extras, and with
all extras in the lowest versions that pyproject.toml allows. There the commands run on a recorded
job. With the lowest versions, every command also prints its help, and more commands run on the
example history. The metadata must be complete, and name no address, because the project has none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from email import message_from_string
from email.message import Message
from itertools import chain
from pathlib import Path
from typing import Any

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
EXAMPLE = (
    ["demo", "--history", "example.db"],
    *(
        [*command, "--history", "example.db"]
        for command in (
            ["by", "week"],
            ["top", "--limit", "5"],
            ["show", "speech-encoder-24"],
            ["advice"],
            ["savings", "--output", "json"],
            ["changes", "--since", "7d", "--output", "csv"],
            ["history", "--owner", "ana"],
            ["report", "-o", "report.html"],
        )
    ),
    ["check", "request.json"],
    ["check", "request.yaml"],
    ["prices", "ml.g5.2xlarge"],
)
"""Commands that use the packages of the wheel: lists, pages, JSON, CSV, HTML and YAML."""
REQUESTS = {
    "request.json": ROOT / "tests" / "cli" / "requests" / "state-parameters.json",
    "request.yaml": ROOT / "tests" / "cli" / "requests" / "template-with-functions.yaml",
}
HELP_AND_USAGE = """
import click
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from sageaudit.cli.main import cli

def paths(command, path):
    yield path
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from paths(command.get_command(click.Context(command), name), (*path, name))

for path in paths(cli, ()):
    done = CliRunner().invoke(cli, [*path, "--help"])
    assert done.exit_code == 0 and "Usage: " in done.stdout, (path, done.output, done.exception)
    assert not path or "Example" in done.stdout, path
mistyped = CliRunner().invoke(cli, ["audti"])
assert mistyped.exit_code == 2 and "Did you mean 'audit'?" in mistyped.output, mistyped.output
completion = ShellComplete(cli, {}, "sageaudit", "_SAGEAUDIT_COMPLETE")
words = [item.value for item in completion.get_completions(["prices", "show"], "--comp")]
assert words == ["--component"], words
"""
"""Checks each command's help, the suggestion for a mistyped command, and completion."""
SAME_SUMS = """
import json
from decimal import Decimal
import duckdb
rows = duckdb.sql("SELECT total_usd FROM 'rows.parquet'").fetchall()
same = [json.loads(line, parse_float=Decimal) for line in open("rows.jsonl", encoding="utf-8")]
assert rows and [usd for usd, in rows] == [row["total_usd"] for row in same], rows
"""
"""Checks that the amounts in the Parquet file are those of the JSON lines, to the last digit."""
ASSISTANT = """
import sys
from pathlib import Path
import anyio
from mcp import Client, StdioServerParameters, stdio_client

async def ask():
    command = str(Path(sys.executable).with_name("sageaudit"))
    words = ["mcp", "--history", "example.db"]
    server = stdio_client(StdioServerParameters(command=command, args=words))
    async with Client(server) as client:
        answer = await client.call_tool("top_jobs", {"limit": 1})
    assert not answer.is_error and "Spend: $" in answer.content[0].text, answer

anyio.run(ask)
"""
"""Checks an answer of `sageaudit mcp` over stdio."""
ADDRESSES = ("Home-page", "Download-URL", "Project-URL", "Author-email", "Maintainer-email")


def main() -> int:
    """Builds and checks the wheel, and prints its path. Returns 1 if a check failed."""
    wheel = build()
    faults = [*metadata_faults(metadata_of(wheel)), *content_faults(wheel)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = ",".join(project["optional-dependencies"])
    faults += [*install_faults(wheel, ""), *install_faults(wheel, extras)]
    faults += install_faults(wheel, extras, lowest_versions(project))
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


def lowest_versions(project: Mapping[str, Any]) -> list[str]:
    """Returns the lowest allowed version of each package, such as `click==8.4.0`.

    `project` is the table of that name in pyproject.toml. Raises ValueError if a requirement is not
    of the form name>=version.
    """
    optional = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *chain.from_iterable(optional)]
    pins = [re.fullmatch(r"([\w.-]+)>=([\d.]+)", requirement) for requirement in requirements]
    if None in pins:
        raise ValueError(f"a requirement is not of the form name>=version: {requirements}")
    return [f"{pin[1]}=={pin[2]}" for pin in pins if pin]


def install_faults(wheel: Path, extras: str, pins: Sequence[str] = ()) -> Iterable[str]:
    """Yields what fails in a new environment with the wheel, these extras and these `pins`.

    `pins`: packages with their exact versions. With pins, more commands run.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)  # pip itself would take longer than the commands
        programs = Path(folder, "Scripts" if os.name == "nt" else "bin")
        clean = {n: value for n, value in os.environ.items() if not n.startswith("PYTHON")}
        wanted = f"{wheel}[{extras}]" if extras else str(wheel)
        python, sageaudit = str(programs / "python"), str(programs / "sageaudit")
        pip = [
            *(sys.executable, "-m", "pip", "--python", python),
            *("--quiet", "--disable-pip-version-check"),
        ]
        _run([*pip, "install", "--no-compile", wanted, *pins], cwd=folder, env=clean)
        for name, path in {"job.json": RECORDED, **REQUESTS}.items():
            shutil.copy(path, Path(folder, name))
        arguments = [*COMMANDS, *(PARQUET if extras else ()), *(EXAMPLE if pins else ())]
        scripts = {"the amounts in Parquet": SAME_SUMS} if extras else {}
        scripts |= {"the help": HELP_AND_USAGE, "mcp": ASSISTANT} if pins else {}
        commands = {
            **{f"sageaudit {' '.join(words)}": [sageaudit, *words] for words in arguments},
            "pip check": [*pip, "check"],
            **{name: [python, "-c", script] for name, script in scripts.items()},
        }
        versions = f" with {', '.join(pins)}" if pins else ""
        for name, command in commands.items():
            process = subprocess.run(
                command, cwd=folder, env=clean, capture_output=True, text=True, check=False
            )
            if process.returncode:
                output = process.stderr or process.stdout
                yield f"{name}{versions} ends with {process.returncode}: {output}"


def _run(command: list[str], **settings: str | Mapping[str, str]) -> None:
    subprocess.run(command, check=True, **settings)  # type: ignore[call-overload]


if __name__ == "__main__":
    sys.exit(main())
