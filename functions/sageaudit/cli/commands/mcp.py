"""`sageaudit mcp`: answers questions of an AI assistant from a history."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from types import FrameType

import click

from sageaudit.cli import options, query_options
from sageaudit.cli.mcp_server.answer import ServedHistory
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import HistoryChoice
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit

_EPILOG = """\b
Examples:
  sageaudit mcp
  sageaudit mcp --history example.db
  sageaudit mcp --table sageaudit-history --table-region eu-west-1 --profile audit"""


@click.command(epilog=_EPILOG)
@query_options.HISTORY_OPTIONS
@click.option("--policy", "policy_path", type=click.Path(path_type=Path), help=options.POLICY_HELP)
def mcp(history_choice: HistoryChoice, policy_path: Path | None) -> None:
    """Serves a history to an AI assistant, over MCP.

    An MCP client, such as Claude or an editor, starts this command and talks to it on stdin and
    stdout. The tools only read: what cost most, what to change, one job's audit, other types for
    it, a rule's page, the check of a request, prices, and changes of spend. AWS is called only for
    the table, if you name one. The command ends when the client closes stdin.
    """
    try:
        import_module("mcp_types")  # only of version 2 and newer
        anyio = import_module("anyio")
    except ImportError as error:
        raise BadUsage(
            "`sageaudit mcp` needs the MCP SDK, version 2 or newer: `pip install 'mcp>=2'`, or"
            " `pipx inject sageaudit 'mcp>=2'`"
        ) from error
    from sageaudit.cli.mcp_server.server import serve  # noqa: PLC0415 - it needs the SDK

    policy = options.load_policy(policy_path)
    served = ServedHistory(history_choice, policy, policy_path and policy_path.absolute())
    signal.signal(signal.SIGINT, _interrupt)
    if sys.stdin.isatty():
        print_message("waiting for an MCP client on stdin; Ctrl-C ends. docs/mcp.md: how to set up")
    try:
        anyio.run(serve, served)
    except* OSError:  # the client is gone
        pass
    sys.stderr.flush()
    os._exit(Exit.DONE)  # an abandoned read of AWS must not keep the process


def _interrupt(_: int, __: FrameType | None) -> None:
    # Ends at once: a thread waits for stdin, and nothing has to be kept.
    print_message("interrupted")
    os._exit(Exit.INTERRUPTED)
