"""The tools that need no history: rules and list prices."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from sageaudit.cli.mcp_server.answer import (
    Answer,
    Arguments,
    Name,
    ServedHistory,
    Tool,
    choose_keys,
    make_command,
    option_words,
)
from sageaudit.cli.views.instance_rates import (
    find_rates,
    no_rate_text,
    rates_document,
    rates_table,
)
from sageaudit.cli.views.rule_page import find_rule, rule_document, rule_page, rules_document
from sageaudit.output.terminal.layout import printed_text
from sageaudit.rules import catalogue

_TABLE_WIDTH = 100


class ExplainRule(Arguments, frozen=True):
    """Explains a rule: what it checks, how the saving is calculated, when it is wrong, and its
    thresholds. Without a rule, lists all rules.
    """

    rule: Annotated[Name, Meta(description='A rule\'s name or id; "" lists all rules.')] = ""


def explain_rule(_: ServedHistory, arguments: ExplainRule) -> Answer:
    """Answers as `sageaudit rules` does."""
    if not arguments.rule:
        rules = catalogue.load()
        lines = [f"{rule.info.name} ({rule.info.id}): {rule.title}" for rule in rules]
        keys = ("id", "name", "on")
        documents = [choose_keys(row, keys) for row in rules_document(rules)["rules"]]
        command = make_command("rules", "--output", "json")
        return Answer(
            "\n".join(lines), {"schema": 1, "rules": documents}, command, is_shortened=True
        )
    rule = find_rule(arguments.rule)
    return Answer(
        rule_page(rule),
        {"schema": 1, "rule": rule_document(rule)},
        make_command("rules", rule.info.name, "--output", "json"),
    )


class InstancePrices(Arguments, frozen=True):
    """Returns the list price of an hour on a SageMaker instance type, with its date and source."""

    type: Annotated[Name, Meta(description="An instance type, such as ml.g5.xlarge.")]
    region: Annotated[Name, Meta(description='An AWS region; "": all regions with a price.')] = ""
    component: Annotated[
        Literal["", "training", "processing", "transform"],
        Meta(description='The kind of job; "": all kinds.'),
    ] = ""


def instance_prices(_: ServedHistory, arguments: InstancePrices) -> Answer:
    """Answers as `sageaudit prices` does."""
    region, component = arguments.region or None, arguments.component or None
    rates = find_rates(arguments.type, region, component)
    text = printed_text(lambda console: console.print(rates_table(rates)), _TABLE_WIDTH)
    words = option_words({"--region": region, "--component": component})
    return Answer(
        f"{arguments.type}\n{text}" if rates else no_rate_text(arguments.type, region, component),
        rates_document(rates),
        make_command("prices", arguments.type, *words, "--output", "json"),
        ["USD for an hour of one instance: list prices, before discounts"],
    )


REFERENCE_TOOLS = (
    Tool("A rule's page", ExplainRule, explain_rule),
    Tool("Price of an instance type", InstancePrices, instance_prices),
)
