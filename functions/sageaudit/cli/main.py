"""`sageaudit`: the command line. Data goes to stdout, everything else to stderr.

SAGEAUDIT_DEBUG=1 shows the stack trace of an unexpected failure.
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
from sageaudit.cli.main import CommandFolder
from sageaudit.cli.messages import say
from sageaudit.errors import SageauditError
from sageaudit.exits import Exit, exit_of

_EPILOG = """\b
Examples:
  sageaudit audit my-training-job --region eu-west-1
  sageaudit rules gpu-idle

Exit codes: 0 done, 1 failure, 2 usage or bad file, 3 not found, 4 credentials or
permission, 5 throttled or unavailable, 10 findings at or above --fail-on, 11 none of
them but the job could not be judged (only with --fail-on), 130 interrupted. Of several
jobs, the first of 130, 2, 4, 5, 3, 1, 10, 11 and 0 that applies."""


@click.group(
    cls=CommandFolder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="sageaudit")
def commands() -> None:
    """Shows what each SageMaker job cost, which dollars were avoidable, and what to change."""


def main() -> None:
    """The console script: a failure prints one sentence and sets the exit code."""
    _escape_what_stdout_cannot_encode()
    sys.exit(int(_run()))


def _escape_what_stdout_cannot_encode() -> None:
    """Characters outside stdout's encoding are written as JSON escapes instead of failing."""
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
    except (click.exceptions.Abort, KeyboardInterrupt):
        say("interrupted")
        return Exit.INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        return Exit.USAGE
    except SageauditError as error:
        say(str(error))
        return exit_of(error)
    except SystemExit:  # click's way to end after a closed pipe: the reader has seen enough
        _discard_stdout()
        return Exit.DONE
    except OSError as error:
        _discard_stdout()
        say(f"cannot continue: {error.strerror or error}")
        return Exit.FAILURE
    except Exception as error:  # the last resort: users get no stack trace
        if os.environ.get("SAGEAUDIT_DEBUG") == "1":
            raise
        say(
            f"failed with {type(error).__name__}, a bug in sageaudit:"
            " please report it with the output of SAGEAUDIT_DEBUG=1"
        )
        return Exit.FAILURE


def _discard_stdout() -> None:
    """Redirects stdout to the null device, so that the flush at exit does not fail again."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
