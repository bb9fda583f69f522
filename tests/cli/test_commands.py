"""All commands are found by their files and have a help with examples."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sageaudit.cli.main import COMMAND_GROUPS, cli
from tests.fakes.command_line import Run

FILES = sorted(
    path.stem
    for path in (Path(__file__).parents[2] / "functions" / "sageaudit" / "cli" / "commands").glob(
        "[a-z]*.py"
    )
)
CONTEXT = click.Context(cli, **cli.context_settings)


def paths() -> Iterator[tuple[str, ...]]:
    """Yields every command and subcommand, as typed."""
    for name in cli.list_commands(CONTEXT):
        yield (name,)
        command = cli.get_command(CONTEXT, name)
        if isinstance(command, click.Group):
            yield from ((name, inner) for inner in command.list_commands(CONTEXT))


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yields every command and subcommand, each after its path."""
    for path in paths():
        command: click.Command | None = cli
        for name in path:
            assert isinstance(command, click.Group)
            command = command.get_command(CONTEXT, name)
        assert command is not None
        yield path, command


def test_each_file_is_a_command_of_its_name() -> None:
    """No other file is edited to add a command."""
    names = cli.list_commands(CONTEXT)
    assert names == [stem.replace("_", "-") for stem in FILES]
    for name in names:
        command = cli.get_command(CONTEXT, name)
        assert command is not None
        assert command.name == name


def test_the_list_shows_the_first_sentence_of_each_help(run: Run) -> None:
    """The list is read from the sources; each sentence equals that of the command's own help."""
    listing = run("--help").stdout
    for name in cli.list_commands(CONTEXT):
        command = cli.get_command(CONTEXT, name)
        assert command is not None
        summary = command.get_short_help_str(80)
        assert not summary.endswith("...")
        assert f"  {name:9}  {summary}\n" in listing


@pytest.mark.parametrize("path", [(), *paths()], ids=" ".join)
def test_every_help_shows_an_example(run: Run, path: tuple[str, ...]) -> None:
    """The example starts with the command as it is typed."""
    done = run(*path, "--help")
    assert done.exit_code == 0
    _, _, examples = done.stdout.partition("Example")
    start = "sageaudit prices" if path == ("prices", "show") else " ".join(("sageaudit", *path))
    assert f"\n    {start}" in examples


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("__init__", ""),
        ("audti", " Did you mean 'audit'?"),
        ("what_if", " Did you mean 'what-if'?"),
        ("recncile", " Did you mean 'reconcile'?"),
    ],
)
def test_a_mistyped_command_is_answered_with_a_suggestion(
    run: Run, typed: str, expected: str
) -> None:
    """The exit code is 2; no command is imported to list them."""
    done = run(typed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"No such command '{typed}'.{expected}" in done.stderr


def test_help_lists_every_command_once_and_whole(run: Run) -> None:
    """The list is in groups, and no summary is cut."""
    listing = [name for names in COMMAND_GROUPS.values() for name in names]
    assert sorted(listing) == sorted(set(listing))
    assert set(cli.list_commands(None)) <= set(listing)  # type: ignore[arg-type]
    done = run("--help")
    assert "..." not in done.stdout.partition("\n")[2]
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
