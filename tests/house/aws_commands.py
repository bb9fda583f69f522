"""Reads commands of the AWS CLI in documents, and compares them with AWS's service models.

The CLI makes an operation's command and options from the model: CreateStackSet is
`create-stack-set`, and its parameter TemplateBody is `--template-body`. The few names that differ
are customizations of the CLI.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import UnknownServiceError

GLOBAL_OPTIONS = {
    *("cli-input-json", "cli-read-timeout", "max-items", "no-cli-pager", "no-paginate", "output"),
    *("profile", "query", "region"),
}
"""Options of every command: "Command line options in the AWS CLI" in its user guide."""
CUSTOM_COMMANDS = {("s3", "cp"), ("cloudformation", "deploy")}
"""Commands that the CLI has in addition to the operations of the models."""
RENAMED = {("sns", "subscribe", "endpoint"): "notification-endpoint"}
"""Options that the CLI calls differently (`customizations/argrename.py` of aws-cli), as another
option of the same name exists for every command."""
_BLOCK = re.compile(r"^ *```\w*[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\((?!\()([^()]*)\)|\$\(\(([^()]*)\)\)")
_START = re.compile(r"(?:^|[|;&(=]|\s)aws (?=[a-z])", re.MULTILINE)
_END = "|;&<>()\n"
_VALUE = "VALUE"


def aws_commands(document: Path) -> Iterator[list[str]]:
    """Yields the words after `aws` of each command in a document's blocks and backticks."""
    text = document.read_text(encoding="utf-8")
    for block in _BLOCK.findall(text):
        yield from _commands(block.replace("\\\n", " "))
    for span in re.findall(r"`([^`]+)`", _BLOCK.sub("", text)):
        if span.startswith("aws ") and "..." not in span and "…" not in span:
            yield from _commands(" ".join(span.split()))


def _commands(text: str) -> Iterator[list[str]]:
    """Yields the commands of a shell script, those in `$(…)` first."""
    while match := _SUBSTITUTION.search(text):
        inner = match[1] or match[2]
        if _START.search(inner):
            yield from _commands(inner)
        text = f"{text[: match.start()]}{_VALUE}{text[match.end() :]}"
    for match in _START.finditer(text):
        lexer = shlex.shlex(text[match.end() :], posix=True, punctuation_chars=_END)
        lexer.whitespace, lexer.commenters = " \t", ""
        lexer.whitespace_split = True
        words = []
        for word in lexer:
            if word[0] in f"{_END}#":
                break
            words.append(word)
        yield words


@cache
def _service(name: str) -> Any:
    return botocore.session.get_session().get_service_model(name)


def command_errors(words: Sequence[str]) -> Iterator[str]:
    """Yields what is wrong with a command: service, operation, options, values."""
    service, operation, *rest = words
    if (service, operation) in CUSTOM_COMMANDS:
        return
    try:
        model = _service(service)
    except UnknownServiceError:
        yield f"there is no service {service}"
        return
    names = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in names:
        yield f"{service} has no operation {operation}"
        return
    operation_model = model.operation_model(names[operation])
    members, required = _parameters(service, operation, operation_model.input_shape)
    options, positional = _options(rest, members)
    for name, values in options.items():
        if name not in members and name not in GLOBAL_OPTIONS:
            yield f"{operation} has no option --{name}"
        elif name in members:
            yield from _value_errors(name, members[name], values)
    if positional and not operation_model.has_streaming_output:
        yield f"{operation} takes no {' '.join(positional)}"
    if options and "cli-input-json" not in options:  # without options, it is only named
        yield from (f"{operation} needs --{name}" for name in sorted(required - options.keys()))


def _parameters(service: str, operation: str, shape: Any) -> tuple[dict[str, Any], set[str]]:
    """Returns the shapes of the parameters by option, and the required options."""
    if shape is None:
        return {}, set()
    options = {member: xform_name(member, "-") for member in shape.members}
    options = {
        member: RENAMED.get((service, operation, name), name) for member, name in options.items()
    }
    members = {options[member]: member_shape for member, member_shape in shape.members.items()}
    return members, {options[member] for member in shape.required_members}


def _options(
    words: Sequence[str], members: Mapping[str, Any]
) -> tuple[dict[str, list[str]], list[str]]:
    """Returns the values by option, and the words before any option."""
    options: dict[str, list[str]] = {}
    positional: list[str] = []
    values = positional
    for word in words:
        if word.startswith("--"):
            name = word[2:]
            negated = name.removeprefix("no-")
            is_negation = name not in members and _is_flag(members.get(negated))
            values = options.setdefault(negated if is_negation else name, [])
        elif _is_flag(members.get(next(reversed(options), ""))):
            positional.append(word)
        else:
            values.append(word)
    return options, positional


def _is_flag(shape: Any) -> bool:
    return shape is not None and shape.type_name == "boolean"


def _value_errors(name: str, shape: Any, values: Sequence[str]) -> Iterator[str]:
    """Yields the values that are not of an enumeration, and the unknown keys of KEY=VALUE."""
    inner = shape.member if shape.type_name == "list" else shape
    for value in values:
        if _VALUE in value or "$" in value or value.startswith(("file://", "[", "{")):
            continue
        if inner.type_name == "structure":
            keys = re.findall(r"(?:^|,)([A-Za-z]+)=", value)
            yield from (f"--{name} has no {key}" for key in keys if key not in inner.members)
        elif getattr(inner, "enum", None) and value not in inner.enum:
            yield f"--{name} has no value {value}"
