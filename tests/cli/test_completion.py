"""What a shell completes: the lines of docs/install.md, as the shells run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "install.md"
CODE = "from sageaudit.cli.main import main; main()"


def _completed(**variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **variables},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [("sageaudit wha", "what-if"), ("sageaudit audit --rec", "--recording")],
)
def test_commands_and_options_are_completed(words: str, expected: str) -> None:
    """Without importing the other commands."""
    at = str(len(words.split()) - 1)
    said = _completed(_SAGEAUDIT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=at)
    assert f"plain,{expected}\n" in said


def test_each_shell_of_the_page_gets_its_script() -> None:
    """bash, zsh and fish."""
    named = re.findall(r"_SAGEAUDIT_COMPLETE=(\w+)", PAGE.read_text("utf-8"))
    assert sorted(named) == ["bash_source", "fish_source", "zsh_source"]
    for value in named:
        assert "_sageaudit_completion" in _completed(_SAGEAUDIT_COMPLETE=value)
