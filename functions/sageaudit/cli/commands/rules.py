"""`sageaudit rules`: lists all rules, or prints a rule's page."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markdown import Markdown

from sageaudit.cli import options
from sageaudit.cli.completion import complete_rules
from sageaudit.cli.messages import print_json
from sageaudit.cli.options import PrintOptions
from sageaudit.cli.views.rule_page import (
    find_rule,
    rule_document,
    rule_page,
    rule_text,
    rules_document,
)
from sageaudit.output.terminal.layout import make_console, plain_table
from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule

_EPILOG = """\b
Examples:
  sageaudit rules
  sageaudit rules gpu-idle
  sageaudit rules SA202
  sageaudit rules --output json"""


@click.command(epilog=_EPILOG)
@click.argument("name", required=False, shell_complete=complete_rules)
@options.PRINT_OPTIONS
def rules(name: str | None, print_options: PrintOptions) -> None:
    """Lists all rules, or explains one of them.

    NAME is a rule's name or id; its page has the thresholds, the saving and the sources, in a pipe
    as plain text. `sageaudit by rule` shows what each rule found in a history.
    """
    if name is None:
        print_options.print_document(catalogue.load(), _show, rules_document)
        return
    rule = find_rule(name)
    text = rule_page(rule)
    console = make_console(no_color=print_options.no_color)
    if print_options.is_json:
        print_json({"schema": 1, "rule": {**rule_document(rule), "page": text}})
    elif console.is_terminal:
        console.print(Markdown(text))
    else:
        click.echo(rule_text(rule), nl=False)


def _show(all_rules: tuple[Rule, ...], console: Console) -> None:
    table = plain_table("Id", "Rule", "Finds", "Jobs", unbroken=("Id", "Rule"))
    for rule in all_rules:
        kinds = ", ".join(sorted(kind.value for kind in rule.kinds))
        table.add_row(rule.info.id, rule.info.name, rule.title, kinds)
    console.print(table)
