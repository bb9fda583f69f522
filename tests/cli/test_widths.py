"""The output of every command fits its terminal, and no line ends in spaces."""

import re
import shlex
from pathlib import Path

import pytest

from sageaudit.cli import clock
from tests.fakes.command_line import Run
from tests.fakes.random_history import NOW

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "local" / "recordings" / "composed-g4dn-12xlarge.json"
COMMANDS = (
    "history",
    "history --rule gpu-idle",
    "history --sort idle",
    "top",
    "families",
    "owners",
    "by team",
    "by team,family",
    "by type,month",
    "changes --by team",
    "history --sort possible",
    "trend",
    "by month",
    "by rule",
    "changes",
    "show job-00001",
    "account 111122223333",
    "rules",
    "scan --recordings {folder}",
    "audit --recording {recorded}",
    "what-if --recording {recorded}",
    "prices ml.g5.xlarge",
)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("command", COMMANDS)
def test_it_fits_its_terminal(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    """The narrowest terminal has 60 columns; only lines to copy may be longer."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)
    monkeypatch.setenv("COLUMNS", str(width))
    places = {"folder": RECORDED.parent, "recorded": RECORDED}
    words = shlex.split(command.format_map(places))
    history = tmp_path / "new.db" if words[0] == "scan" else file
    if words[0] not in {"audit", "what-if", "prices"} and words != ["rules"]:
        words += ["--history", str(history)]
    done = run(*words)
    assert done.exit_code in {0, 3}, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if len(line) > width and "  # was " not in line] == []
    assert [line for line in lines if line != line.rstrip()] == []
    assert re.findall(r"\$[\d,.]*…", done.stdout) == [], "an amount is whole"
