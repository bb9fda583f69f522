"""The shell completes commands, options and values, as docs/install.md sets it up."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import click
import pytest

from sageaudit.cli.main import cli
from sageaudit.cli.shells import register_completion_fixes
from sageaudit.rules import catalogue
from tests.fakes.command_line import Run
from tests.fakes.random_history import ACCOUNTS, FAMILIES, OWNERS, TEAMS

PAGE = Path(__file__).parents[2] / "docs" / "install.md"
SHELLS = {"bash": "complete -o", "zsh": "#compdef sageaudit", "fish": "complete --no-files"}
TYPED = {
    "hist": "history",
    "famil": "families",
    "advice snoo": "snooze",
    "advice --own": "--owner",
    "history --so": "--sort",
    "history --sort was": "waste",
    "history --purchase sp": "spot",
    "history --rule gpu-un": "gpu-underused",
    "history --rule sa20": "SA202",
    "rules idle-t": "idle-tail",
    "by own": "owner",
    "by owner,mo": "owner,month",
    "changes --by fam": "family",
    "history --fields job,own": "job,owner",
    "advice --fields cha": "change",
    "prices show --comp": "--component",
    "prices g6e.2x": "ml.g6e.2xlarge",
    "what-if --type ml.g5.12": "ml.g5.12xlarge",
    "scan --region eu-west": "eu-west-1",
    "history --region us-w": "us-west-2",
}
TEAM = next(filter(None, TEAMS))
OWNER = next(filter(None, OWNERS))
OF_HISTORY = {
    f"history --family training/{FAMILIES[0][:2]}": f"training/{FAMILIES[0]}",
    f"history --owner {OWNER[:2]}": OWNER,
    f"advice --owner {OWNER[:2]}": OWNER,
    f"account {ACCOUNTS[0][:3]}": ACCOUNTS[0],
    f"show --account {ACCOUNTS[0][:3]}": ACCOUNTS[0],
    "show JOB-0000": "job-00001",
    "by te": "team",
    "by team,proj": "team,project",
    "history --tag te": f"team={TEAM}",
}
Complete = Callable[..., list[str]]


@pytest.fixture
def complete(run: Run, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Returns a function that returns the suggestions for typed words."""

    def completions(typed: str, shell: str = "zsh") -> list[str]:
        words = f"sageaudit {typed}"
        last = words.rpartition(" ")[2]
        at = last if shell == "fish" else str(len(words.split(" ")) - 1)
        monkeypatch.setenv("_SAGEAUDIT_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", at)
        done = run()
        assert (done.exit_code, done.stderr) == (0, "")
        if shell == "zsh":
            return done.stdout.split("\n")[1:-1:3]
        lines = filter(None, done.stdout.splitlines())
        return [line.partition(",")[2].partition("\t")[0] for line in lines]

    return completions


@pytest.fixture
def history(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a copy of the history that the environment names, alone in its folder."""
    copy = tmp_path / "copy" / "history.db"
    copy.parent.mkdir()
    shutil.copy(file, copy)
    monkeypatch.setenv("SAGEAUDIT_HISTORY", str(copy))
    return copy


def rename(history: Path, column: str, names: Sequence[str]) -> None:
    """Gives the first runs of a history these names."""
    with closing(sqlite3.connect(history)) as connection, connection:
        for number, name in enumerate(names, 1):
            connection.execute(f"UPDATE runs SET {column} = ? WHERE run = ?", (name, number))  # noqa: S608


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_gets_its_script(run: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """The variable is the one that the page names; the exit code is 0."""
    monkeypatch.setenv("_SAGEAUDIT_COMPLETE", f"{shell}_source")
    done = run()
    assert (done.exit_code, done.stderr) == (0, "")
    assert SHELLS[shell] in done.stdout
    assert f"_SAGEAUDIT_COMPLETE={shell}_source" in PAGE.read_text("utf-8")


def test_the_scripts_read_whole_values(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """bash keeps backslashes, does not look for files of that name, and sends no later word.

    fish keeps commas.
    """
    for shell, part in (
        ("bash", "read -r type value"),
        ("bash", 'COMPREPLY+=("$value")'),
        ("bash", "${COMP_WORDS[*]:0:COMP_CWORD+1}"),
        ("fish", 'string split --max 1 ","'),
    ):
        monkeypatch.setenv("_SAGEAUDIT_COMPLETE", f"{shell}_source")
        assert part in run().stdout


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("typed", TYPED)
def test_a_shell_completes_typed_words(complete: Complete, shell: str, typed: str) -> None:
    """It completes a command, an option, or an option's value."""
    assert TYPED[typed] in complete(typed, shell)


@pytest.mark.parametrize("typed", OF_HISTORY)
def test_names_come_from_the_history(complete: Complete, history: Path, typed: str) -> None:
    """Nothing is written beside its file."""
    assert OF_HISTORY[typed] in complete(typed)
    assert [path.name for path in history.parent.iterdir()] == ["history.db"]


def test_the_command_line_names_another_history(
    complete: Complete, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a history there is no name."""
    monkeypatch.delenv("SAGEAUDIT_HISTORY")
    assert complete("history --owner ") == []
    assert OWNER in complete(f"history --history {history} --owner ")


def test_a_file_that_is_written_meanwhile_has_its_newest_names(
    complete: Complete, history: Path
) -> None:
    """Another process may hold the lock of a write."""
    with closing(sqlite3.connect(history, isolation_level=None)) as writer:
        writer.execute("UPDATE runs SET owner = 'zoe'")
        writer.execute("BEGIN IMMEDIATE")
        assert complete("history --owner z") == ["zoe"]


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 500])
def test_a_broken_history_has_no_names(
    complete: Complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """Nor has a pipe, a folder, a file that does not exist, or a table, which needs AWS."""
    broken, pipe = tmp_path / "broken.db", tmp_path / "pipe.db"
    broken.write_bytes(content)
    os.mkfifo(pipe)
    for path in (broken, pipe, tmp_path / "none.db", tmp_path / ("long" * 100), tmp_path):
        monkeypatch.setenv("SAGEAUDIT_HISTORY", str(path))
        for typed in ("history --owner ", "show ", "history --tag ", "history --family "):
            assert complete(typed) == []
    monkeypatch.delenv("SAGEAUDIT_HISTORY")
    monkeypatch.setenv("SAGEAUDIT_TABLE", "sageaudit")
    assert complete("history --owner ") == []
    assert {*tmp_path.iterdir()} == {broken, pipe}


def test_a_name_cannot_run_or_break_anything(complete: Complete, history: Path) -> None:
    """bash gets special characters escaped; a control character is no name."""
    rename(history, "owner", ("q $(date);", "q 'b'", "q\nb", "q\x1b[2J", "q*"))
    assert complete("history --owner q", "bash") == [r"q\ \$\(date\)\;", r"q\ \'b\'", r"q\*"]
    assert complete("history --owner q", "zsh") == ["q $(date);", "q 'b'", "q*"]
    assert complete('history --owner "q', "bash") == [r'q "\$"(date);', "q 'b'", "q*"]


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize(
    "name", ["q $(echo b);", "q`echo b`", "q'b", 'q"b"', "q'", r"q\$HOME", "q!b"]
)
def test_bash_reads_a_completed_name_as_it_is(
    complete: Complete, history: Path, quote: str, name: str
) -> None:
    """It closes an open quote, unless the text ends with one. No part of a name is executed."""
    rename(history, "owner", [name])
    [text] = complete(f"history --owner {quote}q", "bash")
    closing = "" if text.endswith(quote) else quote
    script = f"printf %s {quote}{text}{closing}"
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == name
    assert quote != '"' or re.fullmatch(r'[^!]*("\\!"[^!]*)*', text), "! recalls earlier commands"


def test_after_a_backslash_a_name_is_escaped(complete: Complete, history: Path) -> None:
    """No quote is open there."""
    rename(history, "owner", ["q $(date)"])
    assert complete("history --owner q\\", "bash") == [r"q\ \$\(date\)"]


@pytest.mark.usefixtures("history")
def test_bash_divides_words_at_signs(complete: Complete) -> None:
    """It replaces only what follows the sign; the other shells replace the whole word."""
    assert TEAM in complete(f"history --tag team = {TEAM[:2]}", "bash")
    assert TEAM in complete("history --tag team =", "bash")
    assert complete("history --sort = was", "bash")[0] == "waste"
    assert complete("history --sort=was", "zsh")[0] == "--sort=waste"
    assert complete("history --sort=was", "fish")[0] == "--sort=waste"


def test_a_list_has_each_name_once(complete: Complete) -> None:
    """`by` takes at most two columns."""
    assert "owner,owner" not in complete("by owner,")
    assert complete("by owner,month,") == []


def test_two_families_with_the_same_end_have_their_full_names(
    complete: Complete, history: Path
) -> None:
    """The last part is enough for any other family."""
    rename(history, "family", ("qa/train", "qb/train", "qb/unique"))
    assert complete("history --family q") == ["qa/train", "qb/train"]
    assert complete("history --family uniq") == ["unique"]
    assert complete("history --family qb/") == ["qb/train", "qb/unique"]


def test_the_outlines_are_those_of_the_rules() -> None:
    """They are read from the source, because an import of all rules takes long."""
    assert [(rule.info.name, rule.info.id, rule.title) for rule in catalogue.load()] == [
        (outline.name, outline.id, outline.title) for outline in catalogue.outlines()
    ]


def test_no_completion_imports_boto3() -> None:
    """It takes as long as all other imports together. Every command can do without."""
    script = """
import sys
from sageaudit.cli import main, shells
shells.import_no_aws()
for name in main.cli.list_commands(None):
    main.cli.get_command(None, name)
aws = [module for name, module in sys.modules.items() if name.startswith("boto")]
assert aws and not any(module.__spec__.origin for module in aws)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_option_for_such_a_value_completes_it() -> None:
    """An option with the name of a region, field or owner has a completer in each command."""
    register_completion_fixes()
    names = re.compile(r"(table_)?regions?|fields|family|owner|rule")
    for command in _commands(cli, click.Context(cli)):
        for param in command.params:
            if names.fullmatch(param.name or ""):
                assert param._custom_shell_complete, f"{command.name} --{param.name}"


def _commands(group: click.Group, ctx: click.Context) -> list[click.Command]:
    commands = [group.get_command(ctx, name) for name in group.list_commands(ctx)]
    return [
        found
        for command in commands
        if command
        for found in (_commands(command, ctx) if isinstance(command, click.Group) else [command])
    ]
