"""The command line `sageaudit`. Data goes to stdout, everything else to stderr.

SAGEAUDIT_DEBUG=1 shows the stack trace of an unexpected failure.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import pkgutil
import re
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from sageaudit import __version__
from sageaudit.cli import commands as command_modules
from sageaudit.cli.messages import print_message
from sageaudit.errors import SageauditError
from sageaudit.exits import Exit, exit_for
from sageaudit.token_shapes import redact

COMMAND_GROUPS = {
    "Audit jobs": ("audit", "scan", "check", "record"),
    "Ask the history": (
        "history",
        "show",
        "top",
        "by",
        "changes",
        "advice",
        "savings",
        "budgets",
        "account",
        "report",
        "export",
        "mcp",
    ),
    "Prices and rules": ("prices", "rules", "what-if", "reconcile"),
    "Set up and operate": ("demo", "doctor", "pack", "backfill", "notify", "redrive"),
}
"""Every command, by its heading in the help."""
ALIASES = {"families": ("by", "family"), "owners": ("by", "owner"), "trend": ("by", "week")}
"""Short names for frequent commands."""
_COMPLETION_VARIABLE = "_SAGEAUDIT_COMPLETE"
"""The variable with which a shell asks for completions; click derives it from the name."""
_EPILOG = """\b
Examples:
  sageaudit audit my-training-job --region eu-west-1
  sageaudit rules gpu-idle

Exit codes: 0 done, 1 failure, 2 usage or bad file, 3 not found, 4 credentials or
permission, 5 throttled or unavailable, 10 findings at or above --fail-on, 11 no such
finding, but the job could not be judged (only with --fail-on), 130 interrupted. If
several codes apply, the exit code is the first of them in this order: 130, 2, 4, 5, 3,
1, 10, 11, 0."""


class CommandGroup(click.Group):
    """Finds commands by file name: `what_if.py` defines `what_if`, run as `sageaudit what-if`.

    Only the command that runs is imported, since boto3 and the rules take most of the start time.
    """

    def __init__(self, **settings: Any) -> None:
        # click reads this mapping only to suggest a command for a mistyped name
        super().__init__(
            **settings, commands={name: click.Command(name) for name in (*_names(), *ALIASES)}
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that the first word names, and the words after it."""
        return super().resolve_command(ctx, [*ALIASES.get(args[0], args[:1]), *args[1:]])

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Returns the names of all commands, in alphabetical order."""
        return _names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command. Returns None if no file has its name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        name = _module_name(cmd_name)
        command: click.Command = getattr(import_module(f"{command_modules.__name__}.{name}"), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the commands that begin with the text, without importing them."""
        summaries = {name: _summary(name) for name in _names()}
        summaries |= {name: f"Short for {' '.join(words)}." for name, words in ALIASES.items()}
        commands = [
            CompletionItem(name, help=text)
            for name, text in summaries.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands in groups, each with its first sentence, without importing them."""
        names = self.list_commands(ctx)
        widest = max(map(len, names))
        for title, members in COMMAND_GROUPS.items():
            rows = [(name.ljust(widest), _summary(name)) for name in members if name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _names() -> list[str]:
    return sorted(
        module.name.replace("_", "-") for module in pkgutil.iter_modules(command_modules.__path__)
    )


def _summary(command: str) -> str:
    """Returns the first line of the command's docstring, read from its source."""
    name = _module_name(command)
    source = (pkgutil.get_data(command_modules.__name__, f"{name}.py") or b"").decode()
    match = re.search(rf'^def {name}\(.*?"""(.*?)(?:"""|\n)', source, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def _module_name(command: str) -> str:
    return command.replace("-", "_")


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="sageaudit")
def cli() -> None:
    """Shows what each SageMaker job cost, which dollars were avoidable, and what to change."""


def main() -> None:
    """Runs the console script. A failure prints one sentence and sets the exit code."""
    _escape_unencodable_output()
    sys.exit(int(_run()))


def _escape_unencodable_output() -> None:
    """Makes stdout write characters outside its encoding as JSON escapes instead of failing."""
    codecs.register_error("json-escape", _escape_error_handler)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="json-escape")


def _escape_error_handler(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _run() -> int:
    if _COMPLETION_VARIABLE in os.environ:
        from sageaudit.cli import shells  # noqa: PLC0415 - only a shell needs it

        shells.import_no_aws()
        shells.register_completion_fixes()
    try:
        return cli.main(prog_name="sageaudit", standalone_mode=False) or Exit.DONE
    except (click.exceptions.Abort, KeyboardInterrupt):
        print_message("interrupted")
        return Exit.INTERRUPTED
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(redact(shown.getvalue()), err=True, nl=False)
        return Exit.USAGE
    except SageauditError as error:
        print_message(str(error))
        return exit_for(error)
    except SystemExit:  # click raises it after a closed pipe
        _discard_stdout()
        return Exit.DONE
    except OSError as error:
        _discard_stdout()
        print_message(f"cannot continue: {error.strerror or error}")
        return Exit.FAILURE
    except Exception as error:  # users get no stack trace
        if os.environ.get("SAGEAUDIT_DEBUG") == "1":
            raise
        print_message(
            f"failed with {type(error).__name__}, a bug in sageaudit: please report it with the"
            " output of SAGEAUDIT_DEBUG=1"
        )
        return Exit.FAILURE


def _discard_stdout() -> None:
    """Redirects stdout to the null device, so that the flush at exit does not fail again."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
