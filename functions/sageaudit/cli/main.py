"""`sageaudit`: the command line. Data goes to stdout, everything else to stderr.

SAGEAUDIT_DEBUG=1 shows the stack trace of a failure that nobody foresaw.

Exit codes: 0 done, 1 failure, 2 usage or bad file, 3 not found, 4 credentials or permission,
5 throttled or unavailable, 10 findings at or above --fail-on, 130 interrupted.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from contextlib import suppress

import click

from sageaudit import __version__
from sageaudit.cli.commands.account import account
from sageaudit.cli.commands.audit import audit
from sageaudit.cli.commands.prices import prices
from sageaudit.cli.commands.reconcile import reconcile
from sageaudit.cli.commands.replay import replay
from sageaudit.cli.commands.rules import rules
from sageaudit.cli.commands.what_if import what_if
from sageaudit.cli.exits import Exit, exit_of
from sageaudit.errors import SageauditError
from sageaudit.text.untrusted import terminal

_EPILOG = """Exit codes: 0 done, 1 failure, 2 usage or bad file, 3 not found, 4 credentials or
permission, 5 throttled or unavailable, 10 findings at or above --fail-on, 130 interrupted."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(__version__, prog_name="sageaudit")
def commands() -> None:
    """What each SageMaker job cost, which dollars were avoidable, and what to change."""


commands.add_command(account)
commands.add_command(audit)
commands.add_command(prices)
commands.add_command(reconcile)
commands.add_command(replay)
commands.add_command(rules)
commands.add_command(what_if)


def main() -> None:
    """The console script: every failure is one sentence and an exit code, never a stack trace."""
    _take_every_letter()
    sys.exit(int(_run()))


def _take_every_letter() -> None:
    """A letter that stdout's encoding lacks is written as JSON escapes it, and stops nothing."""
    codecs.register_error("json-escape", _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="json-escape")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _run() -> int:
    try:
        return commands.main(prog_name="sageaudit", standalone_mode=False) or Exit.DONE
    except click.exceptions.Abort:
        _say("interrupted")
        return Exit.INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        return Exit.USAGE
    except SageauditError as error:
        _say(str(error))
        return exit_of(error)
    except OSError as error:
        _leave_stdout()
        _say(f"cannot go on: {error.strerror or error}")
        return Exit.FAILURE
    except Exception as error:  # the last resort: a person reads no stack trace
        if os.environ.get("SAGEAUDIT_DEBUG") == "1":
            raise
        _say(
            f"failed with {type(error).__name__}, which is a mistake of sageaudit itself:"
            " please report it, with what SAGEAUDIT_DEBUG=1 shows"
        )
        return Exit.FAILURE


def _leave_stdout() -> None:
    """What could not be written is dropped, or the interpreter would fail over it once more."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    click.echo(f"sageaudit: {terminal(text)}", err=True)
