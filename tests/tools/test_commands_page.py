"""docs/commands.md has the help of every command."""

import re

import click

from sageaudit.cli.main import cli
from tools.pages import commands as commands_page


def test_the_page_is_what_the_help_makes() -> None:
    assert commands_page.PAGE.read_text(encoding="utf-8") == commands_page.page()


def test_every_command_and_subcommand_has_its_part() -> None:
    context = click.Context(cli, **cli.context_settings)
    names = set(cli.list_commands(context))
    for name in list(names):
        command = cli.get_command(context, name)
        if isinstance(command, click.Group):
            names |= {f"{name} {inner}" for inner in command.commands}
    headings = re.findall(r"^### sageaudit (.+)$", commands_page.page(), re.MULTILINE)
    assert sorted(headings) == sorted(names)
