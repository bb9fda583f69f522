"""Writes the tables and policies in docs/permissions.md from what commands declare: `make docs`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain

from local.stack import TEMPLATE
from sageaudit.workflows.doctor.deployment import (
    DEPLOY,
    EXECUTION,
    deployment_grants,
    make_deployment_policy,
)
from sageaudit.workflows.doctor.permissions import (
    ACCOUNT_ACTIONS,
    COVERAGE,
    FROM_HISTORY,
    MEMBERS_OPTION,
    ORGANIZATION,
    READ_ONLY_COMMANDS,
    ROLE,
    SEND,
    STACK_OPTION,
    TABLE,
    WRITING_COMMANDS,
    PolicyScope,
    make_policy,
    writes_of_commands,
)
from tools.pages import DOCS, replace_parts

FUNCTIONS = ("audit", "notify", "sweep", "watch", "digest", "deliver")
PAGE = DOCS / "permissions.md"
_OPTIONS = (TABLE, ROLE, ORGANIZATION, COVERAGE, STACK_OPTION, MEMBERS_OPTION, SEND, FROM_HISTORY)
_WRITES = {f"dynamodb:{verb}Item" for verb in ("ConditionCheck", "Delete", "Put", "Update")}
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::111122223333:root"},
            "Action": "sts:AssumeRole",
        }
    ],
}


def page(text: str) -> str:
    """Returns the page with a new table of actions and new policies."""
    account_actions = {
        action
        for name in ("audit", "scan", "what-if", "reconcile")
        for action in READ_ONLY_COMMANDS[name].actions(())
    }
    extra_actions = (
        READ_ONLY_COMMANDS["scan"].actions((ROLE, ORGANIZATION, COVERAGE)) - account_actions
    )
    parts = {
        "one": make_policy(account_actions, PolicyScope()),
        "advice": make_policy(
            WRITING_COMMANDS["advice"].actions((TABLE,)),
            PolicyScope(),
            writes_of_commands(("advice",), (TABLE,)),
        ),
        "redrive": make_policy(WRITING_COMMANDS["redrive"].actions(()), PolicyScope()),
        "many": make_policy(extra_actions, PolicyScope(role="sageaudit-read")),
        "role": make_policy(ACCOUNT_ACTIONS, PolicyScope()),
        "trust": _TRUST,
        **{
            kind: make_deployment_policy(deployment_grants(kind), PolicyScope())
            for kind in (DEPLOY, EXECUTION)
        },
    }
    blocks = {name: f"```json\n{json.dumps(part, indent=2)}\n```" for name, part in parts.items()}
    tables = {"commands": "\n".join(_rows()), "writes": "\n".join(_write_rows())}
    return replace_parts(text, {**tables, **blocks})


def _rows() -> Iterable[str]:
    yield "| command | always | with an option |"
    yield "|---|---|---|"
    by_needs: dict[tuple[str, str], list[str]] = {}
    for name, needs in {**READ_ONLY_COMMANDS, **WRITING_COMMANDS}.items():
        options = "; ".join(
            f"`{option}`: {_names(needs.option_actions(option))}"
            for option in _OPTIONS
            if needs.option_actions(option)
        )
        by_needs.setdefault((_names(needs.required_actions), options), []).append(f"`{name}`")
    for (always, options), names in by_needs.items():
        yield f"| {', '.join(names)} | {always or 'nothing'} | {options} |"


def _write_rows() -> Iterable[str]:
    """Yields the table of the functions' writes, as the stack's template grants them."""
    yield "| function | actions | partition keys |"
    yield "|---|---|---|"
    resources = json.loads(TEMPLATE.read_text(encoding="utf-8"))["Resources"]
    for function in FUNCTIONS:
        policies = [
            resource["Properties"]["PolicyDocument"]
            for name, resource in resources.items()
            if name.startswith(f"{function.capitalize()}RoleDefaultPolicy")
        ]
        for statement in chain.from_iterable(policy["Statement"] for policy in policies):
            actions = statement["Action"]
            actions = [actions] if isinstance(actions, str) else actions
            keys = statement.get("Condition", {}).get("ForAllValues:StringLike", {})
            if keys and {*actions} <= _WRITES:
                partition_keys = _names(keys["dynamodb:LeadingKeys"])
                yield f"| {function} | {_names(actions)} | {partition_keys} |"


def _names(actions: Iterable[str]) -> str:
    return ", ".join(f"`{action}`" for action in sorted(set(actions)))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
