"""Every option that takes a date refuses a text that is none in one sentence."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.test_commands import commands
from tests.fakes.command_line import Run

_DATE_PARAMETERS = {"since", "until", "month_text"}
_DECISION = ("abcdefgh", "--reason", "r")
_MORE_WORDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("account",): ("111122223333",),
    ("by",): ("family",),
    ("export",): ("--out", "no.csv"),
    ("reconcile",): ("--cur", "no.csv", "--account", "111122223333"),
    **{("advice", action): _DECISION for action in ("accept", "exempt", "reopen", "snooze")},
}
"""What a command needs besides its dates."""
_NO_DATES = (
    "",
    "5",
    "-5d",
    "99999d",
    "1e9d",
    "today",
    "2026-13",
    "2026-W54",
    "2027-02-30",
    "2027-01-31\n",
    "2027-01-01T25:00",
    "2200-01-01",
    "9999-12-31",
    "\uff12\uff10\uff12\uff17-01-01",
    "\x1b[2J",
)
"""Texts that no option accepts: no days, days outside of the years that are accepted, and digits
of another script."""


def date_options() -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields each command with an option that takes a date, and the option."""
    for path, command in commands():
        for parameter in () if isinstance(command, click.Group) else command.params:
            if parameter.name in _DATE_PARAMETERS:
                yield path, parameter.opts[0]


def test_all_options_with_dates_are_found() -> None:
    """So that the next test has them."""
    assert len({path for path, _ in date_options()}) >= 15


@pytest.mark.parametrize(("path", "option"), [*date_options()], ids=str)
def test_a_text_that_is_no_date_is_refused_in_one_sentence(
    run: Run,
    file: Path,
    path: tuple[str, ...],
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sentence begins with the option, and nothing is read before."""
    monkeypatch.chdir(tmp_path)  # where a command that accepted a text would write
    history = () if path in {("account",), ("backfill",)} else ("--history", file)
    beginning = "reopen takes no --until" if path[-1] == "reopen" else f"{option} "
    for text in _NO_DATES:
        done = run(*path, *_MORE_WORDS.get(path, ()), *history, f"{option}={text}")
        assert done.exit_code == 2, (text, done.stderr)
        assert done.stderr.startswith(f"sageaudit: {beginning}"), (text, done.stderr)
        assert done.stderr.count("\n") == 1, (text, done.stderr)
