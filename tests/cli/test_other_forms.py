"""A file of the wrong format is named, with the command that makes the right one."""

import gzip
import os
import re
from pathlib import Path

import pytest

from tests.fakes.command_line import Run

PLAN = b"""
Terraform will perform the following actions:

  # aws_sagemaker_pipeline.train will be created
"""
FILES = {
    "text": (PLAN, "is a Terraform plan as text: `terraform show -json PLANFILE > plan.json`"),
    "coloured": (b"\x1b[1m  # aws_x.y\x1b[0m must be replaced", "is a Terraform plan as text: "),
    "plan": (b"PK\x03\x04\xff", "as `terraform plan -out` writes: `terraform show -json "),
    "log": (b'{"@level":"info"}\n{"@level":"info"}', "is the log of `terraform plan -json`: "),
    "list": (b"[{}]", "is a list"),
    "folder": (None, "is a folder: "),
}
COMMANDS = {
    "check": ("check",),
    "recording": ("audit", "--recording"),
    "policy": ("rules", "--policy"),
    "history": ("history", "--history"),
}
MAKES = {
    "check": "of `terraform show -json`",
    "recording": "`sageaudit record JOB -o job.json` writes one job to a file",
    "policy": "a policy is a TOML file",
    "history": "`sageaudit scan --history history.db` makes a history",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", FILES)
def test_the_error_says_what_the_file_is(run: Run, tmp_path: Path, command: str, form: str) -> None:
    """One sentence names the file; the exit code is 2, and nothing is changed."""
    content, message = FILES[form]
    path = tmp_path / "given"
    path.mkdir() if content is None else path.write_bytes(content)
    words = COMMANDS[command]
    done = run("check", "x", *words[1:], path) if command == "policy" else run(*words, path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert str(path) in done.stderr
    assert message in done.stderr
    if form == "folder":
        assert MAKES[command] in done.stderr
    assert content is None or path.read_bytes() == content


def test_a_history_in_gzip_has_to_be_unpacked(run: Run, tmp_path: Path) -> None:
    """Recordings, requests and policies are read in gzip; SQLite needs the file itself."""
    path = tmp_path / "given"
    path.write_bytes(gzip.compress(b"{}"))
    done = run("history", "--history", path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is compressed by gzip: `gunzip " in done.stderr


@pytest.mark.parametrize("command", ["recording", "policy", "history"])
def test_a_list_comes_with_the_command_that_makes_the_right_one(
    run: Run, tmp_path: Path, command: str
) -> None:
    """For `check`, it is the jq command that takes one request out of the list."""
    path = tmp_path / "given"
    path.write_text("[{}]")
    words = COMMANDS[command]
    done = run("check", "x", *words[1:], path) if command == "policy" else run(*words, path)
    assert MAKES[command] in done.stderr
    assert "`jq '.[0]' FILE > one.json`" in run("check", path).stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_that_nobody_writes_is_refused_at_once(
    run: Run, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "given"
    os.mkfifo(path)
    words = COMMANDS[command]
    done = run("check", "x", *words[1:], path) if command == "policy" else run(*words, path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.search(f"{path}:? is not a (?:regular )?file", done.stderr)
