"""Writes docs/permissions.md from the lists of actions that commands declare: `make docs`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sageaudit.cli.support.doctor.permissions import (
    CHANGING,
    COMMANDS,
    COVERAGE,
    IN_EACH_ACCOUNT,
    OF_STACK,
    ORGANIZATION,
    ROLE,
    TABLE,
    PolicyScope,
    policy,
)

PAGE = Path(__file__).parent / "permissions.md"
_OPTIONS = (TABLE, ROLE, ORGANIZATION, COVERAGE, OF_STACK)
_PAGE = """\
# Permissions of the command line

The commands read, and change nothing in AWS; only `redrive` changes something, the queues of a
deployed stack. `sageaudit doctor` checks every permission of those that read, and says what is
missing; `sageaudit doctor --policy COMMAND...` prints the least policy for the commands that you
use, narrowed by `--region`, `--table`, `--role` and `--stack`. A test compares these lists with
the calls that each command makes.

## What each command calls

{commands}

- Lists of jobs, metrics, prices, organizations and bills cannot be limited to a resource, so
  their `Resource` is `*`.
- `sts:GetCallerIdentity` needs no permission. In which region a bucket lies, S3 says to anybody:
  no permission on S3 is needed.
- Without `sagemaker:ListTags` an audit knows no owner; without CloudWatch it has a bill, and
  judges nothing; without `pricing:GetProducts` it uses the packaged prices. What could not be
  read stands in each audit.
- `GetMetricData` costs $0.01 for 1,000 metrics, and `ce:GetCostAndUsage` $0.01 a request; all
  other calls are free.
- Without `organizations:DescribeOrganization`, `scan --coverage` of several accounts asks each
  account for its own bill: the role then needs `ce:GetCostAndUsage`.

## A policy for one account

For all commands with a file as history, `sageaudit doctor --policy audit scan what-if prices
reconcile`:

```json
{one}
```

## Who sends dead letters again

`sageaudit doctor --policy redrive`. The names of a stack's queues begin with the stack's name:

```json
{redrive}
```

## A role for many accounts

`sageaudit scan --organization --role NAME` must run in the organization's management account or
in that of a delegated administrator: elsewhere AWS does not list accounts. `--accounts FILE` (one
account id a line) works from any account. Your own account is read with your own credentials,
every other one with the role. They need, besides the policy above:

```json
{many}
```

The role in each account needs this policy. Prices are read once, with your own credentials:

```json
{role}
```

Its trust policy names who may assume it, and an external id where you want one (`--external-id`):

```json
{trust}
```
"""
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


def page() -> str:
    """The whole page."""
    own = {
        action
        for name in ("audit", "scan", "what-if", "prices", "reconcile")
        for action in COMMANDS[name].actions(())
    }
    more = COMMANDS["scan"].actions((ROLE, ORGANIZATION, COVERAGE)) - own
    return _PAGE.format(
        commands="\n".join(_rows()),
        one=_json(policy(own, PolicyScope())),
        redrive=_json(policy(CHANGING["redrive"].actions(()), PolicyScope())),
        many=_json(policy(more, PolicyScope(role="sageaudit-read"))),
        role=_json(policy(IN_EACH_ACCOUNT, PolicyScope())),
        trust=_json(_TRUST),
    )


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


def _json(value: object) -> str:
    return json.dumps(value, indent=2)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
