"""The command line, run in this process: a process of its own takes half a second to start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sageaudit.cli.main import main
from tests.fakes.command_line import Result, Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls the console script with these words, given as on a terminal."""

    def call(*words: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["sageaudit", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return Result(int(str(stopped.value.code)), printed.out, printed.err)

    return call
