"""The shell completes commands and options, as docs/install.md sets it up."""

import re
from pathlib import Path

import pytest

from tests.fakes.command_line import Run

PAGE = Path(__file__).parents[2] / "docs" / "install.md"
SHELLS = {"bash": "complete -o", "zsh": "#compdef sageaudit", "fish": "complete --no-files"}
TYPED = {
    "hist": "history",
    "history --so": "--sort",
    "history --sort was": "waste",
    "history --purchase sp": "spot",
    "prices show --comp": "--component",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_gets_its_script(run: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """The variable is the one that the page names; the exit code is 0."""
    monkeypatch.setenv("_SAGEAUDIT_COMPLETE", f"{shell}_source")
    done = run()
    assert (done.exit_code, done.stderr) == (0, "")
    assert SHELLS[shell] in done.stdout
    assert f"_SAGEAUDIT_COMPLETE={shell}_source" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("typed", TYPED)
def test_a_shell_completes_typed_words(
    run: Run, monkeypatch: pytest.MonkeyPatch, shell: str, typed: str
) -> None:
    """It completes a command, an option, or an option's value."""
    candidates = f"sageaudit {typed}"
    at = typed.rsplit(maxsplit=1)[-1] if shell == "fish" else str(len(typed.split()))
    monkeypatch.setenv("_SAGEAUDIT_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", candidates)
    monkeypatch.setenv("COMP_CWORD", at)
    done = run()
    assert done.exit_code == 0
    assert TYPED[typed] in re.split(r"[,\n\t]", done.stdout)
