"""The click group of all commands: each module of `cli/commands` is one command."""

from __future__ import annotations

import ast
import pkgutil
from importlib import import_module
from typing import Any

import click

from sageaudit.cli import commands

GROUPS = {
    "Audit jobs": ("audit", "scan", "check", "record"),
    "Ask the history": (
        "history",
        "show",
        "top",
        "by",
        "changes",
        "advice",
        "savings",
        "account",
        "report",
        "export",
    ),
    "Prices and rules": ("prices", "rules", "what-if", "reconcile"),
    "Set up and operate": ("demo", "doctor", "backfill", "notify", "redrive"),
}
"""Every command under the heading of the help that it stands under."""
SHORT = {"families": ("by", "family"), "owners": ("by", "owner"), "trend": ("by", "week")}
"""Short words for what is asked most often."""


class CommandFolder(click.Group):
    """Finds commands by file name: `what_if.py` defines `what_if`, run as `sageaudit what-if`.

    Only the command that runs is imported: boto3 and the rules take most of the start time.
    """

    def __init__(self, **settings: Any) -> None:
        # click reads this mapping for one thing only: the names that it suggests for a mistyped one
        super().__init__(
            **settings, commands={name: click.Command(name) for name in (*_names(), *SHORT)}
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names, and the words after it."""
        return super().resolve_command(ctx, [*SHORT.get(args[0], args[:1]), *args[1:]])

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands, in alphabetical order."""
        return _names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command; None where no file has this name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        name = _module_name(cmd_name)
        command: click.Command = getattr(import_module(f"{commands.__name__}.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands in groups, each with its whole first sentence, without importing."""
        names = self.list_commands(ctx)
        widest = max(map(len, names))
        for title, members in GROUPS.items():
            rows = [(name.ljust(widest), _summary(name)) for name in members if name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _names() -> list[str]:
    return sorted(
        module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__)
    )


def _summary(command: str) -> str:
    """The first line of the command's docstring, read from its source."""
    name = _module_name(command)
    source = pkgutil.get_data(commands.__name__, f"{name}.py") or b""
    function = next(
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return (ast.get_docstring(function) or "").partition("\n")[0]


def _module_name(command: str) -> str:
    return command.replace("-", "_")
