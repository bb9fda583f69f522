"""The commands of the AWS CLI in the documents exist, with all of their options."""

import re
from pathlib import Path

import pytest

from tests.house.aws_commands import aws_commands, command_errors
from tests.house.test_docs import DOCUMENTS, ROOT

MEMBER = ROOT / "infra" / "member.yaml"
COMMANDS = {document: [*aws_commands(document)] for document in DOCUMENTS}
PAGES = [document for document, commands in COMMANDS.items() if commands]


@pytest.mark.parametrize("document", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_aws_command_in_a_document_is_one_of_the_cli(document: Path) -> None:
    """Compared are operation, options, required options, keys and values of enumerations."""
    errors = [error for words in COMMANDS[document] for error in command_errors(words)]
    assert errors == []


def test_the_commands_of_the_organization_are_found() -> None:
    """Otherwise the test of every command would be one of none."""
    names = {words[1] for words in COMMANDS[ROOT / "docs" / "organization.md"]}
    assert {"activate-organizations-access", "create-stack-set", "create-stack-instances"} <= names
    assert "start-query" in {words[1] for words in COMMANDS[ROOT / "docs" / "runbook.md"]}


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("sqss purge-queue", "there is no service sqss"),
        ("sqs empty-queue", "sqs has no operation empty-queue"),
        ("sqs purge-queue --queue x", "purge-queue has no option --queue"),
        ("sqs purge-queue --region x", "purge-queue needs --queue-url"),
        ("lambda get-account-settings x --region y", "get-account-settings takes no x"),
        ("cloudformation create-stack-set --stack-set-name x --call-as ME", "has no value ME"),
        ("cloudformation create-stack-set --stack-set-name x --auto-deployment On=1", "has no On"),
        ("dynamodb update-table --no-deletion-protection-enabled", "needs --table-name"),
    ],
)
def test_a_command_that_the_cli_refuses_is_found(tmp_path: Path, command: str, error: str) -> None:
    """In a block, in a substitution, and in backticks."""
    page = tmp_path / "page.md"
    for text in (f"```\nx=1; aws {command} | cat\n```\n", f"```\nid=$(aws {command})\n```\n"):
        page.write_text(text, encoding="utf-8")
        [words] = aws_commands(page)
        assert any(error in found for found in command_errors(words))
    page.write_text(f"Run `aws {command}` there.\n", encoding="utf-8")
    [words] = aws_commands(page)
    assert any(error in found for found in command_errors(words))


@pytest.mark.parametrize(
    ("page", "operation"),
    [("organization.md", "create-stack-set"), ("update-and-remove.md", "update-stack-set")],
)
def test_the_commands_of_a_stack_set_fit_the_template(page: str, operation: str) -> None:
    """An update also repeats the values of optional parameters, which else become the defaults."""
    text = MEMBER.read_text(encoding="utf-8").partition("\nConditions:")[0]
    parameters = re.findall(r"^  (\w+):\n((?:    .*\n)+)", text, re.MULTILINE)
    required = {name for name, body in parameters if "Default:" not in body}
    optional = {name for name, body in parameters if "Default:" in body} - {"OfHome"}
    [words] = [words for words in COMMANDS[ROOT / "docs" / page] if words[1] == operation]
    given = {key for word in words for key in re.findall(r"ParameterKey=(\w+)", word)}
    assert given == (required if operation == "create-stack-set" else required | optional)
