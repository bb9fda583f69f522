"""Writes the lists and policies in docs/permissions.md, from what commands declare: `make docs`."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sageaudit.workflows.doctor.permissions import (
    CHANGING,
    COMMANDS,
    COVERAGE,
    FROM_HISTORY,
    IN_EACH_ACCOUNT,
    OF_MEMBERS,
    OF_STACK,
    ORGANIZATION,
    ROLE,
    SEND,
    TABLE,
    PolicyScope,
    policy,
)
from tools.pages import DOCS, with_parts

PAGE = DOCS / "permissions.md"
_OPTIONS = (TABLE, ROLE, ORGANIZATION, COVERAGE, OF_STACK, OF_MEMBERS, SEND, FROM_HISTORY)
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
    """The page with its table of actions and its policies made afresh."""
    own = {
        action
        for name in ("audit", "scan", "what-if", "reconcile")
        for action in COMMANDS[name].actions(())
    }
    more = COMMANDS["scan"].actions((ROLE, ORGANIZATION, COVERAGE)) - own
    parts = {
        "one": policy(own, PolicyScope()),
        "advice": policy(CHANGING["advice"].actions((TABLE,)), PolicyScope()),
        "redrive": policy(CHANGING["redrive"].actions(()), PolicyScope()),
        "many": policy(more, PolicyScope(role="sageaudit-read")),
        "role": policy(IN_EACH_ACCOUNT, PolicyScope()),
        "trust": _TRUST,
    }
    made = {name: f"```json\n{json.dumps(part, indent=2)}\n```" for name, part in parts.items()}
    return with_parts(text, {"commands": "\n".join(_rows()), **made})


def _rows() -> Iterable[str]:
    yield "| command | always | with an option |"
    yield "|---|---|---|"
    by_needs: dict[tuple[str, str], list[str]] = {}
    for name, needs in {**COMMANDS, **CHANGING}.items():
        options = "; ".join(
            f"`{option}`: {_names(needs.with_option[option])}"
            for option in _OPTIONS
            if option in needs.with_option
        )
        by_needs.setdefault((_names(needs.always), options), []).append(f"`{name}`")
    for (always, options), names in by_needs.items():
        yield f"| {', '.join(names)} | {always or 'nothing'} | {options} |"


def _names(actions: Iterable[str]) -> str:
    return ", ".join(f"`{action}`" for action in sorted(actions))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
