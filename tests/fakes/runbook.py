"""Reads the runbook's entries, queries and AWS commands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import jmespath  # type: ignore[import-untyped]
from botocore import xform_name

PAGE = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text(encoding="utf-8")
_SESSION = botocore.session.get_session()
_NOT_OF_THE_OPERATION = {"query", "output"}


def sections() -> dict[str, str]:
    """Returns all sections by anchor, also those within an entry."""
    parts = re.split(r"^##+ (.+)$", PAGE, flags=re.MULTILINE)[1:]
    titled = zip(parts[::2], parts[1::2], strict=True)
    return {title.lower().replace(" ", "-"): body for title, body in titled}


def entries() -> dict[str, str]:
    """Returns the sections about alarms."""
    return {anchor: body for anchor, body in sections().items() if "Alarms: " in body}


def alarm_names(body: str) -> list[str]:
    """Returns the alarm names of an entry."""
    [line] = re.findall(r"^Alarms: (.+?)\n\n", body, re.MULTILINE | re.DOTALL)
    return re.findall(r"`(\w+)`", line)


def commands(text: str) -> Iterator[str]:
    """Yields the command lines in the code blocks."""
    for block in re.findall(r"^ *```\w*\n(.+?)^ *```$", text, re.MULTILINE | re.DOTALL):
        yield from block.replace("\\\n", " ").splitlines()


def queries(text: str) -> Iterator[tuple[str, str]]:
    """Yields the Logs Insights queries with the function whose log they read."""
    for command in commands(text):
        if matched := re.fullmatch(r"insights (\w+) '(.+)'", command.strip()):
            yield matched[1].lower(), matched[2]


def aws_commands(text: str) -> Iterator[str]:
    """Yields the commands of the AWS CLI."""
    for command in commands(text):
        yield from re.findall(r"\baws [a-z].*", command.split("$(aws ")[0])
        yield from (f"aws {rest}" for rest in re.findall(r"\$\(aws (.+)\)$", command))


def parse_command(command: str) -> tuple[str, str, dict[str, Any], str | None]:
    """Returns service, operation, parameters and --query of an AWS CLI command.

    Raises if AWS's models do not have the service, operation or option.
    """
    _, service, operation, *words = shlex.split(command)
    model = _SESSION.get_service_model(service)
    [shape] = [
        model.operation_model(name).input_shape
        for name in model.operation_names
        if xform_name(name, "-") == operation
    ]
    members = {xform_name(name, "-"): (name, member) for name, member in shape.members.items()}
    parameters: dict[str, Any] = {}
    query = None
    for option, values in _options(words):
        if option == "query":
            [query] = values
        elif option not in _NOT_OF_THE_OPERATION:
            name, member = members[option if option in members else option.removeprefix("no-")]
            parameters[name] = _value(member, values)
    return service, operation, parameters, query


def run(session: Any, command: str) -> Any:
    """Runs an AWS CLI command through boto3; returns what it would print, as data."""
    service, operation, parameters, query = parse_command(command)
    answer = getattr(session.client(service), operation.replace("-", "_"))(**parameters)
    return jmespath.search(query, answer) if query else answer


def _options(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    option: str | None = None
    values: list[str] = []
    for word in words:
        if word.startswith("--"):
            if option is not None:
                yield option, values
            option, values = word[2:], []
        else:
            values.append(word)
    if option is not None:
        yield option, values


def _value(member: Any, values: list[str]) -> Any:
    if member.type_name == "boolean":
        return True
    if member.type_name == "list" and member.member.type_name == "structure":
        return [dict(part.split("=", 1) for part in value.split(",")) for value in values]
    if member.type_name == "list":
        return values
    if member.type_name == "structure":
        return {word.partition("=")[0]: word.partition("=")[2] for word in values}
    [value] = values
    return int(value) if member.type_name in {"integer", "long"} and value.isdigit() else value
