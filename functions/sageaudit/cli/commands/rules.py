"""`sageaudit rules`: lists all rules, or prints a rule's page."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from sageaudit.cli import options
from sageaudit.cli.messages import echo_json
from sageaudit.cli.options import Printed
from sageaudit.cli.support.rules.rule_page import page, rule_document
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import console_for, plain_table
from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule

_EPILOG = """\b
Examples:
  sageaudit rules
  sageaudit rules gpu-idle
  sageaudit rules SA202
  sageaudit rules --output json"""


@click.command(epilog=_EPILOG)
@click.argument("name", required=False)
@options.PRINTED
def rules(name: str | None, printed: Printed) -> None:
    """Lists all rules, or explains one of them.

    NAME is a rule's name or id; its page has the thresholds, the saving and the sources. What each
    rule found in a history is for `sageaudit by rule`.
    """
    _list(name, printed.output, console_for(no_color=printed.no_color))


def _list(name: str | None, output: str, console: Console) -> None:
    known = catalogue.load()
    if name is None:
        if output == "json":
            echo_json({"schema": 1, "rules": [rule_document(rule) for rule in known]})
        else:
            console.print(_table(known))
        return
    asked = name.lower().replace("_", "-")
    wanted = next((r for r in known if asked in {r.name.name, r.name.id.lower()}), None)
    if wanted is None:
        perhaps = did_you_mean(asked, [rule.name.name for rule in known]) or ";"
        raise BadUsage(f"there is no rule {name}{perhaps} `sageaudit rules` lists them all")
    text = page(wanted)
    if output == "json":
        echo_json({"schema": 1, "rule": {**rule_document(wanted), "page": text}})
        return
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        click.echo(text, nl=False)


def _table(known: tuple[Rule, ...]) -> Table:
    table = plain_table("Id", "Rule", "Finds", "Jobs", unbroken=("Id", "Rule"))
    for rule in known:
        kinds = ", ".join(sorted(kind.value for kind in rule.kinds))
        table.add_row(rule.name.id, rule.name.name, rule.title, kinds)
    return table
