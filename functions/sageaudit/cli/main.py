"""`sageaudit`: the command line. Data goes to stdout, everything else to stderr.

Exit codes: 0 done, 1 failure, 2 usage or bad file, 3 not found, 4 credentials or permission,
5 throttled or unavailable, 10 findings at or above --fail-on, 130 interrupted.
"""

from __future__ import annotations

import sys

import click

from sageaudit import __version__
from sageaudit.cli.audit import audit
from sageaudit.cli.exits import Exit, exit_of
from sageaudit.cli.reconcile import reconcile
from sageaudit.errors import SageauditError
from sageaudit.text.untrusted import terminal


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sageaudit")
def commands() -> None:
    """What each SageMaker job cost, which dollars were avoidable, and what to change."""


commands.add_command(audit)
commands.add_command(reconcile)


def main() -> None:
    """The console script: every failure is one sentence and an exit code, never a stack trace."""
    try:
        code = commands.main(prog_name="sageaudit", standalone_mode=False)
    except click.exceptions.Abort:
        code = Exit.INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        code = Exit.USAGE
    except SageauditError as error:
        click.echo(f"sageaudit: {terminal(str(error))}", err=True)
        code = exit_of(error)
    except BrokenPipeError:
        # The reader of a pipe went away: nothing is left to say, and nobody to say it to.
        sys.stderr.close()
        code = Exit.FAILURE
    sys.exit(int(code or 0))
